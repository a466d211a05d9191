"""The top levels of modules, whose results all checks share.

A check runs the top level of an imported module when it needs one of its variables. The run follows from the texts of
the project alone if it starts with an empty memory and makes no objects of the project, whose attributes would grow.
So it is made once, in a view of its own, and each check takes the result over. It costs a check as much of its budget
as its own run would.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from perflint.frozen import dataclass
from perflint.semantics.changes import changes_of
from perflint.semantics.interpreter.frame import Budget, Names
from perflint.semantics.interpreter.memory import CallKey, ClassFacts, ModuleState, Outcome
from perflint.semantics.module import Module
from perflint.semantics.project import Project
from perflint.semantics.questions import WHOLE
from perflint.semantics.values import Function
from perflint.semantics.view import Record, View

_STEPS_PER_NODE = 40
"""Nodes of called functions that may be run for each node of a module, as in a check of it."""

Run = Callable[[View, Module, Budget], int]
"""Runs a top level in a view; the result is `WHOLE` if it rests on nothing that is still open, and on no cut."""


@dataclass(frozen=True, slots=True)
class TopLevel:
    """The results of the run of a top level, with an empty memory."""

    state: ModuleState
    cost: int
    """The nodes of called functions that were run, which a budget limits."""
    steps: int
    too_deep: int
    """The calls that were not followed because of their depth."""
    contexts: dict[Function, set[CallKey]]
    results: dict[CallKey, Outcome]
    classes: dict[str, ClassFacts]
    modules: dict[str, Path]
    """The files that the run entered, by the names of their modules."""
    record: Record


class TopLevels:
    """The results for the modules of one state of a project, which holds them."""

    def __init__(self) -> None:
        self._known: dict[Path, TopLevel | None] = {}
        """None for modules whose results depend on the check that needs them."""
        self._running: list[Path] = []

    def of(self, project: Project, module: Module, run: Run) -> TopLevel | None:
        """The result for a module; None if each check has to make its own."""
        path = module.path
        if path in self._running:
            # Top levels that go round in circles depend on where they begin.
            self._known.update(dict.fromkeys(self._running[self._running.index(path) :]))
            return None
        if path not in self._known and (known := _unchanged(project, path, run)) is not None:
            self._known[path] = known
        if path not in self._known:
            self._running.append(path)
            try:
                found = _made(project, module, run)
            finally:
                self._running.pop()
            self._known.setdefault(path, found)
        return self._known[path]


def _unchanged(overlay: Project, path: Path, run: Run) -> TopLevel | None:
    """The result for a module in the project below an overlay; None if the changes of the overlay may alter it."""
    base = overlay.base
    module = None if base is None or path in overlay.changed else base.module_at(path)
    known = None if base is None or module is None else top_levels(base).of(base, module, run)
    return known if known is not None and changes_of(overlay).spare(known.record, overlay) else None


def take_over(view: View, module: Module, budget: Budget, run: Run) -> Names:
    """The variables of an imported module, whose top level is entered into a view as if it had been run there."""
    found = top_levels(view.project).of(view.project, module, run)
    if found is None or not _fits(found, view, module, budget):
        run(view, module, budget)
        return view.state(module).names or {}
    for name, path in found.modules.items():
        view.meet(name, path)
    view.rests_on(found.record)
    for name, facts in found.classes.items():
        if name not in view.memory.classes:
            view.memory.classes[name] = ClassFacts(name, facts.module, facts.qualname, facts.moved)
    for function, keys in found.contexts.items():
        budget.contexts.setdefault(function, set()).update(keys)
    budget.left -= found.cost
    budget.steps += found.steps
    budget.too_deep += found.too_deep
    view.memory.results.update(found.results)
    state = view.state(module)
    names = state.names = dict(found.state.names or {})
    state.is_run = True
    state.constructed.update({name: list(made) for name, made in found.state.constructed.items()})
    state.closures.update(found.state.closures)
    return names


def top_levels(project: Project) -> TopLevels:
    """The top levels of a project."""
    if project.top_levels is None:
        project.top_levels = TopLevels()
    assert isinstance(project.top_levels, TopLevels)
    return project.top_levels


def _fits(found: TopLevel, view: View, module: Module, budget: Budget) -> bool:
    """True if a run in a view would have the same result: all of its calls would be followed, and names mean the same.

    The file that a view is about may have arguments of other files, and a module whose top level is being run has only
    some of its variables.
    """
    if not budget.allows(found.cost) or found.modules.get(module.name) != module.path:
        return False
    for name, path in found.modules.items():
        if path == view.checked or view.modules.get(name, path) != path:
            return False
        if name in view.modules and view.state_of(name).is_running:
            return False
    return True


def _made(project: Project, module: Module, run: Run) -> TopLevel | None:
    """The result of a run with an empty memory; None if it is incomplete, or if it changed anything but variables."""
    view = View(project)
    own = view.at(module.path)
    budget = Budget(limit := _STEPS_PER_NODE * (module.structure.size + 100))
    try:
        rests_on = WHOLE if own is None else run(view, own, budget)
    except RecursionError:
        # It would depend on the depth of the stack.
        return None
    if own is None or rests_on != WHOLE:
        return None
    if any(map(_has_grown, view.memory.classes.values())):
        return None
    if any(view.state_of(name).closures for name in view.modules if name != own.name):
        return None
    if any(project.name_of(path) != name for name, path in view.modules.items()):
        # Of two modules of one name, another is met first elsewhere.
        return None
    return TopLevel(
        view.state(own),
        limit - budget.left,
        budget.steps,
        budget.too_deep,
        budget.contexts,
        view.memory.results,
        view.memory.classes,
        dict(view.modules),
        view.record,
    )


def _has_grown(facts: ClassFacts) -> bool:
    return bool(facts.attributes.by_run or facts.initial.by_run or facts.asked or facts.methods_run or facts.lacks)
