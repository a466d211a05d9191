"""Special methods that Python calls on objects: iteration, indexing, `with`."""

from __future__ import annotations

from perflint.semantics.facts import containers, libraries
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter import functions, library_calls
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.lineage import lineage
from perflint.semantics.interpreter.members import member
from perflint.semantics.lattice import union
from perflint.semantics.values import (
    INT,
    NONE,
    UNKNOWN,
    Const,
    Device,
    Evidence,
    Function,
    Instance,
    Mapping,
    Sequence,
    Tensor,
    Value,
)


def iterated(frame: Frame, value: Instance) -> Value:
    """The items of iterating over an object."""
    if "torch.utils.data.DataLoader" in lineage(frame, value.cls):
        return _batch_of(frame, value)
    if value.cls in _POSITIONS:
        return _POSITIONS[value.cls]
    if value.cls in ("torch.nn.Sequential", "torch.nn.ModuleList"):
        return containers.children(value)
    if value.cls == "torch.nn.ParameterList":
        return libraries.indexed(value)
    method = member(frame, value, "__iter__")
    if isinstance(method, Function):
        iterators = functions.invoke(frame, method, Arguments()).members
        return union(_taken(frame, iterator) for iterator in iterators)
    following = member(frame, value, "__next__")
    if isinstance(following, Function):
        return functions.invoke(frame, following, Arguments())
    # Without `__iter__`, by its indices.
    return indexed(frame, value, INT)


_POSITIONS = {
    "torch.utils.data.BatchSampler": Sequence("list", INT),
    **dict.fromkeys(
        (
            "torch.utils.data.RandomSampler",
            "torch.utils.data.SequentialSampler",
            "torch.utils.data.SubsetRandomSampler",
            "torch.utils.data.WeightedRandomSampler",
            "torch.utils.data.distributed.DistributedSampler",
        ),
        INT,
    ),
}
"""The items of samplers of torch: numbers, or lists of them."""


def _taken(frame: Frame, iterator: Value) -> Value:
    """The items of the result of `__iter__`, which often is the object itself."""
    if isinstance(iterator, Instance):
        following = member(frame, iterator, "__next__")
        if isinstance(following, Function):
            return functions.invoke(frame, following, Arguments())
        if isinstance(member(frame, iterator, "__iter__"), Function):
            # Not an iterator, so Python raises an error.
            return UNKNOWN
    return frame.iterate(iterator)


def _batch_of(frame: Frame, loader: Instance) -> Value:
    """A batch of a DataLoader, in whatever the collate function makes: on the CPU unless its items are elsewhere."""
    # A loader that is told about pinned memory mostly pins.
    pinned = loader.argument("pin_memory") not in (None, NONE, Const(False))
    batch = Tensor(Device.CPU, evidence=Evidence.CONVENTION, pinned=pinned)
    dataset = loader.argument("dataset")
    if isinstance(dataset, Instance) and loader.argument("collate_fn") in (None, NONE):
        device = _place(_tensors(frame.item(dataset, INT)))
        if device is not Device.CPU:
            batch = Tensor(device, evidence=Evidence.CONVENTION)
    return Sequence("batch", batch)


def _place(items: list[Tensor]) -> Device:
    """The device of batches of some items; unknown if a dataset puts only some of them on a device."""
    found = {_of_item(item) for item in items} or {Device.CPU}
    return found.pop() if len(found) == 1 else Device.UNKNOWN


def _of_item(item: Tensor) -> Device:
    """The device of a tensor in an item of a dataset: the CPU, if the dataset does not move the tensor."""
    # A dataset mostly gets its tensors on the CPU.
    moved = item.device is Device.CALLER and item.evidence is Evidence.CERTAIN
    return item.device if moved or item.device is Device.CUDA else Device.CPU


def _tensors(item: Value) -> list[Tensor]:
    """The tensors that an item of a dataset is made of."""
    found: list[Tensor] = []
    for made in item.members:
        if isinstance(made, Tensor):
            found.append(made)
        elif isinstance(made, Sequence):
            parts = (made.element,) if made.items is None else made.items
            found += [part for part in parts if isinstance(part, Tensor)]
        elif isinstance(made, Mapping):
            held = (made.element, *[value for _, value in made.items])
            found += [value for value in held if isinstance(value, Tensor)]
    return found


def indexed(frame: Frame, value: Instance, index: Value, bounds: slice | None = None) -> Value:
    """The result of indexing an object."""
    if value.cls in containers.CONTAINERS:
        return containers.child(value, index, bounds)
    method = member(frame, value, "__getitem__")
    if isinstance(method, Function):
        return functions.invoke(frame, method, Arguments((index,)))
    held = library_calls.element(frame, value, index)
    return libraries.indexed(value) if held is None else held


def entered(frame: Frame, manager: Value) -> Value:
    """The value that `with manager as name` binds."""
    if isinstance(manager, Instance):
        method = member(frame, manager, "__enter__")
        if isinstance(method, Function):
            return functions.invoke(frame, method, Arguments())
        return manager
    return frame.iterate(manager) if isinstance(manager, Sequence) else manager
