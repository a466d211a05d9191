"""The results of one run of the interpreter, without any syntax tree."""

from __future__ import annotations

from perflint.frozen import dataclass, field
from perflint.semantics.lattice import join, union, widen
from perflint.semantics.questions import Questions
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


@dataclass(slots=True)
class ClassFacts:
    """A class of the project and the attributes of its instances.

    The attributes grow as methods are run, and are not forgotten: a method may be run while a module is half run.
    """

    name: str
    """Full name: module and qualified name."""
    module: str
    qualname: str
    attributes: dict[str, Value] = field(default_factory=dict)
    """The values that the methods run so far assign to `self`, joined; without those of constructors."""
    initial: dict[str, Value] = field(default_factory=dict)
    """The values that the constructors run so far assign to `self`, joined."""
    asked: set[str] = field(default_factory=set)
    """The attributes for which the methods that assign them have been run."""
    methods_run: set[str] = field(default_factory=set)
    lacks: set[str] = field(default_factory=set)
    """Names that nothing in the class binds; an object may have been made with them."""

    def note(self, name: str, value: Value, constructs: bool) -> None:
        """Remember the value that a method, or a constructor, assigns to an attribute."""
        held = self.initial if constructs else self.attributes
        held[name] = widen(join(held.get(name, NEVER), value))

    def held(self, name: str) -> Value | None:
        """The value of an attribute while the object is used; None if it is never assigned."""
        initial, later = self.initial.get(name), self.attributes.get(name)
        if initial is None or later is None:
            return initial or later
        return join(_moved(initial, later), later)


def _moved(initial: Value, later: Value) -> Value:
    """The value from a constructor, moved to the device to which another method moves it before use."""
    if not isinstance(later, Tensor) or later.device not in (Device.CALLER, Device.MODEL):
        return initial
    return union(
        member.with_(device=later.device, place=later.place)
        if isinstance(member, Tensor) and member.device is Device.CPU
        else member
        for member in initial.members
    )


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
    constructed_inside: dict[str, list[tuple[tuple[str, Value], ...]]] = field(default_factory=dict)
    """Those of functions, if this is the file that is checked."""
    made_at: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    """The places of all of these calls."""
    closures: dict[tuple[int, int], dict[str, Value]] = field(default_factory=dict)
    """The names that nested functions see, by the position of the function."""

    @property
    def is_running(self) -> bool:
        """True while the top level is being run."""
        return self.names is not None and not self.is_run


@dataclass(slots=True)
class Memory(Questions):
    """The results of one run for the project."""

    classes: dict[str, ClassFacts] = field(default_factory=dict)
    results: dict[CallKey, Value] = field(default_factory=dict)
    """The results of calls, by function and arguments."""
    results_at: dict[tuple[CallKey, int], Value] = field(default_factory=dict)
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
