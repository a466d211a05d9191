"""Dataclasses and named tuples of the project: their fields in order."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.lineage import facts_of, info_of, lineage
from perflint.semantics.lattice import union
from perflint.semantics.structure import keyword
from perflint.semantics.values import Instance, Mapping, Tensor, Value


def field_names(frame: Frame, name: str) -> list[str]:
    """The names that a constructor's positional arguments have: of `__init__`, or the fields of a dataclass."""
    return frame.view.memory.remembered(frame.view.memory.fields, name, partial(_fields, frame, name), [])


def _fields(frame: Frame, name: str) -> list[str]:
    if facts_of(frame, name) is None:
        return []
    declared = (_own_fields(frame, cls) for cls in lineage(frame, name))
    return next((fields for fields in declared if fields is not None), [])


def _own_fields(frame: Frame, cls: str) -> list[str] | None:
    """Those that a class declares itself; None if it leaves them to its bases."""
    info = info_of(frame, cls)
    if info is None:
        return None
    init = info.methods.get("__init__")
    if init is not None:
        return [arg.arg for arg in (*init.node.args.posonlyargs, *init.node.args.args)][1:]
    declared = [s.target for s in info.node.body if isinstance(s, ast.AnnAssign)]
    return [target.id for target in declared if isinstance(target, ast.Name)] or None


def field_given(frame: Frame, made: Instance, call: ast.Call, name: str) -> ast.expr | None:
    """The argument of a constructor's call that a field of the object holds as it is; None for computed ones."""
    fields = field_names(frame, made.cls)
    if name not in fields or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    for cls in lineage(frame, made.cls):
        info = info_of(frame, cls)
        if info is not None and {"__init__", "__new__", "__post_init__", name} & info.methods.keys():
            return None
    position = fields.index(name)
    return call.args[position] if position < len(call.args) else keyword(call, name)


def _replaced(frame: Frame, value: Value, changes: tuple[tuple[str, Value], ...]) -> Value:
    """An object with some of its fields changed: `batch._replace(x=x)`."""
    if not isinstance(value, Instance) or value.arguments is None:
        return value
    return Instance(value.cls, tuple((dict(value.arguments) | dict(changes)).items()))


def _replaced_fields(frame: Frame, arguments: Arguments) -> Value:
    """The same for `dataclasses.replace(batch, x=x)`; with `**moved`, all its tensors are where those are."""
    value, moved = arguments.at(0), arguments.spread
    if not isinstance(value, Instance) or moved is None:
        return _replaced(frame, value, arguments.keywords)
    held = [(name, frame.attribute(value, name)) for name in field_names(frame, value.cls)]
    return Instance(value.cls, tuple([(name, _beside(field, moved)) for name, field in held]))


def _beside(value: Value, moved: Tensor) -> Value:
    """A field after its tensors have been moved to where another is."""
    return union(
        member.with_(device=moved.device, place=moved.place, leaf="") if isinstance(member, Tensor) else member
        for member in value.members
    )


def method(frame: Frame, value: Instance, name: str, changes: tuple[tuple[str, Value], ...]) -> Value | None:
    """The result of a method that every named tuple has; None for other methods."""
    if name == "_replace":
        return _replaced(frame, value, changes)
    held = items(frame, value)
    if name != "_asdict" or held is None:
        return None
    return Mapping(union(held), tuple(zip(field_names(frame, value.cls), held, strict=False)))


FUNCTIONS: dict[str, Callable[[Frame, Arguments], Value]] = {
    "dataclasses.replace": _replaced_fields,
}


def items(frame: Frame, value: Instance) -> tuple[Value, ...] | None:
    """The items of a named tuple, None for any other object."""
    if value.cls == "collections.namedtuple":
        return tuple([held for _, held in value.arguments or ()])
    if "typing.NamedTuple" not in lineage(frame, value.cls):
        return None
    return tuple([frame.attribute(value, name) for name in field_names(frame, value.cls)])
