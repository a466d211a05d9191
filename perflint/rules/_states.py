"""Checkpoints that are read for `load_state_dict`."""

from __future__ import annotations

import ast

from perflint.semantics.around import is_inside
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, names_in


def is_state(model: Model, node: ast.Call) -> bool:
    """True if a checkpoint that a call reads, or a part of it, is given to `load_state_dict`."""
    statement = model.parent(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {name for target in targets for name in names_in(target)}
    for call in model.nodes(ast.Call):
        if last_name(call) == "load_state_dict" and model.function(call) is model.function(node) and call.args:
            if names & names_in(call.args[0]) or is_inside(model, node, call):
                return True
    return False
