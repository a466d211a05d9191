"""Numbers that a loop reads in each turn, kept on the device until it is over."""

from __future__ import annotations

import ast
from itertools import takewhile

from perflint.findings import Fix
from perflint.rules._statements import block_of, statement_of
from perflint.rules.sync._lists import listed_on_device
from perflint.rules.sync._meters import averaged_on_device
from perflint.rules.sync._scalars import NUMBERS, Read, number_at
from perflint.rules.sync._sums import summed_on_device
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import walk

_METHODS = ("append", "update")


def kept_on_device(site: CallSite, read: Read) -> Fix | None:
    """The fix for a number that goes into a sum, an average or a list; None if the CPU waits beside it in any case."""
    fix = _kept(site, read)
    return None if fix is None or _waits_beside(site.model, read.node) else fix


def _kept(site: CallSite, read: Read) -> Fix | None:
    return summed_on_device(site, read) or averaged_on_device(site, read) or listed_on_device(site, read)


def _waits_beside(model: Model, read: ast.expr) -> bool:
    """True if a statement of the same kind, in a row with that of a read, needs its number in each turn."""
    statement = statement_of(model, read)
    if statement is None:
        return False
    block = block_of(model, statement)
    at = block.index(statement)
    row = (*takewhile(_gathers, reversed(block[:at])), *takewhile(_gathers, block[at + 1 :]))
    calls = (model.call(node) for other in row for node in walk(other) if isinstance(node, ast.Call))
    numbers = ((call, number_at(call)) for call in calls if call.target in NUMBERS)
    return any(number is not None and _kept(call, number) is None for call, number in numbers)


def _gathers(statement: ast.stmt) -> bool:
    """True for `total += …`, `values.append(…)` and `meter.update(…)`."""
    if isinstance(statement, ast.AugAssign):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS
