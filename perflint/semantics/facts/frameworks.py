"""Objects of packages around torch, and of torch.utils.data: the results of their methods, and their contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.facts.tensors import device_of
from perflint.semantics.lattice import union
from perflint.semantics.values import (
    BOOL,
    INT,
    NONE,
    UNKNOWN,
    Const,
    Device,
    DeviceValue,
    Evidence,
    Instance,
    Kind,
    Mapping,
    Sequence,
    Tensor,
    Unknown,
    Value,
    scalar_type,
)

if TYPE_CHECKING:
    from perflint.semantics.interpreter.frame import Frame

    Special = Callable[[Frame, Arguments], Value]

_ENGINES = ("accelerate.Accelerator", "lightning.Fabric")
_ALIASES = {
    "lightning.fabric.Fabric": "lightning.Fabric",
    "lightning_fabric.Fabric": "lightning.Fabric",
    "lightning.fabric.fabric.Fabric": "lightning.Fabric",
    "accelerate.accelerator.Accelerator": "accelerate.Accelerator",
}
_HELD: dict[str, Value] = {
    "device": DeviceValue(Device.CUDA),
    "is_main_process": BOOL,
    "is_local_main_process": BOOL,
    "is_last_process": BOOL,
    "is_global_zero": BOOL,
    "sync_gradients": BOOL,
    "num_processes": INT,
    "process_index": INT,
    "local_process_index": INT,
    "world_size": INT,
    "global_rank": INT,
    "local_rank": INT,
    "gradient_accumulation_steps": INT,
}
_NAMESPACES = frozenset(
    """types.SimpleNamespace argparse.Namespace easydict.EasyDict omegaconf.DictConfig box.Box addict.Dict
    ml_collections.ConfigDict munch.Munch""".split()
)
"""Classes whose objects hold whatever was put into them, mostly numbers and texts."""


def attribute(cls: str, value: Instance, name: str) -> Value | None:
    """An attribute of an object of one of these classes; None for what they do not know."""
    if _ALIASES.get(cls, cls) in _ENGINES:
        return _HELD.get(name)
    if cls in _NAMESPACES:
        return value.argument(name) or UNKNOWN
    if cls == "torch.optim.Optimizer":
        return _OPTIMIZER.get(name)
    return None


_PARAMETER = Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter")
_OPTIMIZER: dict[str, Value] = {
    "param_groups": Sequence("list", Mapping(UNKNOWN, (("params", Sequence("list", _PARAMETER)),))),
    "state": Mapping(Mapping(UNKNOWN)),
}


def method(frame: Frame, name: str, receiver: Value, arguments: Arguments) -> Value | None:
    """The result of a method of such an object; None if unknown."""
    cls, _, called = name.rpartition(".")
    if _ALIASES.get(cls, cls) not in _ENGINES:
        return None
    special = _METHODS.get(called)
    return None if special is None else special(frame, arguments)


def _prepared_all(frame: Frame, arguments: Arguments) -> Value:
    prepared = tuple(map(_prepared, arguments.positional))
    return prepared[0] if len(prepared) == 1 else Sequence("tuple", union(prepared), prepared)


def _prepared(value: Value) -> Value:
    """The result of preparing an object: a loader then yields its batches on the GPU."""
    if isinstance(value, Instance) and value.cls.endswith("DataLoader"):
        return Sequence("iterator", Sequence("batch", Tensor(Device.MODEL, evidence=Evidence.CONVENTION)))
    return value


def _first(frame: Frame, arguments: Arguments) -> Value:
    return arguments.at(0)


def _on_device(frame: Frame, arguments: Arguments) -> Value:
    value = arguments.at(0)
    tensor = value.tensor
    if isinstance(value, Instance) or tensor is None:
        return value if isinstance(value, Instance) else UNKNOWN
    moved = tensor.with_(device=Device.CUDA, place="", leaf="")
    return Sequence("batch", moved) if isinstance(value, Sequence) else moved


_METHODS: dict[str, Special] = {
    "prepare": _prepared_all,
    "prepare_model": _prepared_all,
    "prepare_data_loader": _prepared_all,
    "setup": _prepared_all,
    "setup_module": _prepared_all,
    "setup_dataloaders": _prepared_all,
    "gather": _first,
    "gather_for_metrics": _first,
    "all_gather": _first,
    "all_reduce": _first,
    "reduce": _first,
    "pad_across_processes": _first,
    "unwrap_model": _first,
    "to_device": _on_device,
    "backward": lambda frame, arguments: NONE,
}


# Datasets


_TENSORDICTS = frozenset(
    """tensordict.TensorDict tensordict.TensorDictBase tensordict.LazyStackedTensorDict tensordict.tensordict.TensorDict
    tensordict.tensordict.TensorDictBase tensordict.base.TensorDictBase""".split()
)


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
    if dataset.cls in _TENSORDICTS:
        return _entry(dataset) if _is_key(index) else UNKNOWN if isinstance(index, Unknown) else dataset
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


FUNCTIONS: dict[str, Special] = {
    "torch.utils.data.random_split": _split,
    "torch.utils.data.default_collate": _collated,
    "einops.rearrange": _rearranged,
    "einops.repeat": _rearranged,
    "einops.reduce": _rearranged,
    "einops.einsum": _rearranged,
}
