"""Packed sequences of torch.nn.utils.rnn: sequences of several lengths as one object."""

from __future__ import annotations

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.lattice import union
from perflint.semantics.values import UNKNOWN, Const, Device, Instance, Kind, Sequence, Tensor, Value

CLASS = "torch.nn.utils.rnn.PackedSequence"


def packed(data: Value | None, is_sorted: Value | None, arguments: Arguments) -> Value:
    """The result of packing: an object with its contents and the argument `enforce_sorted`."""
    held = data or UNKNOWN
    if held.tensor is None and isinstance(held, Sequence):
        held = held.element
    return Instance(
        CLASS, None if arguments.unpacked else (("data", held), ("enforce_sorted", is_sorted or Const(True)))
    )


def padded(sequence: Value) -> Value:
    """The result of `pad_packed_sequence`: the sequences in one tensor, and their lengths on the CPU."""
    found = next((each for each in sequence.members if isinstance(each, Instance) and each.cls == CLASS), None)
    data = (sequence if found is None else found.argument("data") or UNKNOWN).tensor
    output = Tensor() if data is None else data.with_(rank=None, leaf="")
    lengths = Tensor(Device.CPU, Kind.INT, 1)
    return Sequence("tuple", union([output, lengths]), (output, lengths))


def through(layer: Value, arguments: Arguments) -> Value:
    """The result of a recurrent layer, whose first output is packed like its input; `layer` for tensors."""
    given = arguments.get("input", 0)
    if not (isinstance(given, Instance) and given.cls == CLASS and isinstance(layer, Sequence) and layer.items):
        return layer
    output, *rest = layer.items
    kept = tuple(pair for pair in given.arguments or () if pair[0] != "data")
    repacked = Instance(CLASS, None if given.arguments is None else (("data", output), *kept))
    return Sequence(layer.type, UNKNOWN, (repacked, *rest))


def attribute(value: Instance, name: str) -> Value | None:
    """An attribute of a packed sequence; None if it is not known."""
    if name == "data":
        return value.argument("data")
    return Tensor(Device.CPU, Kind.INT, 1) if name == "batch_sizes" else None
