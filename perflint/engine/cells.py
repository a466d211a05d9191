"""Fixes in notebooks, whose cells may run again without the cells before them."""

from __future__ import annotations

import ast
import re
from bisect import bisect

from perflint.findings import Edit, Finding, Safety
from perflint.frozen import replace
from perflint.semantics.model import Model
from perflint.source.reading import NOTEBOOK

_REBINDS = re.compile(r"^[ \t]*(\w+)[\w.]* = .*\b\1\b", re.MULTILINE)
"""An assignment that makes a new value from the old one: `losses = torch.stack(losses).tolist()`."""


def repeatable(finding: Finding, model: Model) -> Finding:
    """The finding with a fix that is only shown if it may fail when its cell runs a second time.

    That is so for a fix that replaces a value by another kind of value, if the value was made in another cell.
    """
    fix = finding.fix
    if fix is None or model.module.path.suffix != NOTEBOOK:
        return finding
    # Other files do not pay for the import.
    from perflint.source.notebooks import borders_in

    borders = borders_in(model.source.lines)
    if all(_is_bound_in_cell(edit, borders, model) for edit in fix.edits):
        return finding
    message = f"{fix.message} (the cell may run again with the value of another cell)"
    return replace(finding, fix=replace(fix, safety=Safety.DISPLAY, message=message))


def _is_bound_in_cell(edit: Edit, borders: list[int], model: Model) -> bool:
    """True if the names that an edit rebinds are bound in the cell of the edit, too."""
    names = set(_REBINDS.findall(edit.text))
    cell = bisect(borders, edit.span.line - 1)
    bound = {
        node.id
        for node in (model.nodes(ast.Name) if names else ())
        if isinstance(node.ctx, ast.Store) and bisect(borders, node.lineno) == cell
    }
    return names <= bound
