"""Selections right after another wait for the same mask: `if mask.any(): x[mask]`, `ids = x.unique()`, `ids[ids > 0]`.

The queue of the GPU is empty then, so that the second wait takes little time. A mask that selects several times is
another matter: one search would do.
"""

from __future__ import annotations

import ast
from collections import Counter

from perflint.rules._statements import outward
from perflint.rules.sync._guards import mask_asked_by
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, SubscriptSite
from perflint.semantics.structure import block_in, calls_in, last_name, names_in, place_in, walk

_MOST_STATEMENTS = 12
"""Statements before a selection in each block that are looked at."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_LEAVE = (ast.Return, ast.Continue, ast.Break, ast.Raise)
_OF_UNKNOWN_SIZE = frozenset("unique nonzero argwhere masked_select".split())
"""Functions and methods whose results have a size that the CPU waits for."""


def follows_wait(site: SubscriptSite | CallSite) -> bool:
    """True if the CPU has just waited for the mask of an indexing or search, with no model run in between."""
    if isinstance(site, CallSite):
        mask = _searched(site.node)
        if mask is None:
            return False
        return _is_searched_before(site, mask) or _is_asked(site.model, site.node, {ast.dump(mask)})
    if any(_is_searched_before(site, mask) for mask in _masks(site)):
        return True
    masks = {ast.dump(mask) for mask in _masks(site) if not _selects_again(site, mask)}
    return (bool(masks) and _is_asked(site.model, site.node, masks)) or _is_of_sized(site)


def _searched(call: ast.Call) -> ast.expr | None:
    """The mask of `mask.nonzero()` and `torch.nonzero(mask)`; None for other calls."""
    if last_name(call) not in ("nonzero", "argwhere"):
        return None
    if call.args:
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _is_searched_before(site: SubscriptSite | CallSite, mask: ast.expr) -> bool:
    """True if the test of a branch around a place searches the same mask: `if len(mask.nonzero()) > 0:`."""
    for outer, inner in outward(site.model, site.node):
        if isinstance(outer, (*_FUNCTIONS, *_LOOPS)):
            return False
        if isinstance(outer, ast.If) and inner is not outer.test:
            found = (_searched(node) for node in calls_in(outer.test))
            if any(other is not None and ast.dump(other) == ast.dump(mask) for other in found):
                return not _runs_model(site.model, outer.body[: place_in(outer.body, inner) or 0])
    return False


def _masks(site: SubscriptSite) -> list[ast.expr]:
    """The expressions that may be the mask of a selection."""
    index = site.node.slice
    return [index, *(index.elts if isinstance(index, ast.Tuple) else ())]


def _selects_again(site: SubscriptSite, mask: ast.expr) -> bool:
    """True if the function around a site selects with a mask, a name, more than once."""
    function = site.model.function(site.node)
    return isinstance(mask, ast.Name) and function is not None and _selected_by(site.model, function)[mask.id] > 1


@once_per_node
def _selected_by(model: Model, function: ast.AST) -> Counter[str]:
    """The number of indexings of a function by each name, alone or as a part of the index."""
    found: Counter[str] = Counter()
    for node in walk(function):
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            found.update(part.id for part in parts if isinstance(part, ast.Name))
    return found


def _is_asked(model: Model, node: ast.AST, masks: set[str]) -> bool:
    """True if a test around a node, or in front of it, has asked whether one of the masks has a true element."""
    for outer, inner in outward(model, node):
        block = block_in(outer, inner) if isinstance(inner, ast.stmt) else []
        at = place_in(block, inner)
        before = block[max(0, at - _MOST_STATEMENTS) : at] if at else []
        for index in reversed(range(len(before))):
            if _leaves_without(model, before[index], masks):
                return not _runs_model(model, before[index + 1 :])
        if _runs_model(model, before) or isinstance(outer, (*_FUNCTIONS, *_LOOPS)):
            # A `while` tests its mask in each iteration.
            return isinstance(outer, ast.While) and not _runs_model(model, before) and _asks(model, outer.test, masks)
        if isinstance(outer, ast.If) and place_in(outer.body, inner) is not None and _asks(model, outer.test, masks):
            return True
        if isinstance(outer, ast.If) and place_in(outer.orelse, inner) is not None:
            mask = mask_asked_by(model, outer.test, finds_none=True)
            if mask is not None and ast.dump(mask) in masks:
                return True
        if isinstance(outer, ast.IfExp) and inner is outer.body and _asks(model, outer.test, masks):
            return True
    return False


def _leaves_without(model: Model, statement: ast.stmt, masks: set[str]) -> bool:
    """True for `if not mask.any(): return`, and with `continue`, `break` or `raise`."""
    if not isinstance(statement, ast.If) or statement.orelse or not isinstance(statement.body[-1], _LEAVE):
        return False
    mask = mask_asked_by(model, statement.test, finds_none=True)
    return mask is not None and ast.dump(mask) in masks


def _asks(model: Model, test: ast.expr, masks: set[str]) -> bool:
    """True if a test that holds says that one of the masks has a true element."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    asked = (mask_asked_by(model, part) for part in parts)
    return any(mask is not None and ast.dump(mask) in masks for mask in asked)


def _is_of_sized(site: SubscriptSite) -> bool:
    """True if the statement in front of `ids[ids > 0]` has made `ids` of a size that the CPU waited for."""
    if not isinstance(site.node.value, ast.Name):
        return False
    name = site.node.value.id
    if name not in names_in(site.node.slice):
        return False
    statement = next((outer for outer in site.model.ancestors(site.node) if isinstance(outer, ast.stmt)), None)
    block = block_in(site.model.parent(statement), statement) if statement is not None else []
    at = place_in(block, statement) if statement is not None else None
    made = block[at - 1] if at else None
    if not isinstance(made, ast.Assign) or not isinstance(made.value, ast.Call):
        return False
    return name in names_in(made.targets[0]) and last_name(made.value) in _OF_UNKNOWN_SIZE


def _runs_model(model: Model, statements: list[ast.stmt]) -> bool:
    """True if any of some statements runs a model, which keeps the GPU at work."""
    return any(_is_work(model, statement) for statement in statements)


@once_per_node
def _is_work(model: Model, statement: ast.stmt) -> bool:
    # Each selection of a block asks about the statements before the block.
    return any(model.heat_map.work.is_work(call) for call in calls_in(statement))
