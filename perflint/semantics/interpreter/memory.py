"""The results of one run of the interpreter, without any syntax tree."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from perflint.frozen import dataclass, field
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.lattice import join, union, widen
from perflint.semantics.questions import Questions
from perflint.semantics.structure import FunctionInfo
from perflint.semantics.values import NEVER, Device, Function, Origin, Tensor, Value


class CallKey:
    """A function, its arguments, and whether a constructor calls it.

    Each call looks it up in several tables, so its hash is computed once.
    """

    __slots__ = ("_hash", "_parts")

    def __init__(
        self,
        function: Function,
        positional: tuple[Value, ...],
        keywords: tuple[tuple[str, Value], ...],
        constructs: bool,
    ) -> None:
        self._parts = (function, positional, keywords, constructs)
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallKey) and self._hash == other._hash and self._parts == other._parts


Attribute = tuple[str, str]
"""An attribute by the full name of its class and its own name."""


@dataclass(slots=True)
class Effects:
    """The attributes that a run of code sets and reads, with their values."""

    stores: dict[tuple[Attribute, bool], Value] = field(default_factory=dict)
    """By attribute, and whether a constructor sets it."""
    reads: dict[Attribute, Value | None] = field(default_factory=dict)
    """The values at the last read; None for attributes that nothing had set."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call, and what the call does to attributes."""

    value: Value
    effects: Effects


@dataclass(slots=True)
class _Values:
    """The values of attributes by the runs that set them, and joined."""

    by_run: dict[str, dict[Hashable, Value]] = field(default_factory=dict)
    joined: dict[str, Value] = field(default_factory=dict)

    def add(self, run: Hashable, name: str, value: Value) -> None:
        values = self.by_run.setdefault(name, {})
        before = values.get(run, NEVER)
        after = values[run] = widen(join(before, value))
        if after != before:
            self.joined[name] = widen(join(self.joined.get(name, NEVER), after))

    def take(self, run: Hashable) -> dict[str, Value]:
        """The values of a run, which is about to be made again; they count until the values are joined."""
        return {name: values.pop(run) for name, values in self.by_run.items() if run in values}

    def forget(self, run: Hashable, name: str) -> None:
        self.by_run[name].pop(run)
        self.join(name)

    def join(self, name: str) -> None:
        """Join the values of the runs again, some of which have other values now."""
        self.joined.pop(name, None)
        for value in self.by_run[name].values():
            self.joined[name] = widen(join(self.joined.get(name, NEVER), value))


@dataclass(slots=True)
class ClassFacts:
    """A class of the project and the attributes of its instances.

    The values come from *runs*: of a top level, of a function by itself, of a method for the sake of an attribute. Each
    run has its own values, so that a second run of the same code replaces those of the first.
    """

    name: str
    """Full name: module and qualified name."""
    module: str
    qualname: str
    moved: set[str]
    """The attributes that methods move to another device."""
    attributes: _Values = field(default_factory=_Values)
    """The values that methods assign to `self`, without those of constructors."""
    initial: _Values = field(default_factory=_Values)
    """The values that constructors assign to `self`."""
    asked: set[str] = field(default_factory=set)
    """The attributes for which the methods that assign them have been run."""
    methods_run: set[str] = field(default_factory=set)
    lacks: set[str] = field(default_factory=set)
    """Names that nothing in the class binds; an object may have been made with them."""

    def note(self, run: Hashable, name: str, value: Value, constructs: bool) -> None:
        """Remember the value that a method, or a constructor, assigns to an attribute in a run."""
        (self.initial if constructs else self.attributes).add(run, name, value)

    def held(self, name: str) -> Value | None:
        """The value of an attribute while the object is used; None if it is never assigned."""
        initial, later = self.initial.joined.get(name), self.attributes.joined.get(name)
        if initial is None or later is None:
            return initial or later
        return join(_moved(initial, later, name in self.moved), later)


def _moved(initial: Value, later: Value, is_moved: bool) -> Value:
    """The value from a constructor, moved to the device to which another method moves it before use."""
    if not isinstance(later, Tensor) or later.device not in (_MOVED_TO if is_moved else _ELSEWHERE):
        return initial
    return union(
        member.with_(device=later.device, place=later.place)
        if isinstance(member, Tensor) and member.device is Device.CPU
        else member
        for member in initial.members
    )


_ELSEWHERE = frozenset({Device.CALLER, Device.MODEL})
_MOVED_TO = _ELSEWHERE | {Device.CUDA}


@dataclass(slots=True)
class ModuleState:
    """The results of one run for a module."""

    names: dict[str, Value] | None = None
    """The definitions of the top level, once it is being run."""
    is_run: bool = False
    """True if the top level has been run to its end."""
    meanings: dict[str, Value] = field(default_factory=dict)
    """The meanings of names of the top level that are final: it is not being run."""
    rebound: dict[str, Value] = field(default_factory=dict)
    """The values that functions bind to names of the top level by `global`."""
    defaults: dict[str, Value | None] = field(default_factory=dict)
    """The default device that programs set for functions that make tensors, and for `torch.Tensor`."""
    starred: dict[str, Value | None] = field(default_factory=dict)
    """Names that were looked up behind `import *`; None for names that are not there."""
    constructed: dict[str, list[tuple[tuple[str, Value], ...]]] = field(default_factory=dict)
    """The arguments of the top level for constructors of classes defined here, by their names in the file."""
    closures: dict[tuple[int, int], dict[str, Value]] = field(default_factory=dict)
    """The names that nested functions see, by the position of the function."""

    @property
    def is_running(self) -> bool:
        """True while the top level is being run."""
        return self.names is not None and not self.is_run


@dataclass(frozen=True, slots=True)
class AttributeRun:
    """A run of a method for the sake of the attributes that it sets."""

    given: Arguments
    effects: Effects


@dataclass(frozen=True, slots=True)
class InheritedRun:
    """A run of an inherited method for the objects of a class, for the sake of the arguments that it passes."""

    passed: dict[tuple[int, int], list[Arguments]]
    """The arguments for functions of the file that is checked, by position."""
    effects: Effects


@dataclass(slots=True)
class Memory(Questions):
    """The results of one run for the project."""

    classes: dict[str, ClassFacts] = field(default_factory=dict)
    runs: list[Hashable] = field(default_factory=lambda: ["nothing"])
    """The runs that are being made; the last one sets attributes."""
    effects: list[Effects] = field(default_factory=lambda: [Effects()])
    """The effects of the calls that are being followed in them, and of the runs themselves."""
    stored_by: dict[Hashable, set[str]] = field(default_factory=dict)
    """The classes whose attributes each run has set."""
    attribute_runs: dict[tuple[str, FunctionInfo], AttributeRun] = field(default_factory=dict)
    """The runs of methods for the sake of attributes, by class and method."""
    inherited_runs: dict[tuple[str, str, FunctionInfo], InheritedRun] = field(default_factory=dict)
    """The runs of inherited methods for the sake of their calls, by the class of the objects, base and method."""
    replaced: dict[tuple[int, str], _Values] = field(default_factory=dict)
    """The attributes for which second runs have other values."""
    results: dict[CallKey, Outcome] = field(default_factory=dict)
    """The results of calls, by function and arguments."""
    results_at: dict[tuple[CallKey, int], Outcome] = field(default_factory=dict)
    """The same for calls that were not followed to their end, by the depth at which they were made."""
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The full names of the direct bases of classes."""
    lineages: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The full names of classes and their bases in method resolution order, including bases outside the project."""
    bodies: dict[str, dict[str, Value]] = field(default_factory=dict)
    """The bindings of class bodies."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    """The names of the positional arguments of constructors, by class."""
    modules: dict[str, bool] = field(default_factory=dict)
    """Which classes are module classes."""
    module_parts: dict[str, bool] = field(default_factory=dict)
    """Which classes are module classes, or bases of one in their file."""
    unmoved: dict[Origin, bool] = field(default_factory=dict)
    """Which constructions make a module that stays on the CPU."""
    movers: dict[str, frozenset[str] | None] = field(default_factory=dict)
    """The attributes that the `to` of a class assigns; None for classes whose `to` makes no object anew."""
    left_behind: dict[str, frozenset[str]] = field(default_factory=dict)
    """The attributes that the `to` of a class leaves on the CPU."""
    derived: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """The classes that derive from a class in its own file, by the name of its module."""
    declared: dict[tuple[str, int, int], Value] = field(default_factory=dict)
    """The annotated results of functions, by module and position."""
    constructors: dict[str, Function | None] = field(default_factory=dict)
    """The constructors of classes that set attributes by names they are given; None for the other classes."""
    wrappers: dict[tuple[str, int, int], Value | None] = field(default_factory=dict)
    """The results of decorators, by module and position of the function; None if a function is kept."""
    resolved: dict[str, Value] = field(default_factory=dict)
    """The values of imported names, by full name."""

    @contextmanager
    def run(self, name: Hashable) -> Iterator[Effects]:
        """Make a run; gives its effects.

        The values of attributes that it sets replace those that it set before, once `forget_replaced` is called.
        """
        facts = [self.classes[cls] for cls in self.stored_by.pop(name, ())]
        taken = [(held, held.take(name)) for each in facts for held in (each.initial, each.attributes)]
        effects = Effects()
        self.runs.append(name)
        self.effects.append(effects)
        try:
            yield effects
        finally:
            self.runs.pop()
            self.effects.pop()
            for held, values in taken:
                for attribute, value in values.items():
                    if held.by_run[attribute].get(name) != value:
                        self.replaced[id(held), attribute] = held

    def forget(self, run: Hashable) -> None:
        """Forget the values of attributes that a run has set."""
        for cls in self.stored_by.pop(run, ()):
            for held in (self.classes[cls].initial, self.classes[cls].attributes):
                for name in held.take(run):
                    held.join(name)

    def forget_replaced(self) -> None:
        """Forget the values of attributes that second runs of code have not set again."""
        for (_, name), held in self.replaced.items():
            held.join(name)
        self.replaced.clear()

    @contextmanager
    def call(self) -> Iterator[Effects]:
        """Follow a call; gives its effects, which are also those of the code around it."""
        effects = Effects()
        self.effects.append(effects)
        try:
            yield effects
        finally:
            self.effects.pop()
            self._add(effects)

    def store(self, facts: ClassFacts, name: str, value: Value, constructs: bool) -> None:
        """Set an attribute of the objects of a class."""
        self._note(facts, name, value, constructs)
        stores, key = self.effects[-1].stores, ((facts.name, name), constructs)
        stores[key] = widen(join(stores.get(key, NEVER), value))

    def _note(self, facts: ClassFacts, name: str, value: Value, constructs: bool) -> None:
        facts.lacks.discard(name)
        facts.note(self.runs[-1], name, value, constructs)
        self.stored_by.setdefault(self.runs[-1], set()).add(facts.name)

    def take_back(self, facts: ClassFacts, name: str, value: Value) -> None:
        """Forget a value that constructors of the run have assigned to an attribute, if it is all that they have."""
        if facts.initial.by_run.get(name, {}).get(self.runs[-1]) == value:
            facts.initial.forget(self.runs[-1], name)
            self.effects[-1].stores.pop(((facts.name, name), True), None)

    def read(self, facts: ClassFacts, name: str) -> Value | None:
        """The value of an attribute of the objects of a class; None if nothing has set it."""
        value = self.effects[-1].reads[facts.name, name] = facts.held(name)
        return value

    def holds(self, effects: Effects) -> bool:
        """True if the attributes that a run has read still have the same values."""
        return all(
            (facts := self.classes.get(cls)) is not None and facts.held(name) == value
            for (cls, name), value in effects.reads.items()
        )

    def rest_on(self, effects: Effects) -> None:
        """Count the attributes that another run has read as read by the code around."""
        self.effects[-1].reads.update(effects.reads)

    def replay(self, effects: Effects) -> None:
        """Set the attributes that a call has set, since the code around it makes the same call."""
        for ((cls, name), constructs), value in effects.stores.items():
            self._note(self.classes[cls], name, value, constructs)
        self._add(effects)

    def _add(self, effects: Effects) -> None:
        """Count the effects of a call as effects of the code around it."""
        self.rest_on(effects)
        around = self.effects[-1]
        for key, value in effects.stores.items():
            around.stores[key] = widen(join(around.stores.get(key, NEVER), value))

    def settle(self, effects: Effects) -> None:
        """Take the values of now for the attributes that a call both reads and sets: its next run finds these."""
        for attribute, _ in effects.stores:
            if attribute in effects.reads:
                effects.reads[attribute] = self.classes[attribute[0]].held(attribute[1])
