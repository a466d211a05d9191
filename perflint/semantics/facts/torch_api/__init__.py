"""torch's own facts, read from the generated TOML files beside this module.

Names are full names: "torch.Tensor.max", "torch.nn.functional.relu", "torch.nn.Conv2d".
Nothing here imports torch. Each file is read when first asked for, once per process.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from perflint.frozen import dataclass, replace
from perflint.semantics.facts import tables

HasArgument = Callable[[str, int | None], bool]
IsTensor = Callable[[int], bool]
Literal = Callable[[str, int | None], object]


class Condition(NamedTuple):
    """An argument that is given: by keyword `name`, or at `position` where it may be given by position.

    no_tensor: it does not hold when the positional argument is a tensor.
    value: it holds for this value only, where the value is known.
    """

    name: str
    position: int | None = None
    no_tensor: bool = False
    value: str = ""

    def holds(self, has_argument: HasArgument, is_tensor: IsTensor, literal: Literal) -> bool:
        """True if a call fulfils it, or may."""
        if not has_argument(self.name, self.position):
            return False
        if self.no_tensor and self.position is not None and is_tensor(self.position):
            return False
        return not self.value or literal(self.name, self.position) in (None, self.value)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a callable or attribute.

    kind: "tensor", "tensors:2" (that many), "tensors" (list or tuple of unknown length),
        "int", "float", "bool", "scalar", "size", "dtype", "device", "str", "list", "none",
        "self" (the receiver or first argument), "array" (numpy) or "any".
    dtype: "bool", "int", "float", "same" (as the first tensor), "arith" (the same, but bool
        becomes int), "promote" (of all tensors), "scalars" (of the numbers: float if one
        of them is a float) or "unknown"; for several tensors one for
        each, comma-separated ("same,int").
    rank: number of dimensions without optional arguments, None when it depends.
    shape: "same" (the first tensor's rank), "broadcast" (the greatest rank of the tensors),
        "+1", "-2" (the first tensor's rank and that many), or "" when `rank` or nothing tells.
    dims: "reduce" (the dimensions in `dim` go, unless `keepdim`), "sizes" (as many as the sizes
        that are passed one by one or as a sequence), "size" (as many as the first argument has), "numbers" (as many
        as the numbers that are passed one by one, 1 without any), or "".
    device: "cpu-factory" (the CPU unless `device` is given), "like" (of the first tensor,
        unless `device` is given), "follow" (of its operands), "host", "device" (the current
        one), "argument" (what its arguments say) or "unknown".
    """

    kind: str
    dtype: str = "unknown"
    rank: int | None = None
    shape: str = ""
    dims: str = ""
    device: str = "follow"
    variants: tuple[tuple[tuple[Condition, ...], Result], ...] = ()

    @property
    def count(self) -> int | None:
        """The number of tensors of a kind "tensors:n"."""
        head, _, number = self.kind.partition(":")
        return int(number) if head == "tensors" and number else None

    def variant(
        self,
        has_argument: HasArgument,
        is_tensor: IsTensor = lambda position: False,
        literal: Literal = lambda name, position: None,
    ) -> Result:
        """The result for a call.

        `has_argument(name, position)` says whether the call has this argument, by keyword or
        (if `position` is not None; receivers do not count) by position, and with a value
        other than a literal None or False. `is_tensor(position)` says whether the positional
        argument is a tensor: `x.max(y)` against `x.max(1)`. `literal(name, position)` gives the
        value of an argument that is a literal, None when it cannot tell.
        """
        for conditions, result in self.variants:
            if all(condition.holds(has_argument, is_tensor, literal) for condition in conditions):
                return result
        return self


class Number(NamedTuple):
    """An argument for which a number is expected, and a tensor is read.

    several: all positional arguments from its position on belong to it, as in `x.view(n, -1)`.
    """

    name: str
    position: int | None
    several: bool


@cache
def numbers() -> Mapping[str, tuple[Number, ...]]:
    """The functions and methods that read a tensor that is passed for a number, with these arguments."""
    found: dict[str, tuple[Number, ...]] = {}
    for namespace, facts in _file("numbers")["numbers"].items():
        for fact, names in facts.items():
            arguments = tuple(_number(word) for word in fact.split())
            found.update((f"{namespace}.{name}", arguments) for name in names.split())
    return found


def _number(word: str) -> Number:
    name, _, place = word.partition("@")
    return Number(name, int(place.rstrip("+")) if place else None, place.endswith("+"))


class ModuleFacts(NamedTuple):
    """A torch.nn.Module class.

    result: "tensor", "tensor,tensor|none", "tensor,(tensor,tensor)", "tensor,tensor",
        "output,loss" or "any".
    loss: it is a loss: of rank 0 unless `reduction` is "none".
    stateless: it holds no parameters, buffers or modules.
    bases: the public module classes that it inherits from, nearest first.
    """

    name: str
    result: str
    loss: bool
    stateless: bool
    bases: tuple[str, ...]


@cache
def result(name: str) -> Result | None:
    """The result of a torch callable or attribute, or None if unknown."""
    namespace, _, leaf = canonical(name).rpartition(".")
    kind = _leaves("kind", namespace).get(leaf)
    if kind is None:
        return None
    base = Result(kind, device="unknown")
    if kind == "self":
        base = _with_rank(Result(kind, dtype="same", device="like"), _leaves("rank", namespace).get(leaf, "same"))
    elif kind.startswith("tensor"):
        dtype, device = _leaves("dtype", namespace).get(leaf), _leaves("device", namespace).get(leaf)
        base = _with_rank(
            Result(kind, dtype or "unknown", device=device or "follow"), _leaves("rank", namespace).get(leaf, "")
        )
    rules = _leaves("variants", namespace).get(leaf)
    return replace(base, variants=tuple(_rules(base, rules))) if rules else base


class Operands(NamedTuple):
    """The arguments that a function computes with, where they are tensors; receivers do not count."""

    positions: frozenset[int]
    names: frozenset[str]


@cache
def operands(name: str) -> Operands | None:
    """The operands of a function that gives tensors; None if any argument may be one."""
    namespace, _, leaf = canonical(name).rpartition(".")
    others = _leaves("operands", namespace)
    if not others:
        return None
    fact = others.get(leaf, "" if namespace == "torch.Tensor" else "input@0")
    if fact == "?":
        return None
    parts = [word.partition("@") for word in fact.split()]
    return Operands(
        frozenset(int(position) for _, _, position in parts if position), frozenset(name for name, _, _ in parts)
    )


@cache
def canonical(name: str) -> str:
    """The public name of a torch object: "torch.nn.modules.conv.Conv2d" is "torch.nn.Conv2d".

    Works for members too: "torch.nn.modules.module.Module.to" is "torch.nn.Module.to".
    """
    if not name.startswith("torch."):
        return name
    aliases = _pairs("aliases")
    head, tail = name, ""
    while head not in aliases and head.count(".") > 1:
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    if head in aliases:
        return aliases[head] + tail
    for prefix, public in _PREFIXES:
        if name.startswith(prefix):
            return public + name[len(prefix) :]
    return name


# Names that modules re-export: `from torch.nn.modules import Conv2d`.
_PREFIXES = (
    ("torch.torch.", "torch."),
    ("torch.functional.F.", "torch.nn.functional."),
    ("torch.functional.", "torch."),
    ("torch._C._VariableFunctions.", "torch."),
    ("torch.nn.modules.", "torch.nn."),
    ("torch.nn.utils.clip_grad.", "torch.nn.utils."),
    ("torch.distributed.distributed_c10d.", "torch.distributed."),
)


def parameters(name: str) -> tuple[str, ...] | None:
    """A callable's parameters in order, without `self`; "*args" and "**kwargs" with their stars."""
    found = _signature(canonical(name))
    return None if found is None else tuple(found)


def defaults(name: str) -> Mapping[str, object]:
    """The defaults of a callable's parameters; `...` stands for each one that is not a literal."""
    found = _signature(canonical(name)) or {}
    return {key: value for key, value in found.items() if value is not _REQUIRED}


def module(name: str) -> ModuleFacts | None:
    """The facts about a torch.nn class."""
    name = canonical(name)
    if name not in _classes("modules"):
        return None
    data = _file("modules")
    kind = next((kind for kind, names in data["results"].items() if name in names.split()), "tensor")
    loss, stateless = name in data["losses"].split(), name in data["stateless"].split()
    return ModuleFacts(name, kind, loss, stateless, tuple(_pairs("bases").get(name, "").split()))


def is_module(name: str) -> bool:
    """True if it is one of torch's module classes."""
    return canonical(name) in _classes("modules")


def is_optimizer(name: str) -> bool:
    """True if it is one of torch's optimizer classes."""
    return canonical(name) in _classes("optimizers")


@cache
def tensor_methods() -> frozenset[str]:
    """The names of the methods and attributes of torch.Tensor."""
    return frozenset(_leaves("kind", "torch.Tensor"))


@cache
def with_integers() -> frozenset[str]:
    """The functions and methods of tensors, by name, that give a tensor of integers or booleans for any arguments."""
    names = ((namespace, name) for namespace in ("torch", "torch.Tensor") for name in _leaves("dtype", namespace))
    return frozenset(name for namespace, name in names if _has_integers(result(f"{namespace}.{name}")))


def _has_integers(result: Result | None) -> bool:
    variants = () if result is None else result.variants
    return all(each is not None and each.dtype in ("bool", "int") for each in (result, *(each for _, each in variants)))


@cache
def tensor_only_methods() -> frozenset[str]:
    """The attributes that practically only tensors have: an object with one of them is a tensor."""
    return frozenset(_file("functions")["methods"]["tensor_only"].split())


@cache
def tensor_only_calls() -> frozenset[str]:
    """The names that practically only tensors have as methods: `x.dim()`, where `x.dim` may be a field."""
    return tensor_only_methods() | frozenset(_file("functions")["methods"]["tensor_only_calls"].split())


def table(name: str) -> Mapping[str, Any]:
    """The contents of a file of facts, for facts that have only one reader."""
    return _file(name)


@cache
def _file(name: str) -> dict[str, Any]:
    return tables.table(Path(__file__).with_name(f"{name}.toml"))


@cache
def _leaves(table: str, namespace: str) -> dict[str, str]:
    """Fact by name, of one namespace of functions.toml."""
    groups = _file("functions").get(table, {}).get(namespace, {})
    return {name: fact for fact, names in groups.items() for name in names.split()}


@cache
def _classes(group: str) -> frozenset[str]:
    return frozenset(_file("modules")[group].split())


@cache
def _pairs(key: str) -> dict[str, str]:
    """Lines of modules.toml: a name and the rest."""
    lines = _file("modules")[key].strip().splitlines()
    return {name: rest for name, _, rest in (line.partition(" ") for line in lines)}


def _with_rank(base: Result, fact: str) -> Result:
    if fact.isdecimal():
        return replace(base, rank=int(fact), shape="", dims="")
    if fact in ("reduce", "sizes", "size", "numbers"):
        return replace(base, rank=None, shape="", dims=fact)
    return replace(base, rank=None, shape="" if fact == "?" else fact, dims="")


def _rules(base: Result, text: str) -> Iterator[tuple[tuple[Condition, ...], Result]]:
    """Read "dim@1~ => kind=tensors:2 rank=?; …"."""
    for rule in text.split(";"):
        conditions, _, changes = rule.partition("=>")
        yield tuple(map(_condition, conditions.strip().split("+"))), _changed(base, changes)


def _condition(text: str) -> Condition:
    text, _, value = text.partition("=")
    name, _, position = text.partition("@")
    return Condition(name, int(position.rstrip("~")) if position else None, position.endswith("~"), value)


def _changed(base: Result, changes: str) -> Result:
    facts = dict(change.split("=") for change in changes.split())
    rank = facts.pop("rank", None)
    base = replace(base, **facts)  # type: ignore[arg-type]
    return base if rank is None else _with_rank(base, rank)


_REQUIRED = object()


@cache
def _signatures() -> dict[str, str]:
    lines = _file("signatures")["callables"].strip().splitlines()
    return {name: text for name, _, text in (line.partition(" ") for line in lines)}


@cache
def _signature(name: str) -> dict[str, object] | None:
    text = _signatures().get(name)
    if text is None:
        return None
    found: dict[str, object] = {}
    for word in text.split():
        parameter, equals, default = word.partition("=")
        found[parameter] = _default(default) if equals else _REQUIRED
    return found


def _default(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except ValueError:
        return ...
