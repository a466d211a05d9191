"""The places in a file with a number that several layers must agree on."""

from __future__ import annotations

import ast
import re

from perflint.findings import Edit
from perflint.semantics.model import Model

_SIZED = re.compile(r"torch\.nn\.\w+")


def rewritten(model: Model, old: int, new: int) -> tuple[Edit, ...]:
    """The edits that write `new` wherever the file writes `old`.

    Empty if the number also stands for something else: compared with, computed with,
    an index, an argument of anything but a layer.
    """
    edits: list[Edit] = []
    for node in model.nodes(ast.Constant):
        if type(node.value) is int and node.value == old:
            if not _is_a_size(model, node):
                return ()
            edits.append(Edit(model.source.span(node), str(new)))
    return tuple(edits)


def _is_a_size(model: Model, node: ast.Constant) -> bool:
    """True if a number is given to a layer, or to a name: by assignment, as a default, as a keyword."""
    parent = model.parent(node)
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.arguments)):
        return True
    if isinstance(parent, ast.keyword):
        return True
    return isinstance(parent, ast.Call) and _SIZED.fullmatch(model.target(parent)) is not None
