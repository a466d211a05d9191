"""Takes the arguments of a call in another file over into a run."""

from __future__ import annotations

from perflint.semantics.callers.summary import Summary
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter.resolve import class_at
from perflint.semantics.lattice import union
from perflint.semantics.values import (
    UNKNOWN,
    Class,
    Evidence,
    Function,
    Instance,
    Mapping,
    Name,
    Partial,
    Sequence,
    Super,
    Tensor,
    TypeForm,
    Union,
    Value,
)
from perflint.semantics.view import View


def adopted(view: View, summary: Summary, arguments: Arguments) -> Arguments:
    """Arguments of a call in the file of a summary, as values of a run.

    Their tensors are tensors as surely as an annotation says so: other callers may pass something else.
    """

    def named(values: tuple[tuple[str, Value], ...]) -> tuple[tuple[str, Value], ...]:
        return tuple([(name, taken(value)) for name, value in values])

    def taken(value: Value) -> Value:
        if isinstance(value, Tensor):
            return value.with_(evidence=min(value.evidence, Evidence.ANNOTATION), leaf="")
        if isinstance(value, Union):
            return union(map(taken, value.members))
        if isinstance(value, Sequence):
            items = None if value.items is None else tuple(map(taken, value.items))
            return Sequence(value.type, taken(value.element), items)
        if isinstance(value, Mapping):
            return Mapping(taken(value.element), named(value.items))
        if isinstance(value, Class):
            return value if _has_class(view, summary, value.name) else UNKNOWN
        if isinstance(value, Instance):
            given = None if value.arguments is None else named(value.arguments)
            return Instance(value.cls, given) if _has_class(view, summary, value.cls) else UNKNOWN
        if isinstance(value, Partial):
            function = taken(value.function)
            return Partial(function, tuple(map(taken, value.positional)), named(value.keywords))
        if isinstance(value, Function):
            path = summary.modules.get(value.module)
            module = None if path is None else view.at(path)
            is_same = module is not None and module.name == value.module and not value.captured
            receiver = None if value.receiver is None else taken(value.receiver)
            return UNKNOWN if not is_same or receiver == UNKNOWN else Function(
                value.module, value.qualname, value.line, value.column, value.owner, receiver, (), value.plain
            )  # fmt: skip
        if isinstance(value, Name):
            return value if value.receiver is None else UNKNOWN
        return UNKNOWN if isinstance(value, (Super, TypeForm)) else value

    spread = None if arguments.spread is None else taken(arguments.spread)
    assert spread is None or isinstance(spread, Tensor)
    return Arguments(
        tuple(map(taken, arguments.positional)),
        named(arguments.keywords),
        arguments.unpacked,
        taken(arguments.rest),
        spread,
    )


def _has_class(view: View, summary: Summary, name: str) -> bool:
    """True if a class means the same in a run: it is outside of the project, or the run can read its file."""
    place = summary.classes.get(name)
    if place is None:
        return True
    module = view.at(place.path)
    info = None if module is None else module.klass(place.qualname)
    return module is not None and info is not None and class_at(view, module, info.node).name == name
