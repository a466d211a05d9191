"""Values in words, for people who ask for the values that perflint infers.

`describe` gives a phrase without an article: "float tensor of rank 2, on the device (certain)",
"list of CPU tensors", "object of torch.nn.Conv2d made at line 12".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from perflint.semantics.values import (
    PROMISE,
    Array,
    Class,
    Const,
    Device,
    DeviceValue,
    Dtype,
    Evidence,
    Function,
    Instance,
    Kind,
    Mapping,
    Name,
    Never,
    Origin,
    Partial,
    Scalar,
    Sequence,
    Super,
    Tensor,
    TypeForm,
    Union,
    Unknown,
    Value,
)

EVIDENCE = {
    Evidence.USE: "by use",
    Evidence.CONVENTION: "by convention",
    Evidence.ANNOTATION: "likely",
    Evidence.CERTAIN: "certain",
}
"""Why a value is held to be a tensor, in a word or two."""

_WHERE = {
    Device.CPU: "on the CPU",
    Device.CUDA: "on the device",
    Device.MODEL: "on the module's device",
    Device.CALLER: "where the caller put it",
    Device.UNKNOWN: "on an unknown device",
    Device.META: "on a device that is not CUDA's",
}
_BEFORE = {Device.CPU: "CPU ", Device.CUDA: "device ", Device.META: "non-CUDA "}
_AFTER = {Device.MODEL: " on the module's device", Device.CALLER: " where the caller put them"}
_DEVICES = {
    Device.CPU: "the CPU",
    Device.CUDA: "the device",
    Device.MODEL: "the module's device",
    Device.CALLER: "of the caller's choice",
    Device.UNKNOWN: "which one is unknown",
    Device.META: "none of CUDA's",
}
_MOST_ITEMS = 4
_LONGEST_LITERAL = 40
_LONGEST_NUMBER = 1024
"""Bits."""


def describe(value: Value, module: str = "") -> str:
    """A value in words. Names of the module `module` are given without it."""
    return _Words(module).whole(value)


def place_words(place: str) -> str:
    """The place of a tensor or device, "name:line" (see `values.Tensor`), in words."""
    name, _, line = place.rpartition(":")
    return f"`{name}` of line {line}" if line.isdigit() and name else f"`{place}`"


class _Words:
    """Words as one module would use them. `whole` is for a value by itself, `inner` within another."""

    def __init__(self, module: str) -> None:
        self._module = module

    def whole(self, value: Value) -> str:
        """All that is known."""
        if isinstance(value, Tensor):
            return _tensor(value)
        if isinstance(value, Union):
            return self._either(value, self.whole)
        form = _FORMS.get(type(value))
        return "unknown" if form is None else form(self, value)

    def inner(self, value: Value) -> str:
        """The same, shorter: as an element of something."""
        if isinstance(value, Tensor):
            return _noun(value) + _AFTER.get(value.device, "").replace("them", "it")
        if isinstance(value, Union):
            return self._either(value, self.inner)
        if isinstance(value, Const):
            return _literal(value)
        if isinstance(value, Instance):
            return self.name(value.cls)
        if isinstance(value, Scalar):
            return value.type
        return self.whole(value)

    def several(self, value: Value) -> str:
        """Many values of a kind: "CPU tensors", "ints"."""
        if isinstance(value, Tensor):
            return f"{_noun(value)}s{_AFTER.get(value.device, '')}"
        if isinstance(value, Union):
            return self._either(value, self.several)
        if isinstance(value, Scalar):
            return f"{value.type}s"
        if isinstance(value, Const) and value.value is not None:
            return f"{type(value.value).__name__}s"
        if isinstance(value, Instance):
            return f"{self.name(value.cls)} objects"
        if isinstance(value, Array):
            return "arrays"
        if isinstance(value, (Sequence, Mapping)):
            head, _, rest = self.whole(value).partition(" ")
            return f"{head}s {rest}".rstrip()
        return self.inner(value)

    def name(self, full: str) -> str:
        """A full name, without the module that asks."""
        return full.removeprefix(f"{self._module}.") if self._module else full

    def _either(self, value: Union, form: Callable[[Value], str]) -> str:
        members = sorted(value.members, key=lambda member: (isinstance(member, Unknown), member == Const(None)))
        words = list(dict.fromkeys("something unknown" if isinstance(m, Unknown) else form(m) for m in members))
        comma = "," if any("," in word for word in words[:-1]) else ""
        return f"{', '.join(words[:-1])}{comma} or {words[-1]}" if len(words) > 1 else words[0]

    # One kind of value each

    def sequence(self, value: Sequence) -> str:
        if value.type == "batch":
            tensor = value.element.tensor
            evidence = "" if tensor is None else f" ({EVIDENCE[tensor.evidence]})"
            pinned = ", pinned" if tensor is not None and tensor.pinned else ""
            return f"batch: {self.inner(value.element)}{pinned}, or a tuple, dict or object of such{evidence}"
        kind = {"size": "torch.Size"}.get(value.type, value.type)
        if value.items is not None:
            return self._items(kind, value.items)
        if isinstance(value.element, Unknown):
            return f"{kind} of unknown elements"
        return f"empty {kind}" if isinstance(value.element, Never) else f"{kind} of {self.several(value.element)}"

    def _items(self, kind: str, items: tuple[Value, ...]) -> str:
        if not items:
            return f"empty {kind}"
        plural = {self.several(item) for item in items}
        literal = any(isinstance(item, Const) for item in items)
        if len(items) > 1 and len(plural) == 1 and not literal and not isinstance(items[0], Unknown):
            return f"{kind} of {len(items)} {plural.pop()}"
        return f"{kind} ({_listed(map(self.inner, items))})"

    def mapping(self, value: Mapping) -> str:
        if value.items:
            return f"dict ({_listed(f'{key!r}: {self.inner(item)}' for key, item in value.items)})"
        if isinstance(value.element, Unknown):
            return "dict of unknown values"
        return "empty dict" if isinstance(value.element, Never) else f"dict of {self.several(value.element)}"

    def instance(self, value: Instance) -> str:
        if value.cls == "torch.nn.Module":
            return f"some torch.nn.Module{self._made(value.origin)}"
        known = [
            f"{'' if name.isdigit() else f'{name}='}{_literal(item)}"
            for name, item in value.arguments or ()
            if isinstance(item, Const)
        ]
        given = f" with {_listed(known)}" if known and not value.cls.endswith("Optimizer") else ""
        return f"object of {self.name(value.cls)}{self._made(value.origin)}{given}"

    def _made(self, origin: Origin | None) -> str:
        if origin is None:
            return ""
        elsewhere = "" if origin.module == self._module else f" of {origin.module}"
        return f" made at line {origin.line}{elsewhere}"

    def function(self, value: Function) -> str:
        elsewhere = "" if value.module == self._module else f" of {value.module}"
        if value.qualname.rpartition(".")[2] == "<lambda>":
            return f"lambda at line {value.line}{elsewhere}"
        kind = "method" if value.owner else "function"
        return f"{kind} {value.qualname} at line {value.line}{elsewhere}"

    def outside(self, value: Name) -> str:
        name = value.name.removeprefix("builtins.")
        if value.receiver is not None:
            return f"method {name}"
        if name.rpartition(".")[2][:1].isupper():
            return f"class {name}"
        return f"builtin {name}" if name != value.name else name

    def partial(self, value: Partial) -> str:
        if value.function == PROMISE:
            return f"a function that returns: {self.inner(value.positional[0])}"
        return f"functools.partial of {self.inner(value.function)}"


def _tensor(value: Tensor) -> str:
    kind = "" if value.kind is Kind.UNKNOWN else f"{value.kind.value} "
    rank = "" if value.rank is None else f" of rank {value.rank}"
    where = _WHERE[value.device]
    if value.place and value.device in (Device.UNKNOWN, Device.CALLER):
        where = f"on {place_words(value.place)}"
    pinned = ", pinned" if value.pinned else ""
    return f"{kind}{value.leaf or 'tensor'}{rank}, {where}{pinned} ({EVIDENCE[value.evidence]})"


def _noun(value: Tensor) -> str:
    kind = "" if value.kind is Kind.UNKNOWN else f"{value.kind.value} "
    return f"{_BEFORE.get(value.device, '')}{kind}{value.leaf or 'tensor'}"


def _literal(value: Const) -> str:
    if value.value is ...:
        return "..."
    # Python refuses to write out very long whole numbers, except as powers of two.
    is_long = isinstance(value.value, int) and value.value.bit_length() > _LONGEST_NUMBER
    text = hex(value.value) if is_long else repr(value.value)  # type: ignore[arg-type]
    return text if len(text) <= _LONGEST_LITERAL else f"{text[: _LONGEST_LITERAL - 4]}...{text[-1]}"


def _constant(words: _Words, value: Const) -> str:
    if value.value is None or value.value is ... or isinstance(value.value, bool):
        return _literal(value)
    return f"{type(value.value).__name__} {_literal(value)}"


def _scalar(words: _Words, value: Scalar) -> str:
    return value.type if value.default is None else f"{value.type}, {_literal(value.default)} by default"


def _device(words: _Words, value: DeviceValue) -> str:
    if value.place and value.device in (Device.UNKNOWN, Device.CALLER):
        return f"torch.device ({place_words(value.place)})"
    return f"torch.device ({_DEVICES[value.device]})"


def _dtype(words: _Words, value: Dtype) -> str:
    return f"dtype torch.{value.name}" if value.name else "some dtype"


def _array(words: _Words, value: Array) -> str:
    kind = "" if value.kind is Kind.UNKNOWN else f"{value.kind.value} "
    rank = "" if value.rank is None else f" of rank {value.rank}"
    return f"{kind}array{rank} on the CPU (NumPy or similar)"


def _listed(words: Iterable[str]) -> str:
    found = list(words)
    return ", ".join(found) if len(found) <= _MOST_ITEMS else f"{', '.join(found[: _MOST_ITEMS - 1])}, ..."


_FORMS: dict[type[Value], Callable[[_Words, Any], str]] = {
    Never: lambda words, value: "no value at all",
    Const: _constant,
    Scalar: _scalar,
    DeviceValue: _device,
    Dtype: _dtype,
    Sequence: _Words.sequence,
    Mapping: _Words.mapping,
    Array: _array,
    Instance: _Words.instance,
    Class: lambda words, value: f"class {words.name(value.name)}",
    Function: _Words.function,
    Name: _Words.outside,
    Super: lambda words, value: f"super() of {words.name(value.owner)}",
    Partial: _Words.partial,
    TypeForm: lambda words, value: f"a type: {words.inner(value.promised)}",
}
