"""Numbers that a loop reads in each iteration, kept on the device until it is over."""

from __future__ import annotations

import ast
from itertools import takewhile

from perflint.findings import Fix, Heat
from perflint.rules._statements import block_of
from perflint.rules.sync._lists import listed_on_device
from perflint.rules.sync._meters import averaged_on_device
from perflint.rules.sync._scalars import NUMBERS, Read, number_at
from perflint.rules.sync._sums import summed_on_device
from perflint.rules.sync._turns import is_item, waits_for_number
from perflint.semantics.around import inside, statement_of
from perflint.semantics.binders import LOOPS
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import stands_in, walk

_TRIES = (ast.Try, ast.TryStar)
_METHODS = ("append", "update")


def kept_on_device(site: CallSite, read: Read) -> Fix | None:
    """The fix for a number that goes into a sum, an average or a list; None if the CPU waits beside it in any case."""
    fix = None if _is_handled(site.model, read.node) else _kept(site, read)
    return None if fix is None or _waits_anyway(site.model, read) else fix


def _waits_anyway(model: Model, read: Read) -> bool:
    """True if the CPU waits in each iteration although a number stays on the GPU."""
    return _waits_beside(model, read.node) or _is_read_again(model, read) or waits_for_number(model, read.node)


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
    """True if a statement of the same kind, in a row with that of a read, needs its number in each iteration."""
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


def _is_read_again(model: Model, read: Read) -> bool:
    """True if each iteration needs the same number elsewhere: `total += loss.item()`, `bar.set(loss.item())`."""
    loop = next((outer for outer in inside(model, read.node) if isinstance(outer, LOOPS)), None)
    if loop is None or not isinstance(read.tensor, ast.Name):
        return False
    uses = model.names(loop, read.tensor.id)
    return any(use is not read.tensor and _needs_number(model, use) for use in uses if model.heat(use) is not Heat.COLD)


def _needs_number(model: Model, use: ast.Name) -> bool:
    """True if the CPU waits for the number of a tensor, and no fix keeps it on the GPU."""
    outer = model.parent(use)
    if isinstance(outer, ast.Attribute):
        outer = model.parent(outer)
    if isinstance(outer, ast.FormattedValue):
        return outer.value is use
    if not isinstance(outer, ast.Call):
        return False
    call = model.call(outer)
    number = number_at(call) if call.target in NUMBERS else None
    return number is not None and number.tensor is use and _kept(call, number) is None


def _gathers(statement: ast.stmt) -> bool:
    """True for `total += …`, `values.append(…)` and `meter.update(…)`."""
    if isinstance(statement, ast.AugAssign):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS
