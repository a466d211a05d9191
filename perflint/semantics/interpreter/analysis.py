"""The run of the interpreter over one file that is to be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from perflint.frozen import dataclass
from perflint.semantics.depth import deep_stack
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter import functions, statements
from perflint.semantics.interpreter.frame import Budget, Frame, Names, Position, Recorder
from perflint.semantics.interpreter.lineage import decorator_names
from perflint.semantics.interpreter.members import run_changed_again, run_for_attributes
from perflint.semantics.interpreter.memory import Effects
from perflint.semantics.interpreter.observed import needs_callers, take_observed, take_passed, takes_arguments
from perflint.semantics.interpreter.resolve import class_at, run_module
from perflint.semantics.module import Module
from perflint.semantics.structure import FunctionInfo
from perflint.semantics.values import (
    Class,
    Function,
    Instance,
    Value,
)
from perflint.semantics.view import Every, EveryCall, Outside, View, no_call

_STEPS_PER_NODE = 40
"""Nodes of called functions that may be run for each node of the file."""
_STEPS_OF_PROGRAM = 6_000
"""As many more for a program: it may be short and call much code of other files."""
_STEPS_OF_PART = 500
"""Nodes of called functions that may be run for a part of a file, and as many for its top level: most findings of the
part are the same, and the time hardly depends on the called functions."""


class Analysis:
    """The run over one file, in rounds: by the calls of the file alone, then with those of other files.

    Each round but the last gives a summary of the file. The next one goes on from there, and runs again only the
    functions for which other files tell something else than before.
    """

    def __init__(self, view: View, module: Module, any_caller: bool = False, keeps_calls: bool = False) -> None:
        """With `any_caller`, only functions that no other file can call take arguments from calls in the file."""
        self.view: View = view
        self.module: Module = module
        self.recorder: Recorder = Recorder(module.name, any_caller=any_caller, keeps_calls=keeps_calls)
        self._budget = Budget(_steps(view, module))
        self._top = Frame(view, module, self._budget, names={}, recorder=self.recorder)
        self._order: list[FunctionInfo] = []
        self._runs: dict[FunctionInfo, _Run] = {}
        self._asked: set[FunctionInfo] = set()
        """The functions for which the first round asked for all calls of the project."""
        self._told: dict[FunctionInfo, tuple[list[Arguments], Every]] = {}
        """What other files told of the functions in the last round, if anything."""
        self.rounds: int = 0
        """The rounds that were made."""

    def run_alone(self, part: range | None = None) -> None:
        """Run the top level, then each function once, and record their values and calls.

        With `part`, only the functions that begin on these lines are run, and those that may call them.
        """
        view, module, recorder, top = self.view, self.module, self.recorder, self._top
        with deep_stack():
            if part is not None:
                self._budget.left = _STEPS_OF_PART
            if not recorder.any_caller:
                view.inside = lambda callee, info: _inside(recorder, callee, info)
            if part is None and not recorder.any_caller:
                view.every_call = self._note_question
            run_module(top, lambda: _run(recorder, lambda: statements.run(top, module.tree.body)))
            self._order = list(_order(module))
            if part is not None:
                self._budget.left = _STEPS_OF_PART
                self._order = _concerned(self._order, part)
            self._run_functions(self._order)
            if part is None:
                self._settle()
        view.every_call = no_call
        recorder.steps = self._budget.steps
        self.rounds = 1

    def run_with_callers(self, outside: Outside, every_call: EveryCall) -> bool:
        """Run the functions again of which calls in other files tell something else than in the last round, and those
        that depend on these. True if there are any.
        """
        self.view.outside, self.view.every_call = outside, every_call
        before = self._budget.steps
        with deep_stack():
            _run(self.recorder, lambda: run_changed_again(self._top))
            told: dict[FunctionInfo, None] = {}
            for info in self._order:
                if self._is_told_else(info) or info.outer in told:
                    told[info] = None
            self._run_functions(list(told))
            self._settle()
        self.recorder.steps = self._budget.steps
        self.rounds += 1
        return bool(told) or self._budget.steps > before

    def _is_told_else(self, info: FunctionInfo) -> bool:
        """True if calls in other files may change what a function knows of its parameters."""
        is_bound = _receiver(self.module, info) is not None
        given = self.view.outside(self.module, info) if takes_arguments(info, is_bound) else []
        every = self.view.every_call(self.module, info) if info in self._asked else _NO_CALL
        told = given, every
        if told == self._told.get(info, _NOTHING):
            return False
        self._told[info] = told
        return True

    def _note_question(self, module: Module, info: FunctionInfo) -> Every:
        """The answer of the first round, which cannot know whether a function gets other calls."""
        self._asked.add(info)
        return no_call(module, info)

    def _run_functions(self, functions: list[FunctionInfo]) -> None:
        for info in functions:
            _run(self.recorder, lambda info=info: _run_function(self._top, info, self.recorder, self._runs))  # type: ignore[misc]

    def _settle(self) -> None:
        """Run functions again until calls pass them nothing new, and attributes have no other values."""
        memory, top, recorder = self.view.memory, self._top, self.recorder
        for _ in range(_MOST_ROUNDS):
            for cls, method in list(memory.attribute_runs):
                _run(recorder, lambda cls=cls, method=method: run_for_attributes(top, cls, method))  # type: ignore[misc]
            memory.forget_replaced()
            stale = _stale(top, self._order, self._runs)
            self._run_functions(stale)
            if not stale:
                break


_NO_CALL = Every((), False)
_NOTHING: tuple[list[Arguments], Every] = [], _NO_CALL


def _steps(view: View, module: Module) -> int:
    return _STEPS_PER_NODE * (view.project.size(module) + 100) + _STEPS_OF_PROGRAM * module.is_program


def _inside(recorder: Recorder, module: Module, info: FunctionInfo) -> list[Arguments]:
    """The arguments of the calls of the checked file, if a function is of that file."""
    is_own = module.name == recorder.module
    return recorder.passed_to(_place(info)) if is_own else []


def _place(info: FunctionInfo) -> Position:
    return info.node.lineno, info.node.col_offset


def _run(recorder: Recorder, part: Callable[[], None]) -> None:
    try:
        part()
    except RecursionError:
        # Nested deeper than the stack: the rest of this part stays unknown, which is an answer.
        recorder.unfinished += 1


def _order(module: Module) -> Iterator[FunctionInfo]:
    """Functions whose parameters are known by themselves first, then callers before callees."""
    every = list(module.structure.functions.values())
    makers = _makers(module, every)
    given = {info.owner for info in every if info.name == "__init__" and info.owner in makers and needs_callers(info)}
    waiting = {info for info in every if info.owner in given or needs_callers(info)}
    for info in every:
        if info.outer in waiting:
            waiting.add(info)
    yield from (info for info in every if info not in waiting)
    names = {info.name for info in every}
    done: set[FunctionInfo] = set()
    callers: dict[str, list[FunctionInfo]] = {}
    users: dict[str, list[FunctionInfo]] = {}
    for caller in every:
        # A method that is only read is called later: `steps = {"a": self.step_a}`.
        for name in names & (caller.calls | caller.asks | caller.uses.get("self", set())):
            users.setdefault(name, []).append(caller)
            if name in caller.calls:
                callers.setdefault(name, []).append(caller)
    called_by = {
        callee: _Callers(
            [] if callee.outer is None else [callee.outer],
            makers.get(callee.owner, []),
            (users if callee.owner else callers).get(callee.name, []),
            # A method that calls its namesake mostly calls that of a base, which is above it and is called from below.
            callee.node.lineno if callee.owner and callee.name in callee.calls | callee.asks else 0,
        )
        for callee in every
    }
    # Names do not show the callers of a model. So each `forward` comes last, those of outer modules first, and then
    # the constructors of the objects that they make.
    forwards = [info for info in every if info.owner and info.name == "forward"]
    made = {name for info in forwards for name in info.calls}
    objects = [info for info in every if info.name == "__init__" and info.owner in made]
    last = {*forwards, *objects}
    others = [info for info in every if info not in last]
    for info in (*others, *reversed(forwards), *objects):
        if info in waiting:
            yield from _callers_first(info, called_by, waiting, done)


def _makers(module: Module, every: list[FunctionInfo]) -> dict[str, list[FunctionInfo]]:
    """The functions that make objects of the classes of the file, by the name of the class."""
    found: dict[str, list[FunctionInfo]] = {}
    for caller in every:
        for name in caller.calls & module.structure.classes.keys():
            found.setdefault(name, []).append(caller)
    return found


def _concerned(order: list[FunctionInfo], part: range) -> list[FunctionInfo]:
    """The functions that begin on some lines, those that may call them, and the functions around all of these."""
    found = {info for info in order if info.node.lineno in part}
    names = {info.name for info in found}
    found |= {info for info in order if not names.isdisjoint(info.calls | info.asks)}
    for info in list(found):
        outer = info.outer
        while outer is not None:
            found.add(outer)
            outer = outer.outer
    return [info for info in order if info in found]


@dataclass(slots=True)
class _Callers:
    """The functions that may call one and have not been looked at.

    Functions of one name, and methods of one class, share their lists, so that each caller is looked at once.
    """

    around: list[FunctionInfo]
    makers: list[FunctionInfo]
    """Those that make its object, before its methods run."""
    by_name: list[FunctionInfo]
    """Those that call a function of its name, in the order of the file."""
    above: int
    """The line up to which the latter are left out."""

    def next(self) -> FunctionInfo | None:
        """The next one, the last of the file first."""
        for each, line in ((self.around, 0), (self.makers, 0), (self.by_name, self.above)):
            if each and each[-1].node.lineno > line:
                return each.pop()
        return None


def _callers_first(
    info: FunctionInfo, called_by: dict[FunctionInfo, _Callers], waiting: set[FunctionInfo], done: set[FunctionInfo]
) -> Iterator[FunctionInfo]:
    stack = [info] if info not in done else []
    done.update(stack)
    while stack:
        caller = called_by[stack[-1]].next()
        if caller is None:
            yield stack.pop()
        elif caller in waiting and caller not in done:
            done.add(caller)
            stack.append(caller)


@dataclass(slots=True)
class _Run:
    """The run of a function by itself, with all that it rests on."""

    given: list[Arguments]
    """The arguments of the known calls in the file."""
    effects: Effects


def _run_function(top: Frame, info: FunctionInfo, recorder: Recorder, runs: dict[FunctionInfo, _Run]) -> None:
    top.view.project.go_on()
    place = _place(info)
    recorder.begin(place)
    if info in runs:
        recorder.forget(info.node)
    with top.view.memory.run(place) as effects:
        runs[info] = _Run(recorder.passed_to(place), effects)
        inner = _activation(top, info)
        take_observed(inner, info, recorder)
        take_passed(inner, info, inner.names)
        inner.recorder = recorder
        if inner.constructs:
            recorder.constructing.add(place)
        if inner.owner == "" and info.outer is not None:
            _inherit_self(inner, info)
        functions.run_body(inner, info)
        top.view.memory.settle(effects)


def _stale(top: Frame, order: list[FunctionInfo], runs: dict[FunctionInfo, _Run]) -> list[FunctionInfo]:
    """The functions that would run otherwise now: calls pass them other arguments, or attributes have other values."""
    memory, recorder = top.view.memory, top.recorder
    assert recorder is not None
    found: dict[FunctionInfo, None] = {}
    for info in order:
        run = runs.get(info)
        if run is None:
            continue
        given = recorder.passed_to(_place(info)) if needs_callers(info) else run.given
        is_stale = given != run.given or info.outer in found or not memory.holds(run.effects)
        if is_stale and top.budget.allows(info.size):
            found[info] = None
    return list(found)


_MOST_ROUNDS = 4
"""Times that the functions of a file are run again, because the first runs have found out more."""


def parameters(view: View, module: Module, info: FunctionInfo, recorder: Recorder) -> tuple[Names, Names]:
    """The parameters of a function by themselves, and with the arguments of the file's calls."""
    with deep_stack():
        names = view.state(module).names or {}
        top = Frame(view, module, Budget(_steps(view, module)), names=names)
        inner = _activation(top, info)
        alone = dict(inner.names or {})
        take_observed(inner, info, recorder)
        for found in (alone, inner.names):
            take_passed(inner, info, found)
    return alone, inner.names or {}


def _activation(top: Frame, info: FunctionInfo) -> Frame:
    """The frame of a function without known callers."""
    module, node = top.module, info.node
    receiver = _receiver(module, info)
    owner = f"{module.name}.{info.owner}" if info.owner else ""
    function = Function(module.name, info.qualname, node.lineno, node.col_offset, owner, receiver)
    if owner and owner not in top.view.memory.classes:
        klass = module.klass(info.owner)
        if klass is not None:
            class_at(top.view, module, klass.node)
    return functions.enter(top, module, info, function, None)


def _inherit_self(inner: Frame, info: FunctionInfo) -> None:
    """A function nested in a method sees its `self`."""
    outer = info.outer
    while outer is not None and not outer.owner:
        outer = outer.outer
    if outer is not None:
        inner.owner = f"{inner.module.name}.{outer.owner}"
        inner.receiver = Instance(inner.owner)


def _receiver(module: Module, info: FunctionInfo) -> Value | None:
    if not info.owner:
        return None
    decorators = decorator_names(info.node)
    if "staticmethod" in decorators:
        return None
    name = f"{module.name}.{info.owner}"
    return Class(name) if "classmethod" in decorators else Instance(name)
