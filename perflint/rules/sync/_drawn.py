"""Random positions that are drawn on the CPU, from a result of the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence
from perflint.frozen import dataclass
from perflint.rules._memory.flows import ahead, behind
from perflint.rules.placement import MOVES, move
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, device_confidence
from perflint.semantics.structure import walk
from perflint.semantics.values import Device

_OTHER_DEVICES = ("mps", "npu", "xpu", "xla", "hpu", "cpu")
NAMES = ("torch.multinomial", "torch.Tensor.multinomial")


@dataclass(frozen=True, slots=True)
class Draw:
    """`torch.multinomial(p.cpu(), n).to(device)`."""

    leaves: ast.Call
    """`p.cpu()`."""
    returns: tuple[ast.Call, ...]
    """`….to(device)`, and all other moves of the result to the GPU."""
    confidence: Confidence
    """How sure it is that `p` is on the device."""


def drawn_on_host(site: CallSite) -> Draw | None:
    """The probabilities of a call of `multinomial`; None unless they go to the CPU for it and the result back.

    A generator belongs to one device: a call with one is meant to draw there.
    """
    if site.has_unpacking or site.argument("generator") is not None or site.argument("out") is not None:
        return None
    given = _given(site)
    leaves = None if given is None else behind(site.model, given)
    returns = tuple(each for each in _chain(site.model, site.node) if _moves(site.model, each))
    if not isinstance(leaves, ast.Call) or not returns:
        return None
    left = site.model.call(leaves)
    if left.target not in ("torch.Tensor.cpu", "torch.Tensor.to") or left.receiver is None:
        return None
    value = site.value(leaves).tensor
    if value is None or value.device is not Device.CPU:
        return None
    confidence = device_confidence(left.receiver)
    if confidence is None or _is_for_other_devices(site):
        return None
    return Draw(leaves, returns, confidence)


def _is_for_other_devices(site: CallSite) -> bool:
    """True if a branch that asks for a device other than CUDA decides on the call: it may lack the operator."""
    tests = (each.test for each in site.model.ancestors(site.node) if isinstance(each, (ast.If, ast.IfExp)))
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.startswith(_OTHER_DEVICES)
        for test in tests
        for part in walk(test)
    )


def _chain(model: Model, node: ast.expr) -> Iterator[ast.Call]:
    """The methods that are called on the result of an expression, one on the other's."""
    while True:
        node = ahead(model, node)
        attribute = model.parent(node)
        call = None if attribute is None else model.parent(attribute)
        if not isinstance(attribute, ast.Attribute) or not isinstance(call, ast.Call) or call.func is not attribute:
            return
        yield call
        node = call


def _given(site: CallSite) -> ast.expr | None:
    if site.target == "torch.Tensor.multinomial":
        return site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
    return site.argument("input", 0)


def _moves(model: Model, call: ast.Call) -> bool:
    site = model.call(call)
    return site.target in MOVES and move(site) is not None
