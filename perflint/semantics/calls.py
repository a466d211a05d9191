"""Calls: which function is meant, what it is passed, what it returns."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from perflint.semantics import (
    arrays,
    builtin_calls,
    by_use,
    classes,
    constructions,
    containers,
    distributions,
    frameworks,
    functions,
    libraries,
    packed,
    records,
    standard,
    tensors,
    torch_api,
    transforms,
)
from perflint.semantics.arguments import Arguments
from perflint.semantics.frame import DEFAULT_DEVICE, Frame, parts
from perflint.semantics.lattice import join, union, widen
from perflint.semantics.structure import GROWS, name_in, path_of
from perflint.semantics.values import (
    FLOAT,
    NEVER,
    NONE,
    STR,
    UNKNOWN,
    Class,
    Const,
    Device,
    DeviceValue,
    Evidence,
    Function,
    Instance,
    Kind,
    Mapping,
    Name,
    Origin,
    Partial,
    Sequence,
    Super,
    Tensor,
    TypeForm,
    Union,
    Unknown,
    Value,
    made_of,
)

Outcome = tuple[str, Value]
"""The full name of what was called, and what it returned."""


def call(frame: Frame, node: ast.Call) -> Value:
    """The value of a call, whose target is recorded when the frame records."""
    callee = frame.evaluate(node.func)
    arguments = _arguments(frame, node)
    if isinstance(callee, Name) and callee.name in _NAMING:
        arguments = _with_name(node, arguments, _NAMING[callee.name])
    target, value = apply(frame, callee, arguments, node)
    if isinstance(node.func, ast.Attribute):
        _grow(frame, callee, node.func, arguments)
    if not target and isinstance(node.func, ast.Attribute):
        if frame.recorder is not None:
            _note_by_name(frame, node.func.attr, arguments)
        target, value = _by_name_alone(frame, node, callee, arguments, value)
    if target and frame.recorder is not None:
        frame.recorder.targets[node] = target
    return made_of((callee, *arguments.values())) if value == UNKNOWN else value


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
    """A method of this file called on something unknown: remember what it is passed."""
    assert frame.recorder is not None
    for method in frame.module.structure.methods.get(name, ()):
        frame.recorder.note(method.node.lineno, method.node.col_offset, arguments)


def _grow(frame: Frame, callee: Value, func: ast.Attribute, arguments: Arguments) -> None:
    """Rebind a list or dict that a method puts something into."""
    receiver = callee.receiver if isinstance(callee, Name) else None
    if receiver is None or func.attr not in GROWS or frame.names is None:
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
        if not isinstance(arg, ast.Starred):
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


def apply(frame: Frame, callee: Value, arguments: Arguments, node: ast.Call | None = None) -> Outcome:
    """Call a value."""
    if isinstance(callee, Name):
        return _apply_name(frame, callee, arguments, node)
    if isinstance(callee, Function):
        return _function_name(callee), functions.invoke(frame, callee, arguments)
    if isinstance(callee, Class):
        return callee.name, construct(frame, callee.name, arguments, node)
    if isinstance(callee, Instance):
        return _apply_instance(frame, callee, arguments)
    if isinstance(callee, Partial):
        merged = Arguments(
            (*callee.positional, *arguments.positional),
            (*callee.keywords, *arguments.keywords),
            arguments.unpacked,
            arguments.rest,
        )
        return apply(frame, callee.function, merged, node)
    if isinstance(callee, TypeForm):
        return apply(frame, callee.base, arguments, node)
    if isinstance(callee, Union):
        outcomes = [apply(frame, member, arguments, node) for member in callee.members]
        names = [name for name, _ in outcomes if name]
        # A method that arrays have too is the tensor's, if it may be one.
        names.sort(key=lambda name: not name.startswith("torch.Tensor."))
        return names[0] if names else "", union(value for _, value in outcomes)
    return "", NEVER if callee is NEVER else UNKNOWN


def _function_name(function: Function) -> str:
    return f"{function.module}.{function.qualname}"


def _by_name_alone(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments, value: Value) -> Outcome:
    """A method that only tensors, or only modules, answer, called on something unknown."""
    assert isinstance(node.func, ast.Attribute)
    name = node.func.attr
    if name in torch_api.tensor_only_methods() or (isinstance(value, Unknown) and _shows_tensor(frame, node)):
        used = Tensor(made_of((callee,)).near, evidence=Evidence.USE)
        return f"torch.Tensor.{name}", tensors.method(name, used, arguments)
    if name in by_use.ACCELERATOR_ONLY:
        full = f"accelerate.Accelerator.{name}"
        return full, frameworks.method(frame, full, value, arguments) or UNKNOWN
    if name in by_use.MODULE_ONLY or (name == "parameters" and not arguments.positional):
        return f"torch.nn.Module.{name}", _by_use(_module_method(frame, name, Instance("torch.nn.Module"), arguments))
    return "", value


def _shows_tensor(frame: Frame, node: ast.Call) -> bool:
    module = frame.module
    return by_use.shows_tensor(node, module.structure.parents) or by_use.reads_number(node, module.packages)


def _by_use(value: Value) -> Value:
    """What something gives that is only by its use what it is held to be."""
    if isinstance(value, Tensor):
        return value.with_(evidence=Evidence.USE)
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(map(_by_use, value.items))
        return Sequence(value.type, _by_use(value.element), items)
    return union(map(_by_use, value.members)) if isinstance(value, Union) else value


# What is outside the project


def _apply_name(frame: Frame, callee: Name, arguments: Arguments, node: ast.Call | None) -> Outcome:
    name, receiver = callee.name, callee.receiver
    if receiver is not None:
        return _apply_method(frame, name, receiver, arguments)
    special = _SPECIAL.get(name)
    if special is not None:
        return name, special(frame, arguments)
    if name.startswith("builtins."):
        return name, builtin_calls.function(frame, name[9:], arguments)
    if name.startswith("torch."):
        return _apply_torch(frame, name, arguments, node)
    if libraries.is_transparent(name):
        return name, arguments.at(0)
    known = libraries.result(name, arguments)
    if known is not None:
        return name, known
    return name, _construct_outside(frame, name, arguments, node)


def _apply_method(frame: Frame, name: str, receiver: Value, arguments: Arguments) -> Outcome:
    if name.startswith("torch.Tensor."):
        return name, tensors.method(name[13:], receiver, arguments)
    if name.startswith("builtins."):
        return name, builtin_calls.method(frame, name, receiver, arguments)
    if name.startswith("torch.nn.Module.") and isinstance(receiver, Instance):
        return name, _module_method(frame, name[16:], receiver, arguments)
    if name.startswith("numpy.ndarray."):
        return name, arrays.method(name[14:], receiver, arguments)
    if name.endswith((".from_pretrained", ".load_from_checkpoint")):
        return name, receiver if isinstance(receiver, Instance) else Instance("torch.nn.Module")
    return name, _object_method(frame, name, receiver, arguments)


def _object_method(frame: Frame, name: str, receiver: Value, arguments: Arguments) -> Value:
    method = name.rpartition(".")[2]
    if name.startswith("typing.NamedTuple.") and isinstance(receiver, Instance):
        return records.method(frame, receiver, method, arguments.keywords) or UNKNOWN
    if name.startswith("torch.distributions."):
        return distributions.result(name, receiver, arguments.values()) or UNKNOWN
    if name.startswith(("torch.nn.ModuleDict.", "torch.nn.ParameterDict.")) and isinstance(receiver, Instance):
        return builtin_calls.method(frame, f"builtins.dict.{method}", containers.as_mapping(receiver), arguments)
    if name == "torchmetrics.Metric.add_state" and isinstance(receiver, Instance):
        state = arguments.literal("name", 0)
        if isinstance(state, str):
            _register(frame, receiver, state, arguments.get("default", 1), "buffer")
        return NONE
    if name in ("torch.amp.GradScaler.scale", "torch.cuda.amp.GradScaler.scale"):
        return arguments.at(0)
    if name in ("torch.amp.GradScaler.get_scale", "torch.cuda.amp.GradScaler.get_scale"):
        return FLOAT
    if name.startswith(("torch.cuda.Event.", "torch.Event.")):
        return FLOAT if method == "elapsed_time" else NONE
    return frameworks.method(frame, name, receiver, arguments) or UNKNOWN


def _apply_torch(frame: Frame, name: str, arguments: Arguments, node: ast.Call | None) -> Outcome:
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


def _on_default_device(frame: Frame, name: str, arguments: Arguments) -> Arguments:
    """The arguments of a function that makes tensors, with the default device where it is given none."""
    if arguments.keyword("device") is not None or not tensors.makes_tensors(name):
        return arguments
    default = frame.get(DEFAULT_DEVICE) or _default_of_file(frame)
    if default is None:
        return arguments
    return replace(arguments, keywords=(*arguments.keywords, ("device", default)))


def _default_of_file(frame: Frame) -> Value | None:
    """What a file sets as the default device, wherever it does: its functions run after that."""
    found: list[Value] = []
    if frame.function is None:
        # The top level runs in order.
        return None
    for node in frame.module.structure.default_devices:
        module = Frame(frame.project, frame.module, frame.budget, names=frame.module.names or {})
        found.append(DeviceValue(tensors.default_device(module.evaluate(node))))
    return union(found) if found else None


def _set_default_device(frame: Frame, arguments: Arguments) -> Value:
    if frame.names is not None:
        frame.names[DEFAULT_DEVICE] = DeviceValue(tensors.default_device(arguments.at(0)))
    return NONE


def _construct_outside(frame: Frame, name: str, arguments: Arguments, node: ast.Call | None) -> Value:
    last = name.rpartition(".")[2]
    if not last[:1].isupper():
        return UNKNOWN
    if name.endswith("Tensor") and name.startswith("torch."):
        return Tensor(Device.CUDA if name.startswith("torch.cuda.") else Device.CPU)
    return widen(Instance(name, _bound_arguments(name, arguments), _origin(frame, node)))


def _bound_arguments(name: str, arguments: Arguments) -> tuple[tuple[str, Value], ...] | None:
    if arguments.unpacked:
        return None
    names = torch_api.parameters(name) or ()
    bound: list[tuple[str, Value]] = []
    for position, value in enumerate(arguments.positional):
        known = position < len(names) and not names[position].startswith("*")
        bound.append((names[position] if known else str(position), value))
    return (*bound, *arguments.keywords)


def _origin(frame: Frame, node: ast.Call | None) -> Origin | None:
    return None if node is None else Origin(frame.module.name, node.lineno, node.col_offset)


# Modules and other objects


_RETURN_SELF = frozenset(
    "to cuda cpu half float double bfloat16 eval train requires_grad_ type apply to_empty xpu ipu share_memory".split()
)


def _module_method(frame: Frame, name: str, receiver: Instance, arguments: Arguments) -> Value:
    if name in _RETURN_SELF:
        return receiver
    parameter_ = Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter")
    if name == "parameters":
        return Sequence("iterator", parameter_)
    if name == "buffers":
        return Sequence("iterator", Tensor(Device.MODEL, leaf="buffer"))
    if name in ("named_parameters", "named_buffers"):
        pair = (STR, parameter_ if name == "named_parameters" else Tensor(Device.MODEL, leaf="buffer"))
        return Sequence("iterator", Sequence("tuple", union(pair), pair))
    if name in ("modules", "children"):
        return Sequence("iterator", Instance("torch.nn.Module"))
    if name in ("named_modules", "named_children"):
        pair_ = (STR, Instance("torch.nn.Module"))
        return Sequence("iterator", Sequence("tuple", union(pair_), pair_))
    if name == "state_dict":
        return Mapping(Tensor(Device.MODEL))
    given = arguments.literal("name", 0)
    if name == "register_buffer" and isinstance(given, str):
        _register(frame, receiver, given, arguments.get("tensor", 1), "buffer")
    elif name == "register_parameter" and isinstance(given, str):
        _register(frame, receiver, given, arguments.get("param", 1), "parameter")
    elif name in ("register_module", "add_module") and isinstance(given, str):
        classes.set_attribute(frame, receiver, given, arguments.get("module", 1) or UNKNOWN)
    elif name == "forward":
        return _apply_instance(frame, receiver, arguments)[1]
    return UNKNOWN


def _register(frame: Frame, receiver: Instance, name: str, value: Value | None, leaf: str) -> None:
    tensor = value.tensor if value is not None else None
    if tensor is None:
        kept: Value = NONE if value == NONE else Tensor(Device.MODEL, leaf=leaf)
    else:
        kept = union([m if not isinstance(m, Tensor) else m.with_(device=Device.MODEL, leaf=leaf)
                      for m in (value or tensor).members])  # fmt: skip
    classes.forget_declared(frame, receiver, name)
    classes.set_attribute(frame, receiver, name, kept)


def _apply_instance(frame: Frame, callee: Instance, arguments: Arguments) -> Outcome:
    """Calling an object: `forward` of a module, `__call__` of anything else."""
    is_module = classes.is_module(frame, callee.cls)
    target = "torch.nn.Module.__call__" if is_module else f"{callee.cls}.__call__"
    for name in ("forward", "__call__") if is_module else ("__call__",):
        method = frame.attribute(callee, name)
        if isinstance(method, Function):
            result = functions.invoke(frame, method, arguments)
            return target, _of_module(result) if is_module and name == "forward" else result
    if callee.cls == "torch.nn.Sequential" and callee.arguments:
        return target, _sequential(frame, callee, arguments)
    if not is_module:
        return target, UNKNOWN
    return target, module_result(frame, callee, arguments)


def _of_module(value: Value) -> Value:
    """What a module returns: tensors of which nothing else is known are where its parameters are."""
    if isinstance(value, Tensor) and value.device is Device.UNKNOWN:
        return value.with_(device=Device.MODEL, evidence=min(value.evidence, Evidence.CONVENTION))
    if isinstance(value, Union):
        return union(map(_of_module, value.members))
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(map(_of_module, value.items))
        return Sequence(value.type, _of_module(value.element), items)
    return value


def _sequential(frame: Frame, callee: Instance, arguments: Arguments) -> Value:
    steps: list[Value] = []
    for _, child in callee.arguments or ():
        steps += child.items or () if isinstance(child, Sequence) else [child]
    if not steps:
        return _output(arguments)
    value: Value = _output(arguments)
    for index, step in enumerate(steps):
        value = apply(frame, step, arguments if index == 0 else Arguments((value,)))[1]
        if isinstance(value, Unknown):
            return _output(arguments)
    return value


def _output(arguments: Arguments) -> Tensor:
    given = next((value.tensor for value in arguments.values() if value.tensor is not None), None)
    device = given.device if given is not None and given.device is Device.CUDA else Device.MODEL
    return Tensor(device, Kind.FLOAT, evidence=Evidence.ANNOTATION)


def module_result(frame: Frame, callee: Instance, arguments: Arguments) -> Value:
    """What calling an object of torch's module classes gives, or of a module class that is not known."""
    output = _output(arguments)
    known = next((name for name in classes.lineage(frame, callee.cls) if name != "torch.nn.Module"
                  and torch_api.module(name) is not None), None)  # fmt: skip
    facts = torch_api.module(known) if known is not None else None
    if facts is None or facts.name == "torch.nn.Module":
        # A model that nobody knows gives a tensor, or an object or tuple of tensors.
        return Sequence("batch", output.with_(evidence=Evidence.CONVENTION, kind=Kind.UNKNOWN))
    if facts.loss:
        reduced = callee.argument("reduction") in (None, Const("mean"), Const("sum"))
        return output.with_(rank=0 if reduced else None)
    return packed.through(_shaped(facts.result, output), arguments)


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


def construct(frame: Frame, name: str, arguments: Arguments, node: ast.Call | None) -> Value:
    """An object of a class of the project."""
    if classes.is_tensor_class(frame, name):
        data = arguments.at(0).tensor
        return Tensor(Device.CPU if data is None else data.device, evidence=Evidence.CERTAIN)
    facts = classes.facts_of(frame, name)
    fields = records.field_names(frame, name) if facts is not None else None
    bound: list[tuple[str, Value]] = []
    for position, value in enumerate(arguments.positional):
        bound.append((fields[position] if fields and position < len(fields) else str(position), value))
    if facts is not None:
        constructions.note(frame, name, (*bound, *arguments.keywords), arguments)
    given = None if arguments.unpacked else (*bound, *arguments.keywords)
    return widen(Instance(name, given, _origin(frame, node)))


# Functions that need more than facts


def _super(frame: Frame, arguments: Arguments) -> Value:
    receiver = frame.receiver if len(arguments.positional) < 2 else arguments.at(1)
    return Super(frame.owner, receiver) if frame.owner and receiver is not None else UNKNOWN


def _first(frame: Frame, arguments: Arguments) -> Value:
    return arguments.at(0)


def _cuda_available(frame: Frame, arguments: Arguments) -> Value:
    # The code is linted for a machine with a GPU.
    return Const(True)


def _loaded(frame: Frame, arguments: Arguments) -> Value:
    """The tensors of a file by their names."""
    device = arguments.get("device", 1)
    return Mapping(Tensor(Device.CPU if device is None else tensors.device_of(device)))


def _current_device(frame: Frame, arguments: Arguments) -> Value:
    return DeviceValue(Device.CUDA)


def _packed_padded(frame: Frame, arguments: Arguments) -> Value:
    return packed.packed(arguments.get("input", 0), arguments.get("enforce_sorted", 3), arguments)


def _packed_list(frame: Frame, arguments: Arguments) -> Value:
    return packed.packed(arguments.get("sequences", 0), arguments.get("enforce_sorted", 1), arguments)


def _divergence(frame: Frame, arguments: Arguments) -> Value:
    return distributions.tensor(arguments.values())


_SPECIAL: dict[str, Callable[[Frame, Arguments], Value]] = {
    **standard.FUNCTIONS,
    **transforms.FUNCTIONS,
    **frameworks.FUNCTIONS,
    **records.FUNCTIONS,
    "builtins.super": _super,
    "torch.cuda.is_available": _cuda_available,
    "torch.cuda.current_device": _current_device,
    "torch.nn.utils.rnn.pack_padded_sequence": _packed_padded,
    "torch.nn.utils.rnn.pack_sequence": _packed_list,
    "torch.nn.utils.rnn.pad_packed_sequence": lambda frame, arguments: packed.padded(
        arguments.get("sequence", 0) or UNKNOWN
    ),
    "torch.distributions.kl_divergence": _divergence,
    "torch.distributions.kl.kl_divergence": _divergence,
    "torch.get_default_device": lambda frame, arguments: frame.get(DEFAULT_DEVICE) or DeviceValue(),
    "torch.set_default_device": _set_default_device,
    "torch.set_default_tensor_type": _set_default_device,
    "safetensors.torch.load_file": _loaded,
    "safetensors.torch.load": lambda frame, arguments: Mapping(Tensor(Device.CPU)),
    "copy.copy": _first,
    "copy.deepcopy": _first,
    "typing.cast": lambda frame, arguments: arguments.at(1),
    "typing.NewType": lambda frame, arguments: Partial(Name("typing.cast"), (arguments.at(1),)),
}

parts.apply = apply
