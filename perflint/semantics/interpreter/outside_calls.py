"""Calls of functions outside the project: torch, libraries, builtins and the methods of their objects."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from perflint.frozen import replace
from perflint.semantics.facts import (
    arrays,
    containers,
    distributions,
    libraries,
    packed_sequence,
    processes,
    tensors,
    torch_api,
)
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.facts.devices import made_of
from perflint.semantics.interpreter import (
    autograd,
    builtin_calls,
    library_calls,
    module_calls,
    records,
    stdlib,
    torch_wrappers,
)
from perflint.semantics.interpreter.frame import DEFAULT_DEVICE, Applied, Frame
from perflint.semantics.lattice import union, widen
from perflint.semantics.module import Module
from perflint.semantics.values import (
    NONE,
    ON_CPU,
    UNKNOWN,
    Const,
    Device,
    DeviceValue,
    Evidence,
    Function,
    Instance,
    Name,
    Partial,
    Sequence,
    Super,
    Tensor,
    Value,
)


def apply(frame: Frame, callee: Name, arguments: Arguments, node: ast.Call | None) -> Applied:
    """Call a function or method outside the project, by its full name."""
    name, receiver = callee.name, callee.receiver
    started = processes.started(callee, arguments)
    if started is not None:
        frame.apply(*started)
    if receiver is not None:
        return _apply_method(frame, name, receiver, arguments)
    special = _SPECIAL.get(name)
    if special is not None:
        return name, special(frame, arguments)
    if name.startswith("builtins."):
        return name, builtin_calls.function(frame, name[9:], arguments)
    if name.startswith("torch."):
        return _apply_torch(frame, name, arguments, node)
    known = libraries.result(name, arguments)
    if known is not None:
        return name, known
    return name, _construct_outside(frame, name, arguments, node)


def _apply_method(frame: Frame, name: str, receiver: Value, arguments: Arguments) -> Applied:
    if name.rpartition(".")[0] == "torch.Tensor":
        return name, tensors.method(name[13:], receiver, arguments)
    if name.startswith("builtins."):
        return name, builtin_calls.method(frame, name, receiver, arguments)
    if name.startswith("torch.nn.Module.") and isinstance(receiver, Instance):
        return name, module_calls.method(frame, name[16:], receiver, arguments)
    if name.startswith("numpy.ndarray."):
        return name, arrays.method(name[14:], receiver, arguments)
    if name.endswith((".from_pretrained", ".load_from_checkpoint")):
        return name, receiver if isinstance(receiver, Instance) else Instance("torch.nn.Module")
    return name, _object_method(frame, name, receiver, arguments)


def _object_method(frame: Frame, name: str, receiver: Value, arguments: Arguments) -> Value:
    method = name.rpartition(".")[2]
    if method == "save_for_backward" and isinstance(receiver, Instance) and receiver.cls == autograd.CONTEXT:
        return autograd.save(frame, receiver, arguments)
    if name.startswith("typing.NamedTuple.") and isinstance(receiver, Instance):
        return records.method(frame, receiver, method, arguments.keywords) or UNKNOWN
    if name.startswith("torch.distributions."):
        return distributions.result(name, receiver, arguments.values()) or UNKNOWN
    if name.startswith(("torch.nn.ModuleDict.", "torch.nn.ParameterDict.")) and isinstance(receiver, Instance):
        return builtin_calls.method(frame, f"builtins.dict.{method}", containers.as_mapping(receiver), arguments)
    if method == "__iter__":
        return Sequence("iterator", frame.iterate(receiver))
    return library_calls.method(frame, name, receiver, arguments)


def _apply_torch(frame: Frame, name: str, arguments: Arguments, node: ast.Call | None) -> Applied:
    receiver = arguments.at(0).tensor
    if receiver is not None and name.startswith("torch.Tensor."):
        rest = Arguments(arguments.positional[1:], arguments.keywords, arguments.unpacked)
        return name, tensors.method(name[13:], receiver, rest)
    made = tensors.function(name, _on_default_device(frame, name, arguments))
    if made is not None:
        return name, made
    known = libraries.result(name, arguments)
    if known is not None:
        kept = arguments.at(0)
        return name, kept if isinstance(kept, (Instance, Function)) else known
    return name, _construct_outside(frame, name, arguments, node)


# Objects

_LOWER_CASE = frozenset({"torch.cuda.graph", "torch.cuda.graphs.graph", "torch.xpu.graph"})
"""Classes whose names begin in lower case, and whose objects the model looks for."""


def _construct_outside(frame: Frame, name: str, arguments: Arguments, node: ast.Call | None) -> Value:
    last = name.rpartition(".")[2]
    if not last[:1].isupper() and name not in _LOWER_CASE:
        return UNKNOWN
    if name.endswith("Tensor") and name.startswith("torch."):
        return Tensor(Device.CUDA if name.startswith("torch.cuda.") else Device.CPU)
    return widen(Instance(name, _bound_arguments(name, arguments), frame.origin(node)))


def _bound_arguments(name: str, arguments: Arguments) -> tuple[tuple[str, Value], ...] | None:
    if arguments.unpacked:
        return containers.spread(name, arguments)
    names = torch_api.parameters(name) or ()
    bound: list[tuple[str, Value]] = []
    for position, value in enumerate(arguments.positional):
        known = position < len(names) and not names[position].startswith("*")
        bound.append((names[position] if known else str(position), value))
    return (*bound, *arguments.keywords)


# The default device


def _on_default_device(frame: Frame, name: str, arguments: Arguments) -> Arguments:
    """The arguments of a function that makes tensors, with the default device where it is given none."""
    by_type = name == "torch.Tensor"
    if arguments.keyword("device") is not None or not (by_type or tensors.makes_tensors(name)):
        return arguments
    default = None if by_type else frame.get(DEFAULT_DEVICE)
    if default is None and frame.function is not None:
        # The top level runs in order, and before the code that imports it goes on.
        known = frame.view.state(frame.module).defaults
        default = frame.view.memory.remembered(known, name if by_type else "", lambda: _default(frame, by_type), None)
    if default is None:
        return arguments
    return replace(arguments, keywords=(*arguments.keywords, ("device", default)))


def _default(frame: Frame, by_type: bool) -> Value | None:
    """The default device that a file, or a program that runs it, sets anywhere: functions run after that.

    With `by_type`, only a default type of tensors counts.
    """
    own = _settings(frame, frame.module, by_type)
    if own:
        return union(own)
    # Another program may run the file without such a setting.
    beside = (file.path for file in frame.view.beside(frame.module, _SETS_DEFAULT))
    programs = (path for path in beside if not frame.view.is_of_tests(path))
    others = (other for path in programs if (other := frame.view.at(path)) is not None)
    found = [value for other in others for value in _settings(frame, other, by_type)]
    on_gpu = any(value.device in (Device.CUDA, Device.CALLER) for value in found)
    return DeviceValue(Device.CALLER) if on_gpu else None


_SETS_DEFAULT = re.compile(r"\bset_default_(?:device|tensor_type)\(")


def _settings(frame: Frame, module: Module, by_type: bool) -> list[DeviceValue]:
    """The default devices that a file sets."""
    inner = Frame(frame.view, module, frame.budget, names=frame.view.state(module).names or {})
    given = [inner.evaluate(node) for node in module.structure.default_devices]
    return [DeviceValue(tensors.default_device(value)) for value in given if not by_type or tensors.is_type(value)]


def _set_default_device(frame: Frame, arguments: Arguments) -> Value:
    if frame.names is not None:
        frame.names[DEFAULT_DEVICE] = DeviceValue(tensors.default_device(arguments.at(0)))
    return NONE


# Functions that need more than facts


def _super(frame: Frame, arguments: Arguments) -> Value:
    receiver = frame.receiver if len(arguments.positional) < 2 else arguments.at(1)
    return Super(frame.owner, receiver) if frame.owner and receiver is not None else UNKNOWN


def _variable(frame: Frame, arguments: Arguments) -> Value:
    # `Variable`, which wrapped tensors before torch 0.4, returns the tensor.
    data = arguments.get("data", 0) or UNKNOWN
    return data if data.tensor is not None else Tensor(made_of((data,)).near, evidence=Evidence.USE)


def _loaded(frame: Frame, arguments: Arguments) -> Value:
    place = arguments.get("map_location", 1)
    return ON_CPU if place is not None and tensors.device_of(place) is Device.CPU else UNKNOWN


def _cuda_available(frame: Frame, arguments: Arguments) -> Value:
    # The code is linted for a machine with a GPU.
    return Const(True)


def _current_device(frame: Frame, arguments: Arguments) -> Value:
    return DeviceValue(Device.CUDA)


def _packed_padded(frame: Frame, arguments: Arguments) -> Value:
    return packed_sequence.packed(arguments.get("input", 0), arguments.get("enforce_sorted", 3), arguments)


def _packed_list(frame: Frame, arguments: Arguments) -> Value:
    return packed_sequence.packed(arguments.get("sequences", 0), arguments.get("enforce_sorted", 1), arguments)


def _divergence(frame: Frame, arguments: Arguments) -> Value:
    return distributions.tensor(arguments.values())


_SPECIAL: dict[str, Callable[[Frame, Arguments], Value]] = {
    **stdlib.FUNCTIONS,
    **torch_wrappers.FUNCTIONS,
    **library_calls.FUNCTIONS,
    **records.FUNCTIONS,
    "builtins.super": _super,
    "torch.cuda.is_available": _cuda_available,
    "torch.cuda.current_device": _current_device,
    "torch.autograd.Variable": _variable,
    "torch.nn.utils.rnn.pack_padded_sequence": _packed_padded,
    "torch.nn.utils.rnn.pack_sequence": _packed_list,
    "torch.nn.utils.rnn.pad_packed_sequence": lambda frame, arguments: packed_sequence.padded(
        arguments.get("sequence", 0) or UNKNOWN
    ),
    "torch.distributions.kl_divergence": _divergence,
    "torch.distributions.kl.kl_divergence": _divergence,
    "torch.load": _loaded,
    "torch.get_default_device": lambda frame, arguments: frame.get(DEFAULT_DEVICE) or DeviceValue(),
    "torch.set_default_device": _set_default_device,
    "torch.set_default_tensor_type": _set_default_device,
    "typing.cast": lambda frame, arguments: arguments.at(1),
    "typing.NewType": lambda frame, arguments: Partial(Name("typing.cast"), (arguments.at(1),)),
}
