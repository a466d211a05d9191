"""What Python asks of objects: to be iterated over, indexed, entered."""

from __future__ import annotations

from perflint.semantics import containers, frameworks, functions, libraries
from perflint.semantics.arguments import Arguments
from perflint.semantics.classes import lineage, member
from perflint.semantics.frame import Frame
from perflint.semantics.values import INT, Const, Device, Evidence, Function, Instance, Sequence, Tensor, Value


def iterated(frame: Frame, value: Instance) -> Value:
    """What iterating over an object yields."""
    if "torch.utils.data.DataLoader" in lineage(frame, value.cls):
        return _batch_of(value)
    if value.cls in ("torch.nn.Sequential", "torch.nn.ModuleList"):
        return containers.children(value)
    if value.cls == "torch.nn.ParameterList":
        return libraries.indexed(value)
    method = member(frame, value, "__iter__")
    if isinstance(method, Function):
        return frame.iterate(functions.invoke(frame, method, Arguments()))
    # Without `__iter__`, by its indices.
    return indexed(frame, value, INT)


def _batch_of(loader: Instance) -> Value:
    """A batch of a DataLoader: tensors on the host, in whatever the collate function makes."""
    pinned = loader.argument("pin_memory") == Const(True)
    return Sequence("batch", Tensor(Device.CPU, evidence=Evidence.CONVENTION, pinned=pinned))


def indexed(frame: Frame, value: Instance, index: Value, bounds: slice | None = None) -> Value:
    """What indexing an object gives."""
    if value.cls in containers.CONTAINERS:
        return containers.child(value, index, bounds)
    method = member(frame, value, "__getitem__")
    if isinstance(method, Function):
        return functions.invoke(frame, method, Arguments((index,)))
    held = frameworks.element(frame, value, index)
    return libraries.indexed(value) if held is None else held


def entered(frame: Frame, manager: Value) -> Value:
    """What `with manager as name` binds."""
    if isinstance(manager, Instance):
        method = member(frame, manager, "__enter__")
        if isinstance(method, Function):
            return functions.invoke(frame, method, Arguments())
        return manager
    return frame.iterate(manager) if isinstance(manager, Sequence) else manager
