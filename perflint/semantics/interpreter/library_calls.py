"""Functions, methods and objects of libraries whose results need code; `facts/libraries` has the others."""

from __future__ import annotations

from collections.abc import Callable

from perflint.frozen import replace
from perflint.semantics.facts import libraries
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.facts.tensors import device_of
from perflint.semantics.interpreter import module_calls
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.lineage import is_module
from perflint.semantics.lattice import union
from perflint.semantics.values import (
    INT,
    NONE,
    UNKNOWN,
    Const,
    Device,
    Evidence,
    Instance,
    Mapping,
    Sequence,
    Tensor,
    Value,
    scalar_type,
)

Special = Callable[[Frame, Arguments], Value]
Method = Callable[[Frame, Value, Arguments], Value]


# Methods that move data to the GPU


def _prepared_all(frame: Frame, arguments: Arguments) -> Value:
    prepared = tuple([_prepared(frame, value) for value in arguments.positional])
    return prepared[0] if len(prepared) == 1 else Sequence("tuple", union(prepared), prepared)


def _prepared(frame: Frame, value: Value) -> Value:
    """The result of preparing an object: a loader yields its batches on the GPU, a module may be parallel."""
    if isinstance(value, Instance) and value.cls.endswith("DataLoader"):
        return Sequence("iterator", Sequence("batch", Tensor(Device.MODEL, evidence=Evidence.CONVENTION)))
    if isinstance(value, Instance) and is_module(frame, value.cls):
        return replace(value, takes_inputs_along=True)
    return value


def _on_device(frame: Frame, arguments: Arguments) -> Value:
    value = arguments.at(0)
    tensor = value.tensor
    if isinstance(value, Instance) or tensor is None:
        return value if isinstance(value, Instance) else UNKNOWN
    moved = tensor.with_(device=Device.CUDA, place="", leaf="")
    return Sequence("batch", moved) if isinstance(value, Sequence) else moved


# Datasets and TensorDicts


def _is_key(index: Value) -> bool:
    if isinstance(index, Sequence) and index.type == "tuple" and index.items:
        return all(map(_is_key, index.items))
    return scalar_type(index) == "str"


def _entry(tensordict: Instance) -> Tensor:
    # It may hold another TensorDict, or a text, but hardly ever does.
    placed = tensordict.argument("device")
    device = Device.CALLER if tensordict.arguments is None else Device.UNKNOWN
    if placed is not None and placed != NONE:
        device = device_of(placed)
    return Tensor(device, evidence=Evidence.CONVENTION)


def element(frame: Frame, dataset: Instance, index: Value) -> Value | None:
    """The item of one of torch's own datasets, or the entry of a TensorDict; None for other objects."""
    if libraries.kind_of(dataset.cls) == "tensordict":
        return _entry(dataset) if _is_key(index) else UNKNOWN if index.is_unknown else dataset
    if dataset.cls == "torch.utils.data.TensorDataset":
        held = tuple([frame.item(value, INT) for _, value in dataset.arguments or ()])
        return Sequence("tuple", union(held), held)
    inner = dataset.argument("dataset") or dataset.argument("datasets") or dataset.argument("0")
    if dataset.cls == "torch.utils.data.Subset" and inner is not None:
        return frame.item(inner, index)
    if dataset.cls in ("torch.utils.data.ConcatDataset", "torch.utils.data.ChainDataset") and inner is not None:
        return frame.item(frame.iterate(inner), index)
    return None


def _split(frame: Frame, arguments: Arguments) -> Value:
    return Sequence("list", Instance("torch.utils.data.Subset", (("dataset", arguments.at(0)),)))


def _collated(frame: Frame, arguments: Arguments) -> Value:
    return collate(frame.iterate(arguments.at(0)))


def collate(item: Value) -> Value:
    """The batch that torch's own function makes of items."""
    if isinstance(item, Tensor):
        return item.with_(rank=None if item.rank is None else item.rank + 1, leaf="")
    if isinstance(item, Sequence) and item.items is not None:
        items = tuple(map(collate, item.items))
        return Sequence("list", union(items), items)
    if isinstance(item, Mapping):
        return Mapping(collate(item.element), tuple([(key, collate(value)) for key, value in item.items]))
    return Sequence("batch", Tensor(Device.CPU, evidence=Evidence.CONVENTION))


def _rearranged(frame: Frame, arguments: Arguments) -> Value:
    """einops: the pattern says how many dimensions there are afterwards."""
    given = [value for value in arguments.positional if value.tensor is not None or isinstance(value, Sequence)]
    first = given[0] if given else UNKNOWN
    tensor = frame.iterate(first).tensor if isinstance(first, Sequence) else first.tensor
    made = Tensor() if tensor is None else tensor.with_(rank=None, leaf="")
    texts = [value.value for value in arguments.positional if isinstance(value, Const)]
    pattern = next((text for text in texts if isinstance(text, str)), "")
    return made.with_(rank=_rank(pattern.rpartition("->")[2]))


def _rank(axes: str) -> int | None:
    """The dimensions that the right side of a pattern has: a pair of parentheses is one."""
    if not axes.strip() or "..." in axes:
        return None
    depth, rank = 0, 0
    for part in axes.replace("(", " ( ").replace(")", " ) ").split():
        if part == "(":
            depth += 1
            rank += 1
        elif part == ")":
            depth -= 1
        elif depth == 0:
            rank += 1
    return rank


def _loaded(frame: Frame, arguments: Arguments) -> Value:
    """The tensors of a file by their names."""
    device = arguments.get("device", 1)
    return Mapping(Tensor(Device.CPU if device is None else device_of(device)))


def _loaded_bytes(frame: Frame, arguments: Arguments) -> Value:
    return Mapping(Tensor(Device.CPU))


def _composed(frame: Frame, receiver: Value, arguments: Arguments) -> Value:
    """The result of transforms, one after the other; unknown from the first whose result is."""
    given = None
    if isinstance(receiver, Instance):
        given = receiver.argument("transforms") or receiver.argument("0")
    if not isinstance(given, Sequence) or given.items is None:
        return UNKNOWN
    value = arguments.at(0)
    for step in given.items:
        value = frame.apply(step, Arguments((value,)))
    return value


def _add_state(frame: Frame, receiver: Value, arguments: Arguments) -> Value:
    state = arguments.literal("name", 0)
    if isinstance(receiver, Instance) and isinstance(state, str):
        module_calls.register(frame, receiver, state, arguments.get("default", 1), "buffer")
    return NONE


FUNCTIONS: dict[str, Special] = {
    "torch.utils.data.random_split": _split,
    "torch.utils.data.default_collate": _collated,
    "einops.rearrange": _rearranged,
    "einops.repeat": _rearranged,
    "einops.reduce": _rearranged,
    "einops.einsum": _rearranged,
    "safetensors.torch.load_file": _loaded,
    "safetensors.torch.load": _loaded_bytes,
}
"""The functions that the facts about libraries leave to code."""


def _of_arguments(special: Special) -> Method:
    return lambda frame, receiver, arguments: special(frame, arguments)


METHODS: dict[str, Method] = {
    "accelerate.Accelerator.prepare": _of_arguments(_prepared_all),
    "accelerate.Accelerator.prepare_model": _of_arguments(_prepared_all),
    "accelerate.Accelerator.prepare_data_loader": _of_arguments(_prepared_all),
    "lightning.Fabric.setup": _of_arguments(_prepared_all),
    "lightning.Fabric.setup_module": _of_arguments(_prepared_all),
    "lightning.Fabric.setup_dataloaders": _of_arguments(_prepared_all),
    "lightning.Fabric.to_device": _of_arguments(_on_device),
    "torchmetrics.Metric.add_state": _add_state,
    "torchvision.transforms.Compose.__call__": _composed,
    "torchvision.transforms.v2.Compose.__call__": _composed,
}
"""The methods that the facts about libraries leave to code."""


def method(frame: Frame, name: str, receiver: Value, arguments: Arguments) -> Value:
    """The result of a method of an object of a library, by its full name."""
    special = METHODS.get(name)
    if special is not None:
        return special(frame, receiver, arguments)
    return libraries.method(name, arguments) or UNKNOWN
