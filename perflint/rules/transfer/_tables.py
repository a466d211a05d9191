"""Tables that a constructor makes on the CPU and another method moves: `self.table = self.table.to(x.device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import CONSTRUCTORS, path_of
from perflint.semantics.values import Device, Tensor


def moves_own_table(site: CallSite, receiver: ast.expr) -> bool:
    """True if a move is the first one of an attribute that the constructor leaves on the CPU: later ones copy nothing.

    An attribute of a module that its class registers moves with the module.
    """
    path = path_of(receiver)
    statement = site.model.parent(site.node)
    if not path.startswith("self.") or path.count(".") != 1 or not isinstance(statement, ast.Assign):
        return False
    if [path_of(target) for target in statement.targets] != [path]:
        return False
    around = site.model.function(site.node)
    info = None if around is None else site.model.module.function(around.lineno, around.col_offset)
    if info is None or not info.owner or info.name in CONSTRUCTORS:
        return False
    made = _constructed(site.model).get((info.owner, path), ())
    values = [site.model.value(target) for target in made]
    return bool(values) and all(
        isinstance(value, Tensor) and value.device is Device.CPU and not value.leaf for value in values
    )


@once
def _constructed(model: Model) -> dict[tuple[str, str], list[ast.expr]]:
    """The assignments of constructors to attributes of `self`, by class and path."""
    found: dict[tuple[str, str], list[ast.expr]] = {}
    for owner, target in _assignments(model):
        found.setdefault((owner, path_of(target)), []).append(target)
    return found


def _assignments(model: Model) -> Iterator[tuple[str, ast.expr]]:
    for statement in model.nodes(ast.Assign):
        targets = [target for target in statement.targets if path_of(target).startswith("self.")]
        function = model.function(statement) if targets else None
        info = None if function is None else model.module.function(function.lineno, function.col_offset)
        if info is not None and info.owner and info.name in CONSTRUCTORS:
            yield from ((info.owner, target) for target in targets)
