"""The code that a module is made of: its class and its bases, the classes of its parts, and what these call outside."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.semantics.memo import once_per_key
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, path_of
from perflint.semantics.values import Sequence, Value

_MOST_CLASSES = 40
"""Classes of the project that are looked at; further ones count as not seen."""


class Made(NamedTuple):
    """The code of a module."""

    classes: list[ast.ClassDef]
    """Those of the project: its own, its bases, and those of its parts."""
    bases: list[str]
    """Their bases outside of the project, by full name."""
    calls: list[tuple[str, ast.Call]]
    """The functions and classes outside of the project that they call, by full name."""


@once_per_key
def made_of(model: Model, cls: str) -> Made:
    """The code that a module of a class, by its full name, is made of."""
    made, waiting = Made([], [], []), [cls]
    seen = {cls}
    for part in waiting:
        for name in model.lineage(part):
            found = model.view.klass(name)
            if found is None:
                made.bases.append(name)
            elif found[1].node not in made.classes:
                home, info = found
                made.classes.append(info.node)
                for call in calls_in(info.node):
                    path = path_of(call.func)
                    full = home.full_name(path)
                    if full in seen or path.startswith(("self.", "cls.")):
                        continue
                    if model.view.klass(full) is not None and len(seen) < _MOST_CLASSES:
                        seen.add(full)
                        waiting.append(full)
                    else:
                        made.calls.append((full, call))
    return made


def elements(value: Value) -> tuple[Value, ...]:
    """The elements of a container: modules, or a list of them."""
    if isinstance(value, Sequence):
        return value.items if value.items is not None else (value.element,)
    return value.members
