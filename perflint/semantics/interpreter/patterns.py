"""The patterns of `match` statements: the names that they bind, and the values of subjects that match."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from perflint.semantics.interpreter import records
from perflint.semantics.interpreter.annotations import annotated
from perflint.semantics.interpreter.frame import Frame, Names
from perflint.semantics.interpreter.narrowing import of_types
from perflint.semantics.lattice import union, without
from perflint.semantics.values import NONE, UNKNOWN, Const, Instance, Mapping, Sequence, Union, Value, scalar_type


def matched(frame: Frame, pattern: ast.pattern, subject: Value, names: Names) -> Value:
    """The subject if it matches; the names that the pattern binds are put into `names`."""
    handler = _PATTERNS.get(type(pattern))
    return subject if handler is None else handler(frame, pattern, subject, names)


def _value(frame: Frame, pattern: ast.MatchValue, subject: Value, names: Names) -> Value:
    value = frame.evaluate(pattern.value)
    return value if isinstance(value, Const) and subject.tensor is not None else subject


def _singleton(frame: Frame, pattern: ast.MatchSingleton, subject: Value, names: Names) -> Value:
    return Const(pattern.value)


def _as(frame: Frame, pattern: ast.MatchAs, subject: Value, names: Names) -> Value:
    if pattern.pattern is not None:
        subject = matched(frame, pattern.pattern, subject, names)
    if pattern.name is not None:
        names[pattern.name] = subject
    return subject


def _or(frame: Frame, pattern: ast.MatchOr, subject: Value, names: Names) -> Value:
    return union([matched(frame, inner, subject, names) for inner in pattern.patterns])


def _class(frame: Frame, pattern: ast.MatchClass, subject: Value, names: Names) -> Value:
    wanted = annotated(frame, pattern.cls)
    known = of_types(frame, subject, [wanted], True)
    if isinstance(known, Union) and isinstance(wanted, Instance):
        same = [member for member in known.members if isinstance(member, Instance) and member.cls == wanted.cls]
        known = same[0] if same else known
    fields = records.field_names(frame, wanted.cls) if isinstance(wanted, Instance) else []
    for position, inner in enumerate(pattern.patterns):
        # `str(s)` binds the text itself.
        held = known if scalar_type(known) else UNKNOWN
        if position < len(fields):
            held = frame.attribute(known, fields[position])
        matched(frame, inner, held, names)
    for name, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
        matched(frame, inner, frame.attribute(known, name), names)
    return known


def _mapping(frame: Frame, pattern: ast.MatchMapping, subject: Value, names: Names) -> Value:
    held = [member for member in subject.members if isinstance(member, Mapping)]
    whole = union(held) if held else Mapping()
    for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
        matched(frame, inner, frame.item(whole, frame.evaluate(key)), names)
    if pattern.rest is not None:
        names[pattern.rest] = whole
    return whole


def _sequence(frame: Frame, pattern: ast.MatchSequence, subject: Value, names: Names) -> Value:
    inner = pattern.patterns
    fitting = [member for member in subject.members if isinstance(member, Sequence) and _fits(member, inner)]
    whole = union(fitting) if fitting else Sequence("list")
    items = whole.items if isinstance(whole, Sequence) else None
    element = frame.iterate(whole)
    starred = next((index for index, part in enumerate(inner) if isinstance(part, ast.MatchStar)), len(inner))
    for index, part in enumerate(inner):
        if isinstance(part, ast.MatchStar):
            middle = None if items is None else items[index : len(items) - (len(inner) - index - 1)]
            if part.name is not None:
                names[part.name] = Sequence("list", element if middle is None else union(middle), middle)
        else:
            position = index if index < starred else index - len(inner)
            matched(frame, part, element if items is None else items[position], names)
    return whole


def _fits(value: Sequence, patterns: list[ast.pattern]) -> bool:
    if value.items is None:
        return True
    fixed = [part for part in patterns if not isinstance(part, ast.MatchStar)]
    return len(value.items) == len(fixed) or (len(fixed) < len(patterns) and len(value.items) > len(fixed))


def unmatched(pattern: ast.pattern, subject: Value) -> Value:
    """The subject in the cases after one that it does not match."""
    if isinstance(pattern, ast.MatchSingleton) and pattern.value is None:
        return without(subject, NONE) if len(subject.members) > 1 else subject
    return subject


_PATTERNS: dict[type[ast.pattern], Callable[[Frame, Any, Value, Names], Value]] = {
    ast.MatchValue: _value,
    ast.MatchSingleton: _singleton,
    ast.MatchAs: _as,
    ast.MatchOr: _or,
    ast.MatchClass: _class,
    ast.MatchMapping: _mapping,
    ast.MatchSequence: _sequence,
}
