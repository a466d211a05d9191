"""Evaluations: functions and loops that run a model and ask for no gradient."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import takewhile

from perflint.findings import Confidence, Heat
from perflint.frozen import dataclass
from perflint.rules._methods import in_tests
from perflint.rules._operators import operators
from perflint.rules.evaluation._runs import Run, Surety, mode_before, runs
from perflint.rules.evaluation._scopes import LOOPS, Scope, Survey, reached
from perflint.semantics.around import Loop, loops_around, targets
from perflint.semantics.facts import conventions, rule_conventions
from perflint.semantics.facts.concepts import Entry
from perflint.semantics.heat.training import differentiates
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import GROWS, grouped, last_name, walk

_HOST_READS = operators("gradient", "reads_results")
_LOADS = "from_pretrained"
_PLAIN_BASES = frozenset({"ABC", "Module", "object", "Protocol", "Generic"})


@dataclass(frozen=True, eq=False)
class Region:
    """A whole function that only evaluates (`loop` is None), or a loop that does so inside other code."""

    survey: Survey
    scope: Scope
    loop: Loop | None
    runs: tuple[Run, ...]

    @property
    def node(self) -> ast.AST:
        """The function, the loop, or the file."""
        return self.loop or self.scope.node

    @cached_property
    def is_named(self) -> bool:
        """True if the function is named as evaluations are."""
        return bool(rule_conventions.names_evaluation(self.scope.name))

    @cached_property
    def generates(self) -> bool:
        """True if the function is named as sampling and decoding functions are."""
        return any(rule_conventions.names_generation(scope.name) for scope in self.scope.chain)

    @cached_property
    def switched(self) -> bool:
        """True if the function puts a model that it runs into evaluation mode first."""
        return any(mode_before(self.scope, run) is True for run in self.runs)

    @cached_property
    def switched_outside(self) -> bool:
        """True if the code around the function, or its class, does so."""
        switched = self.survey.switched(self.scope)
        return any(run.receiver in each.to_evaluation for run in self.runs for each in switched)

    def is_of_pretrained(self, run: Run) -> bool:
        """True if `from_pretrained`, which ends in evaluation mode, makes the model, and the file trains nothing."""
        made = self.survey.assigned(run.receiver)
        loads = any(isinstance(each, ast.Call) and last_name(each) == _LOADS for value in made for each in walk(value))
        return loads and not differentiates(self.survey.model, self.survey.model.source.tree)

    def loop_of(self, run: Run) -> Loop | None:
        """The innermost loop of the function around a run."""
        return next(loops_around(self.survey.model, run.call), None)

    @cached_property
    def over_data(self) -> bool:
        """True if a run stands in a loop over a loader or a data set."""
        loops = (loop for run in self.runs for loop in loops_around(self.survey.model, run.call))
        return any(is_over_data(self.survey, loop) for loop in loops)

    @cached_property
    def reduces(self) -> bool:
        """True if results are read by the CPU or handed to a metric."""
        return any(isinstance(node, ast.Call) and last_name(node) in _HOST_READS for node in walk(self.node))

    @cached_property
    def gathers(self) -> bool:
        """True if a list or another container keeps results."""
        return any(isinstance(node, ast.Call) and last_name(node) in GROWS for node in walk(self.node))

    @cached_property
    def heat(self) -> Heat:
        """How often the runs happen."""
        found = {self.survey.model.heat(run.call) for run in self.runs}
        return next(heat for heat in (Heat.HOT, Heat.WARM, Heat.COLD) if heat in found)

    @property
    def is_foreign(self) -> bool:
        """True if the function is a method of a class whose base, not seen here, may call it."""
        return is_foreign(self.survey, self.scope)


def is_foreign(survey: Survey, scope: Scope) -> bool:
    """True if a function is a method of a class whose base, not seen here, may call it."""
    if scope.owner is None:
        return False
    names = map(last_name, scope.owner.bases)
    return any(name not in _PLAIN_BASES and name not in survey.classes for name in names)


def is_data(survey: Survey, source: ast.expr) -> bool:
    """True if a loop iterates over a loader or a data set, by its class or its name."""
    return survey.model.is_over_batches(source) or _names_data(source)


def is_over_data(survey: Survey, loop: Loop) -> bool:
    """True if a loop or comprehension iterates over a loader or a data set."""
    return any(is_data(survey, source) for _, source in targets(loop))


@once
def regions(survey: Survey) -> tuple[Region, ...]:
    """The evaluations of a file; none in tests and where its models are another library's."""
    return tuple(_regions(survey))


def is_of_another_library(survey: Survey) -> bool:
    """True if a file imports another library with models and not torch: torch's autograd does not record its models."""
    roots = {full.partition(".")[0] for full in survey.model.module.imports.values()}
    return "torch" not in roots and any(map(conventions.is_other_framework, roots))


def _regions(survey: Survey) -> Iterator[Region]:
    if is_of_another_library(survey) or in_tests(survey.model):
        return
    for scope in survey.scopes:
        if is_other_code(survey, scope):
            continue
        found = runs(survey, scope)
        if survey.is_module_class(scope.klass):
            # The layers of a model are its caller's business; a method that runs the whole model is not.
            found = tuple(run for run in found if run.receiver == "self")
        if not found:
            continue
        if trains(survey, scope):
            yield from _loops(survey, scope, found)
        else:
            yield Region(survey, scope, None, found)


def trains(survey: Survey, scope: Scope) -> bool:
    """True if code computes gradients, or its name says that it trains; the top level of a file may do anything."""
    if isinstance(scope.node, ast.Module) or differentiates(survey.model, scope.node):
        return True
    return bool(conventions.belongs_to_training(scope.name)) and not rule_conventions.names_evaluation(scope.name)


def is_called_in_training(survey: Survey, scope: Scope) -> bool:
    """True if a function of the file that computes gradients calls another one, so that autograd records that too."""
    callers = (caller for caller, _ in survey.callers.get(scope, ()) if not isinstance(caller.node, ast.Module))
    return any(caller is not scope and differentiates(survey.model, caller.node) for caller in callers)


Question = Callable[[str], Entry | None]


def defines(model: Model, *questions: Question) -> bool:
    """True if a file defines a function whose name answers one of some questions; cheap, for a first look."""
    names = {info.name for info in model.module.structure.functions.values()}
    return any(question(name) for name in names for question in questions)


def loops_over_data(model: Model, question: Question = rule_conventions.names_data) -> bool:
    """True if a loop of a file goes over data whose name answers a question; as cheap."""
    loops = model.nodes(ast.For, ast.AsyncFor, ast.comprehension)
    sources = (loop.iter for loop in loops if isinstance(loop, (ast.For, ast.AsyncFor, ast.comprehension)))
    return any(_names_data(source, question) for source in sources)


def _names_data(source: ast.expr, question: Question = rule_conventions.names_data) -> bool:
    """True if an expression has a name of a loader or a data set that answers a question."""
    names = (last_name(node) for node in walk(source) if isinstance(node, (ast.Name, ast.Attribute)))
    return any(rule_conventions.names_data(name) and question(name) for name in names)


def is_other_code(survey: Survey, scope: Scope) -> bool:
    """Functions that are parts of a model, hooks that a framework wraps, tests and reference code."""
    if isinstance(scope.node, ast.Module):
        return False
    is_called = scope.name == "__call__" and not survey.is_module_class(scope.klass)
    if (scope.name.startswith(("forward", "__")) and not is_called) or conventions.is_evaluation_hook(scope.name):
        return True
    tests = survey.model.heat_map.tests
    return any(tests.holds(around.node) for around in scope.chain)


def _loops(survey: Survey, scope: Scope, found: tuple[Run, ...]) -> Iterator[Region]:
    """The outermost loops without training that run a model which was put into evaluation mode, or held-out data."""
    runs_by_loop = grouped((_outermost_evaluating(survey, run), run) for run in found)
    for loop, inside in runs_by_loop.items():
        if loop is None:
            continue
        region = Region(survey, scope, loop, tuple(inside))
        if region.switched or _is_held_out(loop):
            yield region


def _outermost_evaluating(survey: Survey, run: Run) -> Loop | None:
    evaluating = takewhile(lambda loop: not differentiates(survey.model, loop), loops_around(survey.model, run.call))
    return next(reversed([*evaluating]), None)


def _is_held_out(loop: Loop) -> bool:
    """True if a loop iterates over data that is named as held out: `val_loader`."""
    return any(_names_data(source, rule_conventions.names_evaluation) for _, source in targets(loop))


def evaluates(survey: Survey, scope: Scope, within: ast.AST) -> bool:
    """True if `within`, a function or a statement of `scope`, runs a model in order to evaluate it."""
    if is_other_code(survey, scope) or not _runs_models(survey, scope, within):
        return False
    inside = [node for node in walk(within) if isinstance(node, LOOPS)]
    if trains(survey, scope) and scope.name and within is not scope.node:
        return bool(inside) and any(mode.evaluating for mode in scope.modes)
    if is_named_so(scope) or any(each.to_evaluation for each in survey.switched(scope)):
        return True
    return any(is_over_data(survey, loop) for loop in inside)


def is_named_so(scope: Scope) -> bool:
    """True if a function, or one around it, is named as evaluations or generators are."""
    names = [around.name for around in scope.chain]
    return any(rule_conventions.names_evaluation(name) or rule_conventions.names_generation(name) for name in names)


def _runs_models(survey: Survey, scope: Scope, within: ast.AST) -> bool:
    """True if code runs a model itself, or calls a function of the file that does."""
    inside = set(walk(within))
    if any(run.call in inside for run in runs(survey, scope)):
        return True
    running = _running(survey)
    calls = (node for node in inside if isinstance(node, ast.Call))
    return any(other is not scope and other in running for call in calls for other in survey.called(call))


@once
def _running(survey: Survey) -> set[Scope]:
    """The functions of a file that run a model, directly or by others."""
    running = (scope for scope in survey.scopes if runs(survey, scope))
    return reached(running, lambda scope: (caller for caller, _ in survey.callers.get(scope, ())))


def confidence(region: Region, run: Run) -> Confidence | None:
    """How sure it is that a run of a region is an evaluation; None if too little says so."""
    looped = region.loop is not None or region.loop_of(run) is not None
    if region.switched:
        if run.surety is Surety.PASSED:
            return Confidence.LOW if looped else None
        if looped:
            return Confidence.HIGH if region.over_data or region.reduces else Confidence.MEDIUM
        return Confidence.MEDIUM if region.is_named or region.reduces else Confidence.LOW
    if run.surety is Surety.PASSED:
        return None
    if region.switched_outside:
        return Confidence.MEDIUM if region.is_named or (looped and region.reduces) else Confidence.LOW
    if region.loop is not None or (region.is_named and looped):
        return Confidence.MEDIUM
    if looped and region.is_of_pretrained(run):
        return Confidence.MEDIUM if region.reduces or region.gathers else Confidence.LOW
    if region.is_named and region.reduces:
        return Confidence.LOW
    return Confidence.LOW if region.generates and (looped or run.receiver == "self") else None
