"""Calls of modules and other objects, and of the methods of modules."""

from __future__ import annotations

from perflint.semantics.facts import packed_sequence, torch_api
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.facts.modules import RETURN_MODULE
from perflint.semantics.interpreter import functions, self_attributes, unmoved
from perflint.semantics.interpreter.annotations import placed
from perflint.semantics.interpreter.autograd import is_function
from perflint.semantics.interpreter.frame import Applied, Frame
from perflint.semantics.interpreter.lineage import is_module, lineage
from perflint.semantics.lattice import union
from perflint.semantics.values import (
    NONE,
    STR,
    UNKNOWN,
    Const,
    Device,
    Evidence,
    Function,
    Instance,
    Kind,
    Mapping,
    Name,
    Sequence,
    Tensor,
    Union,
    Value,
)

_HOLDS_OTHERS = frozenset(
    """torch.nn.DataParallel torch.nn.Module torch.nn.ModuleDict torch.nn.ModuleList torch.nn.Sequential
    torch.nn.TransformerDecoder torch.nn.TransformerEncoder torch.nn.parallel.DistributedDataParallel""".split()
)
"""Torch's modules whose parameters are those of other modules."""


def apply(frame: Frame, callee: Instance, arguments: Arguments) -> Applied:
    """Call an object: `forward` of a module, `__call__` of anything else."""
    if callee.takes_inputs_along:
        arguments = arguments.mapped(_taken_along)
    target, result = _applied(frame, callee, arguments)
    return target, unmoved.on_cpu(frame, callee, arguments, result)


def _taken_along(value: Value) -> Value:
    """A value as the module gets it, with its tensors on the device of the module."""
    for device in (Device.CPU, Device.CALLER, Device.UNKNOWN):
        value = placed(value, Device.MODEL, device)
    return value


def _applied(frame: Frame, callee: Instance, arguments: Arguments) -> Applied:
    is_torch_module = is_module(frame, callee.cls)
    target = "torch.nn.Module.__call__" if is_torch_module else f"{callee.cls}.__call__"
    # Before torch 1.5, objects of autograd functions were called, too.
    runs_forward = is_torch_module or is_function(frame, callee.cls)
    for name in ("forward", "__call__") if runs_forward else ("__call__",):
        called = frame.attribute(callee, name)
        if isinstance(called, Function):
            result = functions.invoke(frame, called, arguments)
            return target, _of_module(result) if is_torch_module and name == "forward" else result
    if callee.cls == "torch.nn.Sequential" and callee.arguments:
        return target, _sequential(frame, callee, arguments)
    if not is_torch_module:
        # The facts about a library may have the result.
        called = frame.attribute(callee, "__call__")
        return target, frame.apply(called, arguments) if isinstance(called, Name) else UNKNOWN
    return target, _module_result(frame, callee, arguments)


def _of_module(value: Value) -> Value:
    """The result of a module: otherwise unknown tensors are on the device of its parameters."""
    if isinstance(value, Tensor) and (value.device is Device.UNKNOWN or _is_of_unknown_code(value)):
        return value.with_(device=Device.MODEL, evidence=min(value.evidence, Evidence.CONVENTION))
    if isinstance(value, Union):
        return union(map(_of_module, value.members))
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(map(_of_module, value.items))
        return Sequence(value.type, _of_module(value.element), items)
    return value


def _is_of_unknown_code(value: Tensor) -> bool:
    """True if unknown code made a tensor out of others: a function of the project is passed those of the module."""
    return value.device is Device.CALLER and value.evidence in (Evidence.USE, Evidence.ANNOTATION)


def _sequential(frame: Frame, callee: Instance, arguments: Arguments) -> Value:
    steps: list[Value] = []
    for _, child in callee.arguments or ():
        if not isinstance(child, Sequence):
            steps.append(child)
        else:
            steps += [child.element] if child.items is None else child.items
    if not steps:
        return _output(arguments)
    value: Value = _output(arguments)
    for index, step in enumerate(steps):
        value = frame.apply(step, arguments if index == 0 else Arguments((value,)))
        if value.is_unknown:
            return _output(arguments)
    return value


def _output(arguments: Arguments) -> Tensor:
    given = next((value.tensor for value in arguments.values() if value.tensor is not None), None)
    device = given.device if given is not None and given.device is Device.CUDA else Device.MODEL
    return Tensor(device, Kind.FLOAT, evidence=Evidence.ANNOTATION)


def _module_result(frame: Frame, callee: Instance, arguments: Arguments) -> Value:
    """The result of calling an object of torch's module classes, or of an unknown module class."""
    output = _output(arguments)
    known = next((name for name in lineage(frame, callee.cls) if name != "torch.nn.Module"
                  and torch_api.module(name) is not None), None)  # fmt: skip
    facts = torch_api.module(known) if known is not None else None
    if known is not None and known not in _HOLDS_OTHERS and (on_cpu := _evidence_of_cpu(arguments)) is not None:
        # A layer with parameters has them there for certain, else it would raise an error.
        if on_cpu is Evidence.CERTAIN or (facts is not None and (facts.stateless or facts.loss)):
            output = output.with_(device=Device.CPU, evidence=on_cpu)
    if facts is None or facts.name == "torch.nn.Module":
        # An unknown model returns a tensor, or an object or tuple of tensors.
        return Sequence("batch", output.with_(evidence=Evidence.CONVENTION, kind=Kind.UNKNOWN))
    if facts.loss:
        reduced = callee.argument("reduction") in (None, Const("mean"), Const("sum"))
        return output.with_(rank=0 if reduced else None)
    return packed_sequence.through(_shaped(facts.result, output), arguments)


def _evidence_of_cpu(arguments: Arguments) -> Evidence | None:
    """The weakest evidence that all given tensors are on the CPU; None if one may not be, or if there is none."""
    given = [value.tensor for value in arguments.values() if value.tensor is not None]
    if not given or any(tensor.device is not Device.CPU for tensor in given):
        return None
    return min(tensor.evidence for tensor in given)


def _shaped(result: str, output: Tensor) -> Value:
    if result == "tensor":
        return output
    if result == "tensor,tensor|none":
        second = union([output, NONE])
        return Sequence("tuple", union([output, NONE]), (output, second))
    if result == "tensor,(tensor,tensor)":
        pair = Sequence("tuple", output, (output, output))
        return Sequence("tuple", union([output, pair]), (output, pair))
    if result == "tensor,tensor":
        return Sequence("tuple", output, (output, output))
    return UNKNOWN


def method(frame: Frame, name: str, receiver: Instance, arguments: Arguments) -> Value:
    """The result of a method of `torch.nn.Module`; registered values become attributes."""
    return unmoved.on_cpu(frame, receiver, arguments, _method(frame, name, receiver, arguments))


def _method(frame: Frame, name: str, receiver: Instance, arguments: Arguments) -> Value:
    if name in RETURN_MODULE:
        return receiver
    parameter = Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter")
    if name == "parameters":
        return Sequence("iterator", parameter)
    if name == "buffers":
        return Sequence("iterator", Tensor(Device.MODEL, leaf="buffer"))
    if name in ("named_parameters", "named_buffers"):
        pair: tuple[Value, ...] = (
            STR,
            parameter if name == "named_parameters" else Tensor(Device.MODEL, leaf="buffer"),
        )
        return Sequence("iterator", Sequence("tuple", union(pair), pair))
    if name in ("modules", "children"):
        return Sequence("iterator", Instance("torch.nn.Module"))
    if name in ("named_modules", "named_children"):
        pair = (STR, Instance("torch.nn.Module"))
        return Sequence("iterator", Sequence("tuple", union(pair), pair))
    if name == "state_dict":
        return Mapping(Tensor(Device.MODEL))
    given = arguments.literal("name", 0)
    if name == "register_buffer" and isinstance(given, str):
        register(frame, receiver, given, arguments.get("tensor", 1), "buffer")
    elif name == "register_parameter" and isinstance(given, str):
        register(frame, receiver, given, arguments.get("param", 1), "parameter")
    elif name in ("register_module", "add_module") and isinstance(given, str):
        self_attributes.set_attribute(frame, receiver, given, arguments.get("module", 1) or UNKNOWN)
    elif name == "forward":
        return apply(frame, receiver, arguments)[1]
    return UNKNOWN


def register(frame: Frame, receiver: Instance, name: str, value: Value | None, leaf: str) -> None:
    """Make a tensor a parameter or a buffer (`leaf`) of a module, with the other parameters of it."""
    tensor = value.tensor if value is not None else None
    if tensor is None:
        kept: Value = NONE if value == NONE else Tensor(Device.MODEL, leaf=leaf)
    else:
        kept = union([m if not isinstance(m, Tensor) else m.with_(device=Device.MODEL, leaf=leaf)
                      for m in (value or tensor).members])  # fmt: skip
    self_attributes.forget_declared(frame, receiver, name)
    self_attributes.set_attribute(frame, receiver, name, kept)
