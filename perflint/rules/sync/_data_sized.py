"""Results whose size depends on the data, so that the CPU waits for it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.findings import Confidence, lowered, surest, weakest
from perflint.rules.placement import of_computed, operand_confidence
from perflint.rules.sync._indices import Index, Part, parts
from perflint.semantics.sites import CallSite, SubscriptSite, device_confidence
from perflint.semantics.structure import is_none
from perflint.semantics.values import Const, Device, Evidence, Name, Tensor, Unknown, Value, scalar_type

_METHODS = frozenset({"torch.Tensor.nonzero", "torch.Tensor.argwhere", "torch.Tensor.masked_select"})
SELECTIONS = _METHODS | {"torch.nonzero", "torch.argwhere", "torch.masked_select", "torch.where"}
FIXED = frozenset({"torch.histc", "torch.Tensor.histc"})
"""They wait for the device, and their results have one size."""
UNIQUE = FIXED | {
    f"{owner}.{name}" for owner in ("torch", "torch.Tensor") for name in ("unique", "unique_consecutive", "bincount")
}
REPEATS = frozenset({"torch.repeat_interleave", "torch.Tensor.repeat_interleave"})
ONE_HOT = frozenset({"torch.nn.functional.one_hot"})
_NUMBERS = ("int", "float", "bool", "complex")


def data_sized(site: CallSite | SubscriptSite) -> Confidence | None:
    """How sure it is that the CPU waits for the size of a result, or the bounds of `histc`; None if it does not."""
    return indexed(site) if isinstance(site, SubscriptSite) else _CALLS[site.target](site)


def _chosen(site: CallSite) -> Confidence | None:
    operand = selected(site)
    return None if operand is None else of_computed(site.value(operand))


def selected(site: CallSite) -> ast.expr | None:
    """The tensor whose elements are counted; None if nothing is."""
    if site.target in _METHODS:
        return site.owner
    if site.target == "torch.where" and (len(site.node.args) != 1 or site.node.keywords):
        return None
    return site.argument("input", 0)


def indexed(site: SubscriptSite) -> Confidence | None:
    """How sure it is that an indexing counts the true elements of a mask on the device; None if it does not."""
    if site.mode == "delete":
        return None
    found = parts(site)
    masks = [part for part in found if part.kind is Index.MASK]
    if not masks:
        return None
    if site.mode == "store" and not _stores_elements(site, found):
        return None
    held = site.value(site.node.value)
    receiver = device_confidence(held)
    mask = None if device_confidence(masks[0].value) is None else of_computed(masks[0].value)
    if receiver is None and mask is not None and held.is_unknown:
        # Only tensors are indexed by a mask of the device. A name alone may be that of positions.
        receiver = mask if masks[0].is_bool else Confidence.LOW
        mask = mask if masks[0].is_bool else Confidence.LOW
    if receiver is None or (mask is None and masks[0].value.tensor is not None):
        return None
    # A mask of the device can only select from a tensor of the device: either tells of both.
    confidence = lowered(receiver) if mask is None else surest(mask, lowered(receiver))
    if not masks[0].is_bool:
        confidence = weakest(confidence, Confidence.MEDIUM)
    if site.mode == "store" and site.stored is not None and _may_be_number(site.value(site.stored)):
        return Confidence.LOW
    return confidence


def _stores_elements(site: SubscriptSite, found: tuple[Part, ...]) -> bool:
    """True if a store goes to the positions of the mask one by one, and not through `masked_fill_`."""
    if site.stored is None:
        return True
    several = sum(part.kind not in (Index.VIEW, Index.INTEGER) for part in found) > 1
    stored = site.value(site.stored)
    if stored.tensor is not None:
        # A device tensor of no dimensions goes through `masked_fill_` too: masked-fill-cuda-scalar.
        return several or stored.tensor.rank != 0
    return several or not all(scalar_type(member) in _NUMBERS for member in stored.members)


def _may_be_number(stored: Value) -> bool:
    """True if a stored value of unknown type may be a number, which `masked_fill_` takes without a wait."""
    return stored.tensor is None and any(isinstance(member, (Name, Unknown)) for member in stored.members)


def _counted(site: CallSite) -> Confidence | None:
    if site.has_unpacking:
        return None
    method = site.target.startswith("torch.Tensor.")
    first = 0 if method else 1
    if site.target.endswith(".histc"):
        bounds = [site.argument("min", first + 1), site.argument("max", first + 2)]
        if any(bound is not None and not _is_zero(bound) for bound in bounds):
            return None
    if method:
        return None if site.receiver is None else device_confidence(site.receiver)
    operand = site.argument("input", 0)
    return None if operand is None else operand_confidence(site.value(operand))


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _repeated(site: CallSite) -> Confidence | None:
    given = site.argument("output_size")
    if site.has_unpacking or (given is not None and not is_none(given)):
        return None
    position = 0 if site.target.startswith("torch.Tensor.") else 1
    repeats = site.argument("repeats", position)
    if repeats is None and position == 1:
        # With one tensor, that is the repeats.
        repeats = site.argument("input", 0)
    if repeats is None or _repeats_on_cpu(site, position):
        return None
    return device_confidence(site.value(repeats))


def _repeats_on_cpu(site: CallSite, position: int) -> bool:
    """True if the tensor that is repeated is on the CPU: the call raises if the repeats are not there, too."""
    given = None if position == 0 else site.argument("input", 0)
    repeated = site.receiver if given is None else site.value(given)
    if not isinstance(repeated, Tensor):
        return False
    return repeated.device is Device.CPU and repeated.evidence is Evidence.CERTAIN


def _encoded(site: CallSite) -> Confidence | None:
    classes, labels = site.argument("num_classes", 1), site.argument("tensor", 0) or site.argument("input", 0)
    if site.has_unpacking or labels is None:
        return None
    if classes is not None and site.value(classes) != Const(-1):
        return None
    return device_confidence(site.value(labels))


_CALLS: dict[str, Callable[[CallSite], Confidence | None]] = {
    **dict.fromkeys(SELECTIONS, _chosen),
    **dict.fromkeys(UNIQUE, _counted),
    **dict.fromkeys(REPEATS, _repeated),
    **dict.fromkeys(ONE_HOT, _encoded),
}
