"""Items of a schedule: `for t in schedule.timesteps: x = schedule.step(model(x, t), t, x)`."""

from __future__ import annotations

from perflint.semantics.facts.conventions import is_time_step
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.lineage import is_module
from perflint.semantics.values import Device, Evidence, Instance, Kind, Tensor, Unknown, Value, scalar_type

_TABLE = "timesteps"


def item(frame: Frame, name: str, value: Value) -> Value:
    """The value of a parameter of a method that its callers, which are unknown, take from the object's schedule.

    Annotations say `int` there, but the items of a tensor are tensors. The `forward` of a module gets a batch of them.
    """
    receiver = frame.receiver
    if not is_time_step(name) or not isinstance(receiver, Instance) or is_module(frame, receiver.cls):
        return value
    if not all(isinstance(member, (Tensor, Unknown)) or scalar_type(member) in _NUMBERS for member in value.members):
        return value
    table = frame.attribute(receiver, _TABLE).tensor
    if table is None or table.device is Device.CPU or table.evidence is Evidence.USE:
        return value
    promised = {scalar_type(member) for member in value.members}
    kind = Kind.INT if table.kind is Kind.UNKNOWN and "int" in promised else table.kind
    return Tensor(table.device, kind, rank=0, evidence=Evidence.CONVENTION, place=table.place)


_NUMBERS = frozenset({"int", "float", "None"})
