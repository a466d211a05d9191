"""Losses of the rows that a mask selects."""

from __future__ import annotations

import ast

from perflint.frozen import dataclass
from perflint.rules._memory.flows import behind
from perflint.semantics.sites import CallSite
from perflint.semantics.values import Const, Instance

FUNCTIONS = ("torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss")
"""Losses that can ignore rows by their target."""
_MODULES = ("torch.nn.CrossEntropyLoss", "torch.nn.NLLLoss")


@dataclass(frozen=True, slots=True)
class MaskedLoss:
    """`loss(x[mask], y[mask])`."""

    input: ast.Subscript
    target: ast.Subscript

    @property
    def mask(self) -> ast.expr:
        """The index of both."""
        return self.input.slice


def masked_loss(site: CallSite) -> MaskedLoss | None:
    """The arguments of a call of such a loss, if input and target have the same index."""
    given = site.argument("input", 0), site.argument("target", 1)
    first, second = (each and behind(site.model, each) for each in given)
    if not isinstance(first, ast.Subscript) or not isinstance(second, ast.Subscript):
        return None
    if site.has_unpacking or not _is_loss(site):
        return None
    if ast.dump(first.slice) != ast.dump(second.slice) or setting(site, "reduction") == Const("none"):
        return None
    return MaskedLoss(first, second)


def setting(site: CallSite, name: str) -> object:
    """The value of an argument of a loss or, for a module, of its constructor; None if it is not passed."""
    made = _module(site)
    if made is not None:
        return made.argument(name)
    given = site.argument(name)
    return None if given is None else site.value(given)


def _is_loss(site: CallSite) -> bool:
    return site.target in FUNCTIONS or _module(site) is not None


def _module(site: CallSite) -> Instance | None:
    if site.target != "torch.nn.Module.__call__":
        return None
    value = site.value(site.node.func)
    return value if isinstance(value, Instance) and value.cls in _MODULES else None
