"""Parameters by the known calls of a function, in its file and in others, and by the functions that get them."""

from __future__ import annotations

import ast

from perflint.frozen import replace
from perflint.semantics.binders import defaults, on_cpu_by_default
from perflint.semantics.facts import by_use
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.facts.named import LOADER, parameter_placed
from perflint.semantics.facts.tensors import device_of
from perflint.semantics.interpreter import functions
from perflint.semantics.interpreter.annotations import placed, says_nothing
from perflint.semantics.interpreter.frame import Frame, Names, Recorder
from perflint.semantics.interpreter.inherited import passed_by_bases
from perflint.semantics.interpreter.passed import passed_to_torch
from perflint.semantics.lattice import join, union
from perflint.semantics.structure import FunctionInfo, last_name, root_of, walk
from perflint.semantics.values import (
    NONE,
    UNKNOWN,
    Array,
    Device,
    DeviceValue,
    Evidence,
    Instance,
    Kind,
    Mapping,
    Scalar,
    Sequence,
    Tensor,
    Unknown,
    Value,
    scalar_type,
)
from perflint.semantics.view import Every


def needs_callers(info: FunctionInfo) -> bool:
    """True if calls may tell more of a parameter, so that the callers of the function are run first."""
    args = info.node.args
    ordered = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    if info.owner and ordered and ordered[0].arg in ("self", "cls"):
        ordered = ordered[1:]
    ordered += [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    on_cpu = on_cpu_by_default(info.node)
    return any(
        arg.annotation is None
        or arg.arg in on_cpu
        or (_is_any(arg.annotation) or _is_tensor(arg.annotation) or _is_of_device(arg.annotation))
        for arg in ordered
    )


def _is_of_device(annotation: ast.expr) -> bool:
    """True for `torch.device | None`, `Optional[str]` and the like: the calls pass the devices of tensors."""
    if isinstance(annotation, (ast.Name, ast.Attribute)):
        return False
    return not {"device", "str"}.isdisjoint(map(_called, walk(annotation)))


def _is_any(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Subscript):
        held = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        if _called(annotation.value) in _MAPPINGS:
            held = held[1:]
        elif _called(annotation.value) not in _LISTS:
            return False
        told = [each for each in held if not (isinstance(each, ast.Constant) and each.value is ...)]
        return bool(told) and all(_called(each) in _OPEN for each in told)
    return _called(annotation) in _OPEN | _MAPPINGS | _LISTS


_OPEN = frozenset("Any object Iterable Iterator Sequence Collection Generator".split())
"""Annotations that do not restrict the argument."""
_MAPPINGS = frozenset("dict Dict Mapping MutableMapping".split())
_LISTS = frozenset("list List tuple Tuple".split())
"""Annotations that do not tell the elements if they stand alone, or with open ones: `dict[str, Any]`."""


def _is_tensor(annotation: ast.expr | None) -> bool:
    """True for `Tensor`, and for `Tensor | list[float]`."""
    if isinstance(annotation, ast.BinOp):
        return _is_tensor(annotation.left) or _is_tensor(annotation.right)
    return _called(annotation) == "Tensor"


def _called(annotation: ast.AST | None) -> str:
    """The last name of a plain annotation."""
    return annotation.attr if isinstance(annotation, ast.Attribute) else getattr(annotation, "id", "")


def take_observed(inner: Frame, info: FunctionInfo, recorder: Recorder) -> None:
    """Parameters get the arguments of known calls, as far as these tell more than annotations and defaults do."""
    if not takes_arguments(info, is_bound=inner.receiver is not None):
        # Other files are not asked in vain.
        return
    seen = [
        *recorder.passed_to((info.node.lineno, info.node.col_offset)),
        *inner.view.outside(inner.module, info),
    ]
    if not recorder.any_caller and not any(map(_says_anything, seen)):
        seen = list(map(_without_dicts, passed_by_bases(inner, info))) or seen
    if not seen or inner.names is None:
        return
    if recorder.any_caller and not _is_own(inner, info) and not _is_of_program(inner, info):
        return
    recorder.informed.add((info.node.lineno, info.node.col_offset))
    args = info.node.args
    ordered = [*args.posonlyargs, *args.args]
    if inner.receiver is not None:
        ordered = ordered[1:]
    device = functions.parameter_device(inner, info)
    are_whole = not any(arguments.unpacked for arguments in seen)
    for index, arg in enumerate((*ordered, *args.kwonlyargs)):
        says_all = not _says_nothing(arg)
        position = index if index < len(ordered) else None
        passed = [arguments.get(arg.arg, position) for arguments in seen]
        # A call with `**options` that does not name the parameter tells nothing of it.
        passed = [each for each, call in zip(passed, seen, strict=True) if each is not None or not call.unpacked]
        if not passed:
            continue
        _device_of_tensors(inner, arg, passed)
        if _device_of_calls(inner, arg, passed):
            continue
        if says_all and not _is_tensor(arg.annotation):
            _tensor_for_number(inner, arg, passed)
            continue
        if says_all:
            _number_or_not(inner, arg, passed)
            if are_whole:
                _on_host(inner, info, arg, position, passed)
                _otherwise(inner, info, arg, position, passed)
            continue
        known = [value for value in passed if value is not None and (not value.is_unknown or _is_placed(value))]
        are_all = len(known) == len([value for value in passed if value is not None])
        if known and (are_all or any(map(_is_there, known))):
            value = union(functions.any_such(_placed(value, device)) for value in _agreed(known))
            if not are_all:
                # The tensor or object that one call passes is there, whatever the others pass.
                value = union([value, UNKNOWN])
            if value == NONE and not (_is_own(inner, info) or inner.view.every_call(inner.module, info).are_all):
                # Other callers pass something, or the function would not have the parameter.
                continue
            _refine(inner, arg, value, len(known) < len(passed))
            inner.names[arg.arg] = parameter_placed(info, arg.arg, inner.names[arg.arg])
    _take_rest(inner, args, len(ordered), seen)


def _says_anything(arguments: Arguments) -> bool:
    values = (*arguments.positional, *(value for _, value in arguments.keywords))
    return arguments.unpacked or not all(value.is_unknown for value in values)


def _without_dicts(arguments: Arguments) -> Arguments:
    """The arguments that a base class passes. Its dicts have entries for all classes, which differ between these."""

    def known(value: Value) -> Value:
        return UNKNOWN if isinstance(value, Mapping) else value

    keywords = tuple([(name, known(value)) for name, value in arguments.keywords])
    return replace(arguments, positional=tuple(map(known, arguments.positional)), keywords=keywords)


def take_passed(inner: Frame, info: FunctionInfo, names: Names | None) -> None:
    """Parameters that are only guessed are tensors if functions of torch get them that take nothing else.

    They are modules if they are called, and have a mode or a state.
    """
    args, default_of = info.node.args, defaults(info.node)
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        value = (names or {}).get(arg.arg, NONE)
        if value == NONE or not _says_nothing(arg) or not all(map(_is_guess, value.members)):
            continue
        if names is not None and value.is_unknown and _is_module(info, arg.arg):
            names[arg.arg] = Instance("torch.nn.Module")
            continue
        if info.passed is None:
            info.passed = passed_to_torch(info, inner.module.imports)
        if names is not None and arg.arg in info.passed:
            place = Device.CPU if _is_on_host(value) else functions.parameter_device(inner, info)
            guessed = value.tensor or Tensor(place)
            found: list[Value] = [guessed.with_(evidence=Evidence.CONVENTION)]
            default = default_of.get(arg.arg)
            if NONE in value.members or (isinstance(default, ast.Constant) and default.value is None):
                found.append(NONE)
            names[arg.arg] = parameter_placed(info, arg.arg, union(found))


def _is_module(info: FunctionInfo, name: str) -> bool:
    return name in info.calls and by_use.is_called_module(info.uses.get(name, set()))


def _is_guess(value: Value) -> bool:
    return value == NONE or isinstance(value, Unknown) or (isinstance(value, Tensor) and value.evidence is Evidence.USE)


def takes_arguments(info: FunctionInfo, is_bound: bool) -> bool:
    """True if calls may tell more of a parameter than its annotation does. A bound method takes its object first."""
    args = info.node.args
    ordered = [*args.posonlyargs, *args.args][is_bound:]
    every = [*ordered, *args.kwonlyargs]
    rest = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return (
        any(map(_says_nothing, (*every, *rest)))
        or bool(on_cpu_by_default(info.node))
        or any(
            _is_tensor(arg.annotation) or ("dev" in arg.arg and arg.annotation and _is_of_device(arg.annotation))
            for arg in every
        )
    )


def _take_rest(inner: Frame, args: ast.arguments, ordered: int, seen: list[Arguments]) -> None:
    """`*args` and `**kwargs` without an annotation hold what the calls pass beyond the other parameters."""
    assert inner.names is not None
    if args.vararg is not None and _says_nothing(args.vararg):
        values = [value for each in seen for value in (*each.positional[ordered:], *([each.rest] * each.unpacked))]
        if any(value.tensor is not None for value in values):
            inner.names[args.vararg.arg] = Sequence("tuple", _any_of(values))
    if args.kwarg is not None and _says_nothing(args.kwarg):
        own = {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
        values = [value for each in seen for name, value in each.keywords if name not in own]
        values += [each.spread or UNKNOWN for each in seen if each.unpacked]
        if any(value.tensor is not None for value in values):
            inner.names[args.kwarg.arg] = Mapping(_any_of(values))


def _any_of(values: list[Value]) -> Value:
    members = [member for value in values for member in value.members]
    return union(map(functions.any_such, _agreed(members)))


def _says_nothing(arg: ast.arg) -> bool:
    return arg.annotation is None or _is_any(arg.annotation)


def _number_or_not(inner: Frame, arg: ast.arg, passed: list[Value | None]) -> None:
    """Make a parameter a tensor of one integer if all calls pass such tensors: `for t in times: step(x, t)`."""
    assumed = (inner.names or {}).get(arg.arg)
    kinds = {(value.kind, value.rank) if isinstance(value, Tensor) else None for value in passed}
    if inner.names is not None and isinstance(assumed, Tensor) and kinds == {(Kind.INT, 0)}:
        inner.names[arg.arg] = assumed.with_(kind=Kind.INT, rank=0)


def _tensor_for_number(inner: Frame, arg: ast.arg, passed: list[Value | None]) -> None:
    """Make a parameter a tensor if all known calls pass tensors for a number: the annotation is wrong."""
    assumed = (inner.names or {}).get(arg.arg)
    if inner.names is None or not isinstance(assumed, Scalar) or assumed.type not in ("int", "float", "complex"):
        return
    if all(map(_is_sure_number, passed)):
        device = functions.parameter_device(inner, inner.function) if inner.function is not None else Device.UNKNOWN
        inner.names[arg.arg] = union(_placed(value, device) for value in passed if value is not None)


def _is_sure_number(value: Value | None) -> bool:
    """True for a tensor that may hold one number."""
    return isinstance(value, Tensor) and value.evidence >= Evidence.ANNOTATION and value.rank in (0, None)


def _device_of_tensors(inner: Frame, arg: ast.arg, passed: list[Value | None]) -> None:
    """Take the device of tensors that all calls pass for a parameter such as `device: str | None = None`."""
    assumed = (inner.names or {}).get(arg.arg, UNKNOWN)
    optional = [member == NONE or scalar_type(member) == "str" for member in assumed.members]
    is_device = [isinstance(member, DeviceValue) for member in assumed.members]
    devices = {value.device if isinstance(value, DeviceValue) else None for value in passed}
    if inner.names is None or not any(optional) or not all(map(any, zip(optional, is_device, strict=True))):
        return
    if len(devices) == 1 and not devices.isdisjoint((Device.CALLER, Device.MODEL, Device.CUDA)):
        inner.names[arg.arg] = union(value for value in passed if value is not None)


def _device_of_calls(inner: Frame, arg: ast.arg, passed: list[Value | None]) -> bool:
    """Take the device that known calls pass in place of the default of `device="cpu"`; True if it is taken."""
    assumed = (inner.names or {}).get(arg.arg)
    default = assumed.default if isinstance(assumed, Scalar) else assumed
    if inner.names is None or default is None or device_of(default) is not Device.CPU:
        return False
    given = [value for value in passed if value is not None and device_of(value) in _OFF_CPU]
    if given:
        inner.names[arg.arg] = union(given)
    return bool(given)


_OFF_CPU = frozenset({Device.CALLER, Device.MODEL, Device.CUDA})


def _on_host(inner: Frame, info: FunctionInfo, arg: ast.arg, position: int | None, passed: list[Value | None]) -> None:
    """Put a tensor parameter on the CPU if all calls of the function are known, and pass tensors on the CPU.

    Some of the calls may pass lists instead.
    """
    assumed = (inner.names or {}).get(arg.arg)
    members = () if assumed is None else assumed.members
    placed = [isinstance(member, Tensor) and member.device is Device.CALLER for member in members]
    if inner.names is None or not any(placed) or not any(map(_holds_tensor, passed)):
        return
    if all(map(_is_on_host, passed)) and (_is_own(inner, info) or _all_on_host(inner, info, arg, position)):
        on_host = (m.with_(device=Device.CPU, place="") if isinstance(m, Tensor) else m for m in members)
        inner.names[arg.arg] = union(on_host)


def _all_on_host(inner: Frame, info: FunctionInfo, arg: ast.arg, position: int | None) -> bool:
    """True if the project alone calls a function, always with values on the CPU."""
    every = inner.view.every_call(inner.module, info)
    return every.are_all and all(map(_is_on_host, _given(every, arg, position)))


def _given(every: Every, arg: ast.arg, position: int | None) -> list[Value | None]:
    """The value of a parameter in each of some calls; None if a call leaves it out or its value is unknown."""
    calls = every.arguments
    return [None if each is None or each.unpacked else each.get(arg.arg, position) for each in calls]


def _otherwise(
    inner: Frame, info: FunctionInfo, arg: ast.arg, position: int | None, passed: list[Value | None]
) -> None:
    """Replace a tensor with the numbers or arrays that all known calls pass: the annotation is wrong.

    A function that uses attributes of a number takes a tensor: the annotation of the caller is wrong.
    """
    assumed = (inner.names or {}).get(arg.arg)
    if inner.names is None or not isinstance(assumed, Tensor) or not all(map(_is_number_or_array, passed)):
        return
    if info.uses.get(arg.arg) and not all(isinstance(value, Array) for value in passed):
        return
    if all(map(_is_number_or_array, _given(inner.view.every_call(inner.module, info), arg, position))):
        inner.names[arg.arg] = union(functions.any_such(value) for value in passed if value is not None)


def _is_number_or_array(value: Value | None) -> bool:
    return isinstance(value, Array) or (value is not None and scalar_type(value) in ("int", "float"))


def _is_there(value: Value) -> bool:
    return value.tensor is not None or any(isinstance(member, Instance) for member in value.members)


def _is_placed(value: Value) -> bool:
    """True for something unknown that was moved to a device."""
    return functions.is_moved(value) or _is_on_host(value)


def _is_on_host(value: Value | None) -> bool:
    """True for a tensor on the CPU, the result of `x.cpu()`, an array, and a list that holds no tensors."""
    return value is not None and all(map(_is_of_host, value.members))


def _is_of_host(member: Value) -> bool:
    if isinstance(member, Sequence):
        return member.tensor is None and member.element.tensor is None
    if isinstance(member, Unknown):
        return member.near is Device.CPU
    return isinstance(member, Array) or (isinstance(member, Tensor) and member.device is Device.CPU)


def _holds_tensor(value: Value | None) -> bool:
    return value is not None and (value.is_unknown or value.tensor is not None)


def _is_own(inner: Frame, info: FunctionInfo) -> bool:
    """True if a function is called only in its file, and not passed to other code."""
    private = info.outer is not None or (info.name.startswith("_") and not info.name.endswith("_"))
    if not private:
        return False
    structure = inner.module.structure
    for node in structure.every(ast.Name, ast.Attribute):
        if last_name(node) == info.name and isinstance(node.ctx, ast.Load):
            around = structure.parents.get(node)
            called = isinstance(around, ast.Call) and around.func is node
            if not called or (isinstance(node, ast.Attribute) and root_of(node) not in ("self", "cls")):
                return False
    return True


def _is_of_program(inner: Frame, info: FunctionInfo) -> bool:
    """True if a function belongs to a file that is run as a program, and no checked file imports it."""
    module, name = inner.module, info.qualname.partition(".")[0]
    return module.is_program and not inner.view.importers(module.name, name)


def _agreed(values: list[Value]) -> list[Value]:
    """The tensors that several calls pass: one on an unknown device is assumed to be on the device of the others."""
    devices = {value.device for value in values if isinstance(value, Tensor)} - _ELSEWHERE
    device = next(iter(devices)) if len(devices) == 1 else Device.UNKNOWN
    if device not in (Device.CUDA, Device.MODEL):
        return values
    return [
        value.with_(device=device, place="") if isinstance(value, Tensor) and value.device in _ELSEWHERE else value
        for value in values
    ]


_ELSEWHERE = frozenset({Device.UNKNOWN, Device.CALLER})


def _placed(value: Value, device: Device) -> Value:
    """The arguments of `forward` are on the module's device, if nothing else is known."""
    if device is Device.MODEL and isinstance(value, Tensor) and value.device in (Device.UNKNOWN, Device.CALLER):
        return value.with_(device=device, place="")
    return value


def _yields_batches(value: Value) -> bool:
    return isinstance(value, Sequence) or (isinstance(value, Instance) and value.cls == LOADER.cls)


def _refine(inner: Frame, arg: ast.arg, value: Value, may_default: bool) -> None:
    assert inner.names is not None
    assumed = inner.names[arg.arg]
    if functions.is_moved(value) and not assumed.is_unknown:
        inner.names[arg.arg] = placed(assumed, value.near, Device.CALLER)
        return
    tensor = assumed.tensor
    is_guess = assumed.is_unknown or (tensor is not None and tensor.evidence <= Evidence.USE)
    # Loaders by their names, and lists of anything.
    is_guess = is_guess or (assumed == LOADER and _yields_batches(value)) or says_nothing(assumed)
    # The name of a device by default, where the file passes devices.
    if is_guess or (isinstance(value, DeviceValue) and scalar_type(assumed) == "str"):
        elsewhere = isinstance(value, Tensor) and value.device is Device.UNKNOWN and not value.place
        inner.names[arg.arg] = value.with_(device=tensor.device) if elsewhere and tensor is not None else value  # type: ignore[attr-defined]
    elif isinstance(assumed, Tensor) and isinstance(value, Tensor) and assumed.kind is Kind.UNKNOWN:
        # A docstring tells neither the kind nor the rank.
        inner.names[arg.arg] = assumed.with_(kind=value.kind, rank=value.rank)
    elif may_default or not isinstance(assumed, Tensor):
        inner.names[arg.arg] = join(assumed, value) if value.tensor is not None else assumed
