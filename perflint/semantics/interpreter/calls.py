"""Calls: the function, its arguments, its result."""

from __future__ import annotations

import ast

from perflint.semantics.facts import by_use, containers, distributions, named, tensors, tokenizers, torch_api
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.facts.devices import computed_near, made_of
from perflint.semantics.formats import attributes_shown
from perflint.semantics.interpreter import (
    builtin_calls,
    constructions,
    elsewhere,
    functions,
    library_calls,
    module_calls,
    narrowed,
    outside_calls,
    records,
    unmoved,
)
from perflint.semantics.interpreter.annotations import placed
from perflint.semantics.interpreter.frame import Applied, Frame, parts
from perflint.semantics.interpreter.lineage import facts_of, info_of, is_tensor_class, lineage
from perflint.semantics.lattice import join, union, widen
from perflint.semantics.structure import last_name, name_in, path_of, root_of, walk
from perflint.semantics.values import (
    NEVER,
    ON_CPU,
    PROMISE,
    UNKNOWN,
    Class,
    Const,
    Device,
    Evidence,
    Function,
    Instance,
    Mapping,
    Name,
    Partial,
    Sequence,
    Tensor,
    TypeForm,
    Union,
    Unknown,
    Value,
)

_RESHAPING = frozenset({"squeeze_", "unsqueeze_", "resize_", "resize_as_", "set_"})
"""Methods after which a tensor has other dimensions than before."""


def call(frame: Frame, node: ast.Call) -> Value:
    """The value of a call, whose target is recorded when the frame records."""
    callee = frame.evaluate(node.func)
    if callee == named.LOADER:
        # The callee is a function that makes a loader or loads a file, not a loader.
        callee = UNKNOWN
    arguments = _arguments(frame, node)
    if not isinstance(callee, Name) or any(isinstance(value, Function) for value in arguments.values()):
        frame.ran += 1
    if isinstance(callee, Name) and callee.name in _NAMING:
        arguments = _with_name(node, arguments, _NAMING[callee.name])
    if frame.recorder is not None and frame.recorder.keeps_calls:
        frame.recorder.passed[node] = callee, arguments
    if frame.recorder is not None:
        for argument, attribute in attributes_shown(node):
            shown = frame.evaluate(ast.Attribute(argument, attribute, ast.Load()))
            frame.recorder.shown.setdefault(argument, {})[attribute] = shown
    target, value = apply(frame, callee, arguments, node)
    if isinstance(callee, Function) and elsewhere.may_run_other(frame, callee):
        value = union([value, UNKNOWN])
    value = unmoved.beside_operand(node, target, unmoved.of_method(frame, node, callee, arguments, value))
    if frame.view.project.declared.gives_gpu_tensor(target):
        value = _on_gpu(value)
    if frame.narrowed:
        narrowed.forget_written(frame, node)
    if isinstance(callee, Function) and elsewhere.writes_argument(frame, callee):
        for given in (*node.args, *(keyword.value for keyword in node.keywords)):
            value_given = frame.evaluate(given) if path_of(given) else UNKNOWN
            if isinstance(value_given, (Sequence, Mapping)):
                frame.rebind(given, elsewhere.of_anything(value_given))
    if isinstance(node.func, ast.Attribute):
        _grow(frame, callee, node.func, arguments)
        if node.func.attr in _RESHAPING and isinstance(node.func.value, ast.Name) and isinstance(value, Tensor):
            frame.rebind(node.func.value, value)
    if not target and isinstance(node.func, ast.Attribute):
        if frame.recorder is not None and frame.recorder.module == frame.module.name:
            _note_by_name(frame, node.func.attr, arguments)
        target, value = _by_name_alone(frame, node, callee, arguments, value)
    if target and frame.recorder is not None:
        frame.recorder.targets[node] = target
    if not value.is_unknown:
        return value
    encoded = tokenizers.encoded(last_name(node.func), arguments)
    if encoded is not None:
        return encoded
    *known, made = value.members
    if isinstance(made, Unknown) and not target.startswith("torch."):
        made = named.made_by(last_name(node.func), made)
    if isinstance(made, Unknown) and made.near is Device.UNKNOWN:
        made = made_of((callee, *arguments.values()))
    return union([*known, made])


def _on_gpu(value: Value) -> Value:
    """The result of a function that the settings declare to give a tensor on the GPU."""
    known = value.tensor
    return Tensor(Device.CUDA, evidence=Evidence.ANNOTATION) if known is None else known.with_(device=Device.CUDA)


_NAMING = {"builtins.setattr": 1, "builtins.getattr": 1} | {
    f"torch.nn.Module.{name}": 0 for name in ("register_buffer", "register_parameter", "register_module", "add_module")
}
"""Functions that set or get an attribute by its name, and which argument that is."""


def _with_name(node: ast.Call, arguments: Arguments, position: int) -> Arguments:
    """Arguments in which `f"layer_{i}"` is the pattern "layer_*"."""
    if position >= len(node.args) or not isinstance(node.args[position], ast.JoinedStr) or arguments.unpacked:
        return arguments
    given = list(arguments.positional)
    given[position] = Const(name_in(node.args[position]))
    return Arguments(tuple(given), arguments.keywords)


def _note_by_name(frame: Frame, name: str, arguments: Arguments) -> None:
    """Remember the arguments for a method of this file with this name, called on an unknown object."""
    assert frame.recorder is not None
    for method in frame.module.structure.methods.get(name, ()):
        frame.recorder.note(method.node.lineno, method.node.col_offset, arguments)


def _grow(frame: Frame, callee: Value, func: ast.Attribute, arguments: Arguments) -> None:
    """Rebind a list or dict that a method puts something into."""
    receiver = callee.receiver if isinstance(callee, Name) else None
    if receiver is None or func.attr not in builtin_calls.CHANGES or frame.names is None:
        return
    path = path_of(func.value)
    if path in frame.names or (path.startswith("self.") and frame.owner) or isinstance(func.value, ast.Subscript):
        element = frame.iterate(arguments.at(0))
        changed = (
            containers.grown(receiver, func.attr, arguments, element)
            if isinstance(receiver, Instance)
            else builtin_calls.grown(receiver, func.attr, arguments, element)
        )
        if changed is not None:
            frame.rebind(func.value, changed)


def _arguments(frame: Frame, node: ast.Call) -> Arguments:
    positional: list[Value] = []
    keywords: list[tuple[str, Value]] = []
    unpacked = False
    rest: Value = UNKNOWN
    spread: Value = NEVER
    for arg in node.args:
        value = frame.evaluate(arg)
        if not isinstance(arg, ast.Starred) and unpacked:
            # Its position is unknown.
            rest = join(rest, value)
        elif not isinstance(arg, ast.Starred):
            positional.append(value)
        elif isinstance(value, Sequence) and value.items is not None and not unpacked:
            positional += value.items
        else:
            unpacked, rest = True, frame.iterate(value)
    for keyword in node.keywords:
        value = frame.evaluate(keyword.value)
        if keyword.arg is not None:
            keywords.append((keyword.arg, value))
        elif isinstance(value, Mapping):
            keywords += value.items
            if value.element is not NEVER and not value.items:
                unpacked, spread = True, join(spread, value.element)
        else:
            is_batch = isinstance(value, Sequence) and value.type == "batch"
            unpacked, spread = True, join(spread, frame.iterate(value) if is_batch else UNKNOWN)
    tensors_of = spread if isinstance(spread, Tensor) else None
    names_all = all(keyword.arg is not None for keyword in node.keywords)
    return Arguments(tuple(positional), tuple(keywords), unpacked, rest, tensors_of, names_all)


def apply(frame: Frame, callee: Value, arguments: Arguments, node: ast.Call | None = None) -> Applied:
    """Call a value."""
    if isinstance(callee, Name):
        return outside_calls.apply(frame, callee, arguments, node)
    if isinstance(callee, Function):
        return _function_name(callee), functions.invoke(frame, callee, arguments)
    if isinstance(callee, Class):
        made = _construct(frame, callee.name, arguments, node)
        return _distribution(frame, callee.name) or callee.name, made
    if isinstance(callee, Instance):
        return module_calls.apply(frame, callee, arguments)
    if isinstance(callee, Partial):
        if callee.function == PROMISE:
            return "", placed(callee.positional[0], made_of(arguments.values()).near, Device.UNKNOWN)
        merged = Arguments(
            (*callee.positional, *arguments.positional),
            (*callee.keywords, *arguments.keywords),
            arguments.unpacked,
            arguments.rest,
        )
        return apply(frame, callee.function, merged, node)
    if isinstance(callee, TypeForm):
        return apply(frame, callee.base, arguments, node)
    if isinstance(callee, Unknown) and callee.moved:
        # Of all that is moved to a GPU, only modules are called.
        return module_calls.apply(frame, Instance("torch.nn.Module"), arguments)
    if isinstance(callee, Union):
        outcomes = [apply(frame, member, arguments, node) for member in _without_promises(callee)]
        names = [name for name, _ in outcomes if name]
        # A method that arrays have too is the tensor's, if it may be one; one of the project is followed anyway.
        names.sort(key=lambda name: (not name.startswith("torch.Tensor."), not name.startswith("torch.")))
        return names[0] if names else "", union(value for _, value in outcomes)
    return "", NEVER if callee is NEVER else UNKNOWN


def _without_promises(callee: Union) -> list[Value]:
    """The alternatives of a callee; an annotation adds nothing to functions that are known."""
    known = any(isinstance(member, Function) for member in callee.members)
    return [each for each in callee.members if not (known and isinstance(each, Partial) and each.function == PROMISE)]


def _function_name(function: Function) -> str:
    return f"{function.module}.{function.qualname}"


def _construct(frame: Frame, name: str, arguments: Arguments, node: ast.Call | None) -> Value:
    """An object of a class of the project."""
    if is_tensor_class(frame, name):
        data = arguments.at(0).tensor
        return Tensor(Device.CPU if data is None else data.device, evidence=Evidence.CERTAIN)
    facts = facts_of(frame, name)
    declared = records.field_names(frame, name) if facts is not None else ()
    fields = declared or torch_api.parameters(_distribution(frame, name))
    bound: list[tuple[str, Value]] = []
    for position, value in enumerate(arguments.positional):
        bound.append((fields[position] if fields and position < len(fields) else str(position), value))
    if facts is not None:
        constructions.note(frame, name, (*bound, *arguments.keywords), arguments)
    given = None if arguments.unpacked else (*bound, *arguments.keywords)
    return widen(Instance(name, given, frame.origin(node)))


def _distribution(frame: Frame, name: str) -> str:
    """The distribution of torch whose constructor a class of the project inherits; "" if it inherits none."""
    for cls in lineage(frame, name):
        info = info_of(frame, cls)
        if info is None:
            return cls if distributions.is_distribution(cls) else ""
        if "__init__" in info.methods:
            return ""
    return ""


# Values that only their use shows


def _by_name_alone(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments, value: Value) -> Applied:
    """A method that only tensors, or only modules, answer, called on something unknown."""
    assert isinstance(node.func, ast.Attribute)
    name = node.func.attr
    if name in torch_api.tensor_only_methods() or (value.is_unknown and _shows_tensor(frame, node, callee)):
        used = Tensor(computed_near((callee,)), evidence=Evidence.USE)
        return f"torch.Tensor.{name}", tensors.method(name, used, arguments)
    if name in by_use.ACCELERATOR_ONLY:
        full = f"accelerate.Accelerator.{name}"
        return full, library_calls.method(frame, full, value, arguments)
    if name in by_use.MODULE_ONLY or (name == "parameters" and not arguments.positional):
        made = module_calls.method(frame, name, Instance("torch.nn.Module"), arguments)
        return f"torch.nn.Module.{name}", _by_use(made)
    if isinstance(value, Unknown) and _stays_on_cpu(callee, node, name, arguments):
        return "", ON_CPU
    return "", _moved(name, arguments) if isinstance(value, Unknown) and name in ("cuda", "to") else value


def _moved(method: str, arguments: Arguments) -> Unknown:
    """The result of moving something unknown off the CPU."""
    if method == "cuda":
        return Unknown(Device.CUDA, moved=True)
    place = arguments.get("device", 0) or UNKNOWN
    # Something unknown may be a dtype.
    device = Device.UNKNOWN if place.is_open else tensors.device_of(place)
    return Unknown(device, moved=True) if device in (Device.CUDA, Device.CALLER, Device.MODEL) else UNKNOWN


def _stays_on_cpu(callee: Value, node: ast.Call, name: str, arguments: Arguments) -> bool:
    """True for `x.cpu()` and `x.to("cpu")`, and for a method of tensors of something unknown on the CPU."""
    if name == "cpu":
        return not node.args and not node.keywords
    if name == "to" and len(arguments.positional) == 1 and not arguments.keywords:
        return tensors.device_of(arguments.positional[0]) is Device.CPU
    return callee == ON_CPU and name in torch_api.tensor_methods() - _MOVES


_MOVES = frozenset({"to", "cuda", "type", "type_as", "item", "tolist", "numpy", "size"})
"""Methods that may move a tensor, or give no tensor."""


def _shows_tensor(frame: Frame, node: ast.Call, callee: Value) -> bool:
    module = frame.module
    if callee.is_unknown and made_of((callee,)) != UNKNOWN and by_use.reads_number(node, _TORCH_ALONE):
        # The receiver is the result of unknown code on tensors, whatever else the file imports.
        return True
    if last_name(node) == "item" and _is_given_to_model(frame, node) and by_use.reads_number(node, _TORCH_ALONE):
        return True
    return by_use.shows_tensor(node, module.structure.parents) or by_use.reads_number(node, module.packages)


def _is_given_to_model(frame: Frame, node: ast.Call) -> bool:
    """True if a call is of an argument of a model's `forward`, or of an entry of one: models work on tensors."""
    info, root = frame.function, root_of(node.func)
    if info is None or root in ("", "self") or functions.parameter_device(frame, info) is not Device.MODEL:
        return False
    return any(given.arg == root for given in walk(info.node.args) if isinstance(given, ast.arg))


_TORCH_ALONE = frozenset({"torch"})


def _by_use(value: Value) -> Value:
    """The result of an object whose type is only inferred from its use."""
    if isinstance(value, Tensor):
        return value.with_(evidence=Evidence.USE)
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(map(_by_use, value.items))
        return Sequence(value.type, _by_use(value.element), items)
    return union(map(_by_use, value.members)) if isinstance(value, Union) else value


parts.apply = apply
