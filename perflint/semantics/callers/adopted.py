"""Takes the arguments of a call in another file over into a run."""

from __future__ import annotations

from perflint.frozen import replace
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
    taker = _Taker(view, summary)
    spread = None if arguments.spread is None else taker.taken(arguments.spread)
    assert spread is None or isinstance(spread, Tensor)
    return Arguments(
        tuple(map(taker.taken, arguments.positional)),
        taker.named(arguments.keywords),
        arguments.unpacked,
        taker.taken(arguments.rest),
        spread,
    )


class _Taker:
    """Takes over values of one summary. A class, since nested functions that call each other would keep the view."""

    def __init__(self, view: View, summary: Summary) -> None:
        self._view = view
        self._summary = summary

    def named(self, values: tuple[tuple[str, Value], ...]) -> tuple[tuple[str, Value], ...]:
        """Named values."""
        return tuple([(name, self.taken(value)) for name, value in values])

    def taken(self, value: Value) -> Value:
        """A value; UNKNOWN if it means something else in the run."""
        if isinstance(value, Tensor):
            return value.with_(evidence=min(value.evidence, Evidence.ANNOTATION), leaf="")
        if isinstance(value, Union):
            return union(map(self.taken, value.members))
        if isinstance(value, Sequence):
            items = None if value.items is None else tuple(map(self.taken, value.items))
            return Sequence(value.type, self.taken(value.element), items)
        if isinstance(value, Mapping):
            return Mapping(self.taken(value.element), self.named(value.items))
        if isinstance(value, Class):
            return value if self._has_class(value.name) else UNKNOWN
        if isinstance(value, Instance):
            given = None if value.arguments is None else self.named(value.arguments)
            return replace(value, arguments=given, origin=None) if self._has_class(value.cls) else UNKNOWN
        if isinstance(value, Partial):
            function = self.taken(value.function)
            return Partial(function, tuple(map(self.taken, value.positional)), self.named(value.keywords))
        if isinstance(value, Function):
            return self._function(value)
        if isinstance(value, Name):
            return value if value.receiver is None else UNKNOWN
        return UNKNOWN if isinstance(value, (Super, TypeForm)) else value

    def _function(self, value: Function) -> Value:
        path = self._summary.modules.get(value.module)
        module = None if path is None else self._view.at(path)
        receiver = None if value.receiver is None else self.taken(value.receiver)
        if module is None or module.name != value.module or value.captured or receiver == UNKNOWN:
            return UNKNOWN
        return replace(value, receiver=receiver)

    def _has_class(self, name: str) -> bool:
        """True if a class means the same in the run: it is outside of the project, or the run can read its file."""
        place = self._summary.classes.get(name)
        if place is None:
            return True
        module = self._view.at(place.path)
        info = None if module is None else module.klass(place.qualname)
        return module is not None and info is not None and class_at(self._view, module, info.node).name == name
