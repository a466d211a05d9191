"""The state of the interpreter in one function, class body or module."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from perflint.frozen import dataclass, field
from perflint.semantics.lattice import join
from perflint.semantics.structure import FunctionNode, walk
from perflint.semantics.values import Function, Origin, Value

if TYPE_CHECKING:
    from perflint.semantics.facts.arguments import Arguments
    from perflint.semantics.interpreter.memory import CallKey
    from perflint.semantics.module import Module
    from perflint.semantics.structure import FunctionInfo
    from perflint.semantics.view import View

DEFAULT_DEVICE = "torch.get_default_device()"
"""The path of the device that `with torch.device(...)` and `torch.set_default_device` set."""

_MOST_CALLS = 256
"""Calls of one function whose arguments are looked at."""

Names = dict[str, Value]
"""The values of plain names and attribute paths such as "self.mask"."""

Position = tuple[int, int]
"""The line and column of a function in its file."""
TOP: Position = (0, 0)
"""The top level of a file."""

Applied = tuple[str, Value]
"""The full name of a callee, and the result of the call."""


@dataclass(slots=True)
class Recorder:
    """Keeps the values and calls of the file that is checked."""

    module: str
    """The name of that file's module."""
    values: dict[ast.expr, Value] = field(default_factory=dict)
    targets: dict[ast.Call, str] = field(default_factory=dict)
    shown: dict[ast.expr, dict[str, Value]] = field(default_factory=dict)
    """The attributes of arguments that a format shows, by name."""
    arguments: dict[Position, dict[Position, list[Arguments]]] = field(default_factory=dict)
    """The arguments that calls pass to the functions of this file, by the positions of callee and caller."""
    caller: Position = TOP
    """The function that is being run, and whose calls are kept."""
    passed: dict[ast.Call, tuple[Value, Arguments]] = field(default_factory=dict)
    """The callees and arguments of the calls of this file, if it `keeps_calls`."""
    keeps_calls: bool = False
    constructing: set[tuple[int, int]] = field(default_factory=set)
    """The functions that make modules, by position."""
    any_caller: bool = False
    """True if functions that other files can call take nothing from the calls in this file."""
    informed: set[tuple[int, int]] = field(default_factory=set)
    """The functions that may take something from the calls in this file, by position."""
    steps: int = 0
    """Nodes that were run, those of called functions too."""
    unfinished: int = 0
    """Functions and top levels that ended early because they are nested deeper than the stack."""
    _called_by: dict[Position, set[Position]] = field(default_factory=dict)

    def begin(self, caller: Position) -> None:
        """Run a function, whose calls of an earlier run are forgotten."""
        self.caller = caller
        for callee in self._called_by.pop(caller, ()):
            del self.arguments[callee][caller]

    def forget(self, function: FunctionNode) -> None:
        """Forget the values and targets of a body, which is about to be run again."""
        body = function.body if isinstance(function.body, list) else [function.body]
        for node in (node for part in body for node in walk(part)):
            self.values.pop(node, None)  # type: ignore[call-overload]
            self.targets.pop(node, None)  # type: ignore[call-overload]
            self.shown.pop(node, None)  # type: ignore[call-overload]

    def keep_no_calls(self) -> None:
        """Forget the callees of calls, and keep no more of them."""
        self.keeps_calls = False
        self.passed.clear()

    def note(self, line: int, column: int, arguments: Arguments) -> None:
        """Keep the arguments of a call of the function at a position."""
        seen = self.arguments.setdefault((line, column), {})
        if sum(map(len, seen.values())) < _MOST_CALLS:
            seen.setdefault(self.caller, []).append(arguments)
            self._called_by.setdefault(self.caller, set()).add((line, column))

    def passed_to(self, callee: Position) -> list[Arguments]:
        """The arguments that calls pass to the function at a position, in the order of the callers."""
        return [given for _, every in sorted(self.arguments.get(callee, {}).items()) for given in every]


class Budget:
    """How much work the calls of one file may still take; keeps a run linear in the file's size."""

    __slots__ = ("contexts", "left", "steps", "too_deep")

    def __init__(self, limit: int) -> None:
        self.left = limit
        self.steps = 0
        self.too_deep = 0
        """Calls that were not followed because of their depth."""
        self.contexts: dict[Function, set[CallKey]] = {}
        """The arguments with which this file, and the code that it calls, call each function."""

    def allows(self, steps: int) -> bool:
        """True if enough is left for some work."""
        return self.left >= steps


class Frame:
    """One activation. `names` is None after a statement that never completes."""

    __slots__ = (
        "bound",
        "bound_at",
        "breaks",
        "budget",
        "constructs",
        "continues",
        "depth",
        "filled",
        "function",
        "loops",
        "module",
        "names",
        "narrowed",
        "outer",
        "owner",
        "ran",
        "receiver",
        "recorder",
        "returns",
        "rooted",
        "view",
        "yields",
    )

    def __init__(
        self,
        view: View,
        module: Module,
        budget: Budget,
        *,
        names: Names,
        outer: tuple[Names, ...] = (),
        function: FunctionInfo | None = None,
        owner: str = "",
        receiver: Value | None = None,
        recorder: Recorder | None = None,
        depth: int = 0,
    ) -> None:
        self.view = view
        self.module = module
        self.budget = budget
        self.names: Names | None = names
        self.outer = outer
        self.function = function
        self.owner = owner
        """Full name of the class whose method runs."""
        self.receiver = receiver
        """The value of `self` (or `cls`)."""
        self.recorder = recorder
        self.depth = depth
        """Calls between the code that is checked and this one."""
        self.constructs = False
        """True if it makes a module that is still on the CPU."""
        self.ran = 0
        """The calls so far of code that may set attributes."""
        self.bound_at: dict[str, int] = {}
        """The calls before each attribute path was bound first."""
        self.loops = 0
        self.filled: Names = {}
        """The dicts and lists whose items the running loop replaces, all of them."""
        self.narrowed: set[str] = set()
        """The items that tests have narrowed: "d[k]"."""
        self.returns: list[Value] = []
        self.rooted: dict[str, set[str]] = {}
        """The attribute paths that have been bound below a name or path."""
        self.yields: list[Value] = []
        self.breaks: list[Names] = []
        self.continues: list[Names] = []
        self.bound: Names | None = None
        """All values that the running `try` has bound, by path; None outside of one."""

    # The interpreter's parts call each other in circles. The circles are closed here, so that imports have none.

    def evaluate(self, node: ast.expr) -> Value:
        """The value of an expression in this frame."""
        return parts.evaluate(self, node)

    def run(self, body: Iterable[ast.stmt]) -> None:
        """Run statements in this frame."""
        parts.run(self, body)

    def iterate(self, value: Value) -> Value:
        """The items of a loop over a value."""
        return parts.iterate(self, value)

    def apply(self, callee: Value, arguments: Arguments) -> Value:
        """The result of calling a value."""
        return parts.apply(self, callee, arguments)[1]

    def activate(self, function: Function, arguments: Arguments) -> Value:
        """The result of running a function of the project, without its memo, limits and annotations."""
        return parts.activate(self, function, arguments)

    def body(self, cls: str) -> Names:
        """The names that the body of a class of the project assigns or declares."""
        return parts.body(self, cls)

    def rebind(self, node: ast.expr, value: Value) -> None:
        """Bind an expression to the changed value of its object."""
        parts.rebind(self, node, value)

    def item(self, value: Value, index: Value) -> Value:
        """The result of indexing a value."""
        return parts.item(self, value, index)

    def attribute(self, value: Value, name: str) -> Value:
        """An attribute of a value."""
        return parts.attribute(self, value, name)

    def origin(self, node: ast.Call | None) -> Origin | None:
        """The place at which a call creates an object; None for a call that is not in the source."""
        return None if node is None else Origin(self.module.name, node.lineno, node.col_offset)

    def bind_path(self, names: Names, path: str, value: Value) -> None:
        """Bind a name or an attribute path such as "self.mask"."""
        names[path] = value
        self.note_bound(path, value)
        outer, dot, _ = path.rpartition(".")
        if dot:
            self.bound_at.setdefault(path, self.ran)
        while dot:
            self.rooted.setdefault(outer, set()).add(path)
            outer, dot, _ = outer.rpartition(".")

    def note_bound(self, path: str, value: Value) -> None:
        """Note a value that an error may leave a name or path with."""
        if self.bound is not None:
            was = self.bound.get(path)
            self.bound[path] = value if was is None else join(was, value)

    def forget_paths(self, names: Names, path: str) -> None:
        """Forget the attributes of a name or path that gets a new value."""
        for inner in self.rooted.get(path, ()):
            names.pop(inner, None)

    def get(self, name: str) -> Value | None:
        """The value of a plain name in this function and those around it."""
        if self.names is not None and name in self.names:
            return self.names[name]
        for names in self.outer:
            if name in names:
                return names[name]
        return None


class Parts:
    """Entry points that are bound late: each part of the interpreter registers its own when it is imported."""

    evaluate: Callable[[Frame, ast.expr], Value]
    run: Callable[[Frame, Iterable[ast.stmt]], None]
    iterate: Callable[[Frame, Value], Value]
    apply: Callable[[Frame, Value, Arguments], Applied]
    activate: Callable[[Frame, Function, Arguments], Value]
    attribute: Callable[[Frame, Value, str], Value]
    body: Callable[[Frame, str], Names]
    item: Callable[[Frame, Value, Value], Value]
    rebind: Callable[[Frame, ast.expr, Value], None]


parts = Parts()


def join_names(left: Names | None, right: Names | None) -> Names | None:
    """The names after two ways of getting to one place."""
    if left is None or right is None:
        return right if left is None else left
    if left is right:
        return left
    joined = {**right, **left}
    for name in [name for name, value in left.items() if right.get(name) is not value]:
        other = right.get(name)
        if other is not None:
            joined[name] = join(left[name], other)
        elif is_path(name):
            # A path that only one side knows is looked up in the class again.
            del joined[name]
    for name in right.keys() - left.keys():
        if is_path(name):
            del joined[name]
    return joined


def is_path(name: str) -> bool:
    """True if a name is that of an attribute or an item."""
    return "." in name or "[" in name
