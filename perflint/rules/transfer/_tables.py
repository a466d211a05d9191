"""Tables that a constructor makes on the CPU and another method moves: `self.table = self.table.to(x.device)`."""

from __future__ import annotations

import ast

from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import CONSTRUCTORS, path_of
from perflint.semantics.values import Device, Tensor


def moves_own_table(site: CallSite, receiver: ast.expr) -> bool:
    """True if a move is the first one of an attribute that the constructor leaves on the CPU: later ones copy nothing.

    Of several methods that move it, the first in the file stands for all. An attribute of a module that its class
    registers moves with the module.
    """
    path = path_of(receiver)
    statement = site.model.parent(site.node)
    if not path.startswith("self.") or path.count(".") != 1 or not isinstance(statement, ast.Assign):
        return False
    if [path_of(target) for target in statement.targets] != [path]:
        return False
    around = site.model.function(site.node)
    info = site.model.module.defined_by(around)
    if info is None or not info.owner or info.name in CONSTRUCTORS:
        return False
    constructed, moved = _assigned(site.model)
    if moved.get((info.owner, path)) is not statement.targets[0]:
        return False
    values = [site.model.value(target) for target in constructed.get((info.owner, path), ())]
    return bool(values) and all(
        isinstance(value, Tensor) and value.device is Device.CPU and not value.leaf for value in values
    )


@once
def _assigned(model: Model) -> tuple[dict[tuple[str, str], list[ast.expr]], dict[tuple[str, str], ast.expr]]:
    """By class and path, the targets of constructors that are attributes of `self`, and the first `self.x = self.x.f()`
    of other methods."""
    constructed: dict[tuple[str, str], list[ast.expr]] = {}
    moved: dict[tuple[str, str], ast.expr] = {}
    for statement in model.nodes(ast.Assign):
        for target in statement.targets:
            path = path_of(target)
            function = model.function(statement) if path.startswith("self.") else None
            info = model.module.defined_by(function)
            if info is None or not info.owner:
                continue
            if info.name in CONSTRUCTORS:
                constructed.setdefault((info.owner, path), []).append(target)
            elif isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Attribute):
                if path_of(statement.value.func.value) == path:
                    moved.setdefault((info.owner, path), target)
    return constructed, moved
