"""Decides if code of other libraries or of the project takes a whole copy on the CPU, so that the copy must happen."""

from __future__ import annotations

import ast
import sys

from perflint.semantics.dataflow.destinations import Use
from perflint.semantics.facts import conventions
from perflint.semantics.heat.training import helps_to_train
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import last_name

_TENSORS = frozenset({"torch", "numpy", *sys.stdlib_module_names})
"""Packages whose functions take tensors of the GPU, or numbers."""
_GATHERED = frozenset({Use.LIST, Use.LOG, Use.SUM, Use.KEPT})
"""Uses of values that can be copied later, and many at once."""
_LAYOUTS = frozenset(
    """numpy cpu detach float double astype clone copy contiguous reshape view flatten squeeze unsqueeze transpose
    permute swapaxes""".split()
)
"""Methods whose result holds the same values as a copy."""


def is_taken(site: CallSite) -> bool:
    """True if a copy of a tensor is only given to functions that neither torch, NumPy nor Python defines.

    `cv2.resize(x.cpu().numpy(), size)`; `x = x.cpu().numpy()`, then `index.search(x)`. Not numbers. Not in code that
    trains, nor in code that a package offers.
    """
    model = site.model
    if model.is_offered:
        return False
    copied = site.value(site.node).tensor
    is_number = last_name(site.node) == "tolist" or (copied is not None and copied.rank == 0)
    if is_number or model.destinations.of(site.node) in _GATHERED:
        return False
    if helps_to_train(model, site.node):
        return False
    node, outer = _whole(model, site.node)
    if not isinstance(outer, ast.Assign):
        return _takes(model, outer, node)
    target = outer.targets[0]
    end = (outer.end_lineno or 0, outer.end_col_offset or 0)
    loads = model.destinations.later(target) if isinstance(target, ast.Name) else []
    after = [_whole(model, load) for load in loads if (load.lineno, load.col_offset) >= end]
    return bool(after) and all(_takes(model, around, inner) for inner, around in after)


def _whole(model: Model, node: ast.expr) -> tuple[ast.expr, ast.AST | None]:
    """The expression of a copy with its change of layout, and the node around it: `x.cpu().numpy()` of `x.cpu()`."""
    while True:
        outer = model.parent(node)
        call = model.parent(outer) if isinstance(outer, ast.Attribute) and outer.attr in _LAYOUTS else None
        if isinstance(outer, ast.keyword):
            return node, model.parent(outer)
        if not isinstance(call, ast.Call) or call.func is not outer:
            return node, outer
        node = call


def _takes(model: Model, call: ast.AST | None, given: ast.expr) -> bool:
    """True if a call gives a value to a function of another library or of the project, not to a class or a log."""
    if not isinstance(call, ast.Call) or given is call.func:
        return False
    target, name = model.target(call), last_name(call)
    if not target or target.partition(".")[0] in _TENSORS or target.startswith("builtins."):
        return False
    return not name[:1].isupper() and name != "update" and not conventions.writes_log(name)
