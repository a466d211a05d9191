"""Numbers that a loop reads in each turn, kept on the device until it is over."""

from __future__ import annotations

import ast
from itertools import takewhile

from perflint.findings import Fix
from perflint.rules._places import inside
from perflint.rules._statements import block_of, statement_of
from perflint.rules.sync._lists import listed_on_device
from perflint.rules.sync._meters import averaged_on_device
from perflint.rules.sync._scalars import NUMBERS, Read, number_at
from perflint.rules.sync._sums import summed_on_device
from perflint.rules.sync._turns import is_item, waits_for_number
from perflint.semantics.binders import LOOPS
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import stands_in, walk

_TRIES = (ast.Try, ast.TryStar)
_METHODS = ("append", "update")


def kept_on_device(site: CallSite, read: Read) -> Fix | None:
    """The fix for a number that goes into a sum, an average or a list; None if the CPU waits beside it in any case."""
    fix = None if _is_handled(site.model, read.node) else _kept(site, read)
    waits = fix is not None and (_waits_beside(site.model, read.node) or waits_for_number(site.model, read.node))
    return None if waits else fix


def _is_handled(model: Model, read: ast.expr) -> bool:
    """True if a `try` in the loop handles what the read raises, which is an error of any kernel before it."""
    inner: ast.AST = read
    for outer in inside(model, read):
        if isinstance(outer, LOOPS):
            return False
        if isinstance(outer, _TRIES) and stands_in(outer.body, inner):
            return bool(outer.handlers)
        inner = outer
    return False


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
    found = [node for other in row for node in walk(other) if isinstance(node, ast.Call)]
    if any(is_item(node) and not model.target(node) for node in found):
        # Only tensors and arrays have such numbers: an unknown one may be on the GPU, too.
        return True
    calls = (model.call(node) for node in found)
    numbers = ((call, number_at(call)) for call in calls if call.target in NUMBERS)
    return any(number is not None and _kept(call, number) is None for call, number in numbers)


def _gathers(statement: ast.stmt) -> bool:
    """True for `total += …`, `values.append(…)` and `meter.update(…)`."""
    if isinstance(statement, ast.AugAssign):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS
