"""Calls of the project's own functions: their frames, their parameters, their results."""

from __future__ import annotations

import ast
from functools import partial
from typing import TypeGuard

from perflint.semantics.binders import defaults
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.facts.conventions import gets_batch, is_on_cpu
from perflint.semantics.facts.devices import made_of
from perflint.semantics.facts.named import parameter_placed
from perflint.semantics.facts.tensors import device_of
from perflint.semantics.interpreter import autograd, decorators, schedules
from perflint.semantics.interpreter.annotations import annotated, parameter, placed
from perflint.semantics.interpreter.frame import Frame, Names, parts
from perflint.semantics.interpreter.lineage import decorator_names, is_module, is_module_part
from perflint.semantics.interpreter.memory import CallKey, Outcome
from perflint.semantics.interpreter.promised_numbers import may_return_tensor, returned
from perflint.semantics.interpreter.settled import by_returns
from perflint.semantics.lattice import completed, union, widen
from perflint.semantics.module import Module
from perflint.semantics.questions import WHOLE
from perflint.semantics.structure import CONSTRUCTORS, FunctionInfo, walk
from perflint.semantics.values import (
    NEVER,
    NONE,
    ON_CPU,
    UNKNOWN,
    Const,
    Device,
    DeviceValue,
    Evidence,
    Function,
    Instance,
    Mapping,
    Scalar,
    Sequence,
    Tensor,
    Unknown,
    Value,
)

_MOST_CONTEXTS = 100
"""The number of kinds of calls of one function that are kept apart."""

DEEPEST_CALL = 5
"""Calls into the project that are followed, one below the other."""


def invoke(frame: Frame, function: Function, arguments: Arguments) -> Value:
    """The result of calling a function of the project; remembered by its arguments."""
    frame.ran += 1
    module = frame.view.loaded(function.module)
    info = module.function(function.line, function.column) if module is not None else None
    if module is None or info is None:
        return UNKNOWN
    if frame.recorder is not None and function.module == frame.recorder.module:
        frame.recorder.note(function.line, function.column, _with_spread(info, function, arguments))
        if info.outer is not None and info.outer is frame.function:
            _see_later_names(frame, info)
    declared = _declared_result(frame, module, info)
    is_number = may_return_tensor(declared, info, arguments)
    if _is_plain(declared) and not is_number and "setattr" not in info.calls:
        return declared
    if not function.plain and decorators.is_wrapped(info):
        value = decorators.call(frame, module, info, function, arguments)
        if not value.is_unknown and value is not NEVER:
            return refine(value, declared)
    arguments, key = _kind_of_call(frame, function, info, arguments)
    value = _remembered(frame, function, info, arguments, key, declared)
    return returned(value, declared) if is_number else value


def _see_later_names(frame: Frame, info: FunctionInfo) -> None:
    """Keep the names of the function around a nested one that are bound after it, as they are at its call."""
    seen = frame.view.state(frame.module).closures.get((info.node.lineno, info.node.col_offset), {})
    for name in info.names - seen.keys():
        value = (frame.names or {}).get(name)
        if value is not None:
            seen[name] = value


def _with_spread(info: FunctionInfo, function: Function, arguments: Arguments) -> Arguments:
    """The arguments of a call, with `**options` as a value for each parameter that it may fill."""
    if arguments.spread is None:
        return arguments
    filled = tuple([(name, arguments.spread) for name in _filled(info, function, arguments)])
    return Arguments(arguments.positional, (*arguments.keywords, *filled))


def _kind_of_call(
    frame: Frame, function: Function, info: FunctionInfo, arguments: Arguments
) -> tuple[Arguments, CallKey]:
    """The arguments of a call without details that its result does not depend on, and the key of such calls."""
    texts = _compared(info)
    arguments = Arguments(
        tuple([_passed(widen(value), texts) for value in arguments.positional]),
        tuple([(name, _passed(widen(value), texts)) for name, value in arguments.keywords]),
        arguments.unpacked,
        _passed(widen(arguments.rest)),
        arguments.spread,
    )
    more = (("*", arguments.rest), ("**", arguments.spread or UNKNOWN)) if arguments.unpacked else ()
    key = CallKey(function, arguments.positional, (*arguments.keywords, *more), frame.constructs)
    contexts = frame.budget.contexts.setdefault(function, set())
    if key not in contexts and len(contexts) >= _MOST_CONTEXTS:
        # Called in too many ways to tell them apart: once more for all others.
        arguments = Arguments(unpacked=True)
        key = CallKey(function, (), (), frame.constructs)
    contexts.add(key)
    return arguments, key


def _remembered(
    frame: Frame, function: Function, info: FunctionInfo, arguments: Arguments, key: CallKey, declared: Value
) -> Value:
    """The result of a call from memory, or of a run of the function; `declared` if the budget does not allow one."""
    memory, budget = frame.view.memory, frame.budget
    mark = (key, frame.depth)
    known = memory.results.get(key) or memory.results_at.get(mark)
    if known is not None and memory.holds(known.effects):
        memory.replay(known.effects)
        return known.value
    # Other code gives the result, mostly on the device of the arguments.
    promised = declared if isinstance(declared, Unknown) else _beside(declared, arguments)
    if frame.depth >= DEEPEST_CALL:
        budget.too_deep += 1
        return promised
    if memory.assumes(key):
        return memory.open[key].assumed  # type: ignore[no-any-return]
    if mark in memory.passing:
        outcome: Outcome = memory.passed(mark)
        memory.replay(outcome.effects)
        return outcome.value
    if not budget.allows(info.size):
        memory.cut()
        return promised
    too_deep = budget.too_deep
    start = memory.begin(key, NEVER)
    try:
        with memory.call() as effects:
            value = _followed(frame, function, arguments, key, start, info.size)
            memory.settle(effects)
    finally:
        rests_on = memory.end(key, start)
    outcome = Outcome(_completed(function, value, declared, promised, arguments), effects)
    if rests_on != WHOLE:
        memory.keep(mark, outcome, rests_on)
    elif budget.too_deep == too_deep:
        memory.results[key] = outcome
    else:
        # It holds for calls of this depth only.
        memory.results_at[mark] = outcome
    return outcome.value


def _beside(declared: Value, arguments: Arguments) -> Value:
    """A declared result, with its tensors on the device of the arguments."""
    return placed(declared, made_of(arguments.values()).near, Device.UNKNOWN)


def _completed(function: Function, value: Value, declared: Value, promised: Value, arguments: Arguments) -> Value:
    """The result of a run, with the promised one for the parts that the run leaves open."""
    if value is NEVER or _contradicts(value, declared):
        value = promised if value is not NEVER or _is_of_host(arguments) else _of_object(function, promised)
    elif value.is_unknown:
        value = refine(value, promised)
    return widen(value)


def _is_of_host(arguments: Arguments) -> bool:
    """True if a call passes a tensor on the CPU."""
    tensors = (value.tensor for value in arguments.values())
    return any(tensor is not None and not tensor.off_host for tensor in tensors)


def _of_object(function: Function, promised: Value) -> Value:
    """The promised result of a method that other classes define: where the callers put its object."""
    receiver = function.receiver
    if not isinstance(receiver, Instance) or function.qualname.endswith("__"):
        return promised
    return placed(promised, Device.CALLER, Device.UNKNOWN)


def _followed(
    frame: Frame, function: Function, arguments: Arguments, key: CallKey, start: tuple[int, int], size: int
) -> Value:
    """The result of a call. One that calls itself is run again with the result found, until that stays the same."""
    memory = frame.view.memory
    question = memory.open[key]
    for _ in range(_MOST_REPEATS):
        frame.budget.left -= size
        value = activate(frame, function, arguments)
        if not question.is_assumed or value == question.assumed:
            return value
        memory.again(key, start, widen(value))
        if not frame.budget.allows(size):
            memory.cut()
            return value
    memory.cut()
    return UNKNOWN


_MOST_REPEATS = 4


def _compared(info: FunctionInfo) -> frozenset[str]:
    """The texts that a function compares names with: `kind == "mean"`, `kind in ("mean", "sum")`."""
    if info.texts is None:
        compares = [node for node in walk(info.node) if isinstance(node, ast.Compare)]
        given = (part for node in compares if isinstance(node.left, ast.Name) for part in node.comparators)
        each = (part for node in given for part in getattr(node, "elts", (node,)))
        info.texts = frozenset(
            part.value for part in each if isinstance(part, ast.Constant) and isinstance(part.value, str)
        )
    return info.texts


def _passed(value: Value, texts: frozenset[str] = frozenset()) -> Value:
    """An argument as the callee sees it: which number, text or object it is makes no other call.

    Not so for the `texts` that the callee compares names with.
    """
    if isinstance(value, Const):
        if value.value in texts:
            return value
        kind = type(value.value).__name__
        if kind in ("int", "float") or (kind == "str" and device_of(value) is Device.UNKNOWN):
            return Scalar(kind)
        return value
    if isinstance(value, Scalar):
        kept = value.default is None or device_of(value) is not Device.UNKNOWN
        return value if kept else Scalar(value.type)
    if isinstance(value, Sequence):
        items = None if value.items is None or len(value.items) > _MOST_PASSED else tuple(map(_passed, value.items))
        return Sequence(value.type, _passed(value.element), items)
    if isinstance(value, Mapping):
        return Mapping(_passed(value.element), tuple([(name, _passed(inner)) for name, inner in value.items]))
    if isinstance(value, Instance):
        return Instance(value.cls, value.arguments if value.cls.startswith(_TELLING) else None, graphs=value.graphs)
    return value


def any_such(value: Value) -> Value:
    """The arguments of other callers where this one passes a literal; devices are mostly the same."""
    if isinstance(value, Const) and value != NONE:
        named = isinstance(value.value, str) and device_of(value) is not Device.UNKNOWN
        return value if named else Scalar(type(value.value).__name__)
    return value


_MOST_PASSED = 8
_TELLING = (
    "torch.nn.Sequential",
    "torch.nn.ModuleList",
    "torch.nn.ModuleDict",
    "torch.distributions.",
    "torch.optim.",
    "torch.amp.GradScaler",
    "torch.cuda.amp.GradScaler",
    "torch.nn.utils.rnn.PackedSequence",
)
"""Classes whose arguments decide the results of their methods: the device of samples, waits, calls of functions."""


def _is_plain(value: Value) -> bool:
    """True if an annotation leaves nothing unknown: numbers, texts, None, or tuples of these."""
    if value is NEVER:
        return False
    return all(
        isinstance(m, Scalar) or m == NONE or (isinstance(m, Sequence) and m.type != "batch" and _is_plain(m.element))
        for m in value.members
    )


def is_moved(value: Value | None) -> TypeGuard[Unknown]:
    """True for something unknown whose device is known: it was moved there."""
    return isinstance(value, Unknown) and (value.moved or value == ON_CPU)


def refine(value: Value, declared: Value) -> Value:
    """The inferred value, refined by the declared one."""
    if isinstance(value, Unknown) or value is NEVER:
        return value if is_moved(value) and isinstance(declared, Unknown) else declared
    if isinstance(declared, Unknown) or value == declared:
        return value
    if isinstance(declared, Tensor):
        # The annotation decides that it is a tensor, the body decides its device.
        tensor = value.tensor
        return declared if tensor is None else tensor.with_(evidence=max(tensor.evidence, declared.evidence))
    if value.is_unknown:
        return completed(value, declared)
    if isinstance(declared, Sequence) and isinstance(value, Sequence) and declared.items is not None:
        known = value.items if value.items is not None else (value.element,) * len(declared.items)
        if len(known) == len(declared.items):
            items = tuple(refine(one, other) for one, other in zip(known, declared.items, strict=True))
            return Sequence(value.type, union(items), items)
    if isinstance(declared, DeviceValue):
        return value if isinstance(value, (DeviceValue, Const)) else declared
    return value


def _contradicts(value: Value, declared: Value) -> bool:
    """True if numbers in a list or tuple are promised, and something else was found among the outcomes."""
    if not isinstance(declared, Sequence) or not _is_plain(declared.element):
        return False
    return not all(isinstance(member, Sequence) for member in value.members)


def _declared_result(frame: Frame, module: Module, info: FunctionInfo) -> Value:
    if isinstance(info.node, ast.Lambda) or info.node.returns is None:
        return UNKNOWN
    key = (module.name, info.node.lineno, info.node.col_offset)
    known = frame.view.memory.declared.get(key)
    if known is None:
        inner = Frame(frame.view, module, frame.budget, names={})
        compute = partial(annotated, inner, info.node.returns, Device.UNKNOWN)
        known = frame.view.memory.remembered(frame.view.memory.declared, key, compute, UNKNOWN)
    return known


def activate(frame: Frame, function: Function, arguments: Arguments) -> Value:
    """Run a project function on arguments."""
    module = frame.view.loaded(function.module)
    info = module.function(function.line, function.column) if module is not None else None
    if module is None or info is None:
        return UNKNOWN
    frame.view.project.go_on()
    inner = enter(frame, module, info, function, arguments)
    return run_body(inner, info)


def run_body(inner: Frame, info: FunctionInfo) -> Value:
    """Run a function's body in its frame and return its result."""
    if isinstance(info.node, ast.Lambda):
        return inner.evaluate(info.node.body)
    given = () if inner.names is None else tuple(inner.names.values())
    inner.run(info.node.body)
    if info.is_generator:
        return Sequence("iterator", union(inner.yields))
    is_stub = decorator_names(info.node) & {"abstractmethod", "overload"} or _is_left_out(info.node.body[-1])
    if inner.names is not None and not is_stub:
        inner.returns.append(NONE)
    result = by_returns(inner.returns, given)
    if decorator_names(info.node) & {"contextmanager", "asynccontextmanager"}:
        return Sequence("iterator", union(inner.yields))
    return result


def _is_left_out(last: ast.stmt) -> bool:
    """True if a body is only `...`: a protocol's method, whose annotation says it all."""
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...


def enter(frame: Frame, module: Module, info: FunctionInfo, function: Function, arguments: Arguments | None) -> Frame:
    """The frame of an activation; without arguments, that of a function without known callers."""
    closure: Names = dict(function.captured)
    if closure and arguments is not None:
        # It is bound once it is made, so that it can call itself.
        closure[info.name] = Function(
            function.module, function.qualname, function.line, function.column, captured=function.captured
        )
    else:
        closure = frame.view.state(module).closures.get((function.line, function.column), closure)
    inner = Frame(
        frame.view,
        module,
        frame.budget,
        names={},
        outer=(closure,) if closure else (),
        function=info,
        owner=function.owner,
        receiver=function.receiver,
        depth=frame.depth + (0 if arguments is None else 1),
    )
    inner.constructs = _constructs(frame, info, function, arguments)
    inner.names = _parameters(inner, info, function, arguments)
    return inner


def _constructs(frame: Frame, info: FunctionInfo, function: Function, arguments: Arguments | None) -> bool:
    """True if an activation makes a module that is still on the CPU."""
    if arguments is not None and frame.constructs and function.receiver is not None:
        return True
    constructs = info.constructs if arguments is None else bool(info.owner) and info.name in CONSTRUCTORS
    return constructs and (not function.owner or is_module_part(frame, function.owner))


def _parameters(inner: Frame, info: FunctionInfo, function: Function, arguments: Arguments | None) -> dict[str, Value]:
    """The values of all parameters in a call; without arguments, in a run of the function by itself."""
    node = info.node.args
    ordered = [*node.posonlyargs, *node.args]
    positional = list(arguments.positional) if arguments is not None else []
    if function.receiver is not None and ordered:
        positional.insert(0, function.receiver)
    given = {arg.arg: value for arg, value in zip(ordered, positional, strict=False)}
    if arguments is not None:
        given.update(arguments.keywords)
    device = parameter_device(inner, info)
    default_of = defaults(info.node)
    spread = None if arguments is None else arguments.spread
    filled = () if arguments is None or spread is None else _filled(info, function, arguments)
    names: dict[str, Value] = {}
    for arg in (*ordered, *node.kwonlyargs):
        passed = given.get(arg.arg)
        if _is_guess(passed) and _names_class(annotated(inner, arg.annotation)):
            # The caller only assumes a batch of tensors. The annotation says what the object is.
            passed = UNKNOWN
        if passed is None and arguments is not None and arg in node.args and arg.arg not in default_of:
            passed = arguments.rest if arguments.unpacked else None
        default = inner.evaluate(default_of[arg.arg]) if arg.arg in default_of else None
        if passed is not None and not passed.is_unknown:
            value = passed
        elif arguments is not None and not arguments.unpacked and passed is None and default is not None:
            value = default
        else:
            value = _expected(inner, info, arg, passed, default, device)
            if spread is not None and arg.arg in filled:
                value = _spread(value, spread, default, device)
        names[arg.arg] = parameter_placed(info, arg.arg, value)
    if info.owner and function.receiver is None:
        for position, arg in enumerate(ordered):
            names[arg.arg] = autograd.parameter(inner, info, position, names[arg.arg])
    is_whole = arguments is not None and not arguments.unpacked
    if node.vararg is not None:
        rest = tuple(positional[len(ordered) :])
        declared = annotated(inner, node.vararg.annotation, device)
        names[node.vararg.arg] = Sequence("tuple", union(rest), rest) if is_whole else Sequence("tuple", declared)
    if node.kwarg is not None:
        named = tuple([item for item in arguments.keywords if item[0] not in names]) if arguments is not None else ()
        declared = annotated(inner, node.kwarg.annotation, device)
        names[node.kwarg.arg] = Mapping(NEVER if is_whole else declared, named)
    return names


def _expected(
    inner: Frame, info: FunctionInfo, arg: ast.arg, passed: Value | None, default: Value | None, device: Device
) -> Value:
    """The value of a parameter from its own declaration and use, if the call passes nothing that is known."""
    near = Device.CALLER if is_on_cpu(arg.arg) else device
    value = schedules.item(inner, arg.arg, parameter(inner, info, arg, default, near))
    if is_moved(passed):
        value = placed(value, passed.near, near)
    return value if passed is None else refine(passed, value)


def _is_guess(value: Value | None) -> bool:
    """True for a batch that is assumed to hold tensors, by the name of the parameter alone."""
    tensor = value.tensor if isinstance(value, Sequence) and value.type == "batch" else None
    return tensor is not None and tensor.evidence <= Evidence.CONVENTION


def _names_class(value: Value) -> bool:
    """True if an annotation names a class whose attributes may be other things than tensors."""
    return isinstance(value, Instance)


def _filled(info: FunctionInfo, function: Function, arguments: Arguments) -> tuple[str, ...]:
    """The parameters that `f(**batch)` fills: those without a default, or whose default is None."""
    if arguments.spread is None:
        return ()
    node = info.node.args
    ordered = [*node.posonlyargs, *node.args]
    optional = {
        name
        for name, default in defaults(info.node).items()
        if not (isinstance(default, ast.Constant) and default.value is None)
    }
    start = len(arguments.positional) + (function.receiver is not None)
    given = dict(arguments.keywords)
    taken = (arg for arg in (*ordered[start:], *node.kwonlyargs) if not _is_of_number(arg.annotation))
    every = [arg.arg for arg in taken]
    return tuple([name for name in every if name not in given and name not in optional])


def _is_of_number(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id in ("bool", "complex", "float", "int", "str")


def _spread(value: Value, spread: Tensor, default: Value | None, device: Device) -> Value:
    """A parameter that is one of the tensors that `**batch` passes."""
    if spread.device is Device.UNKNOWN:
        spread = spread.with_(device=device, place="")
    if isinstance(value, Unknown):
        return spread if default is None else union([spread, default])
    tensor = value.tensor
    if tensor is None or spread.device not in (Device.CPU, Device.CUDA):
        return value
    kept = [member for member in value.members if member is not tensor]
    return union([tensor.with_(device=spread.device), *kept])


def parameter_device(frame: Frame, info: FunctionInfo) -> Device:
    """The assumed place of a function's tensor parameters if nothing else is known."""
    if frame.owner and gets_batch(info.name) and is_module(frame, frame.owner):
        return Device.MODEL
    return Device.CALLER


parts.activate = activate
