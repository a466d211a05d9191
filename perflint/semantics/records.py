"""Dataclasses and named tuples of the project: their fields in order."""

from __future__ import annotations

import ast

from perflint.semantics import classes
from perflint.semantics.frame import Frame
from perflint.semantics.values import Instance, Value


def field_names(frame: Frame, name: str) -> list[str]:
    """The names that a constructor's positional arguments have: of `__init__`, or the fields of a dataclass."""
    for cls in classes.lineage(frame, name):
        facts = classes.facts_of(frame, cls)
        module = frame.project.loaded(facts.module) if facts is not None else None
        info = module.klass(facts.qualname) if module is not None and facts is not None else None
        if info is None:
            continue
        init = info.methods.get("__init__")
        if init is not None:
            return [arg.arg for arg in (*init.node.args.posonlyargs, *init.node.args.args)][1:]
        fields = [
            s.target.id for s in info.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        ]
        if fields:
            return fields
    return []


def items(frame: Frame, value: Instance) -> tuple[Value, ...] | None:
    """The items of a named tuple, None for any other object."""
    if value.cls == "collections.namedtuple":
        return tuple([held for _, held in value.arguments or ()])
    if "typing.NamedTuple" not in classes.lineage(frame, value.cls):
        return None
    return tuple([frame.attribute(value, name) for name in field_names(frame, value.cls)])
