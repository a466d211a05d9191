"""The purpose of the code around a line: training, evaluation, data, pictures, tests."""

from __future__ import annotations

import ast
import os

from perflint.findings import Frequency, Heat, Purpose
from perflint.semantics.around import loops_around, targets
from perflint.semantics.facts import conventions
from perflint.semantics.heat.decoding import goes_on
from perflint.semantics.heat.once import copies_for_checkpoint
from perflint.semantics.heat.training import takes_steps
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.purpose.evaluations import (
    computes_metrics,
    is_in_model,
    is_of_analysis,
    is_of_evaluation,
    only_checks,
)
from perflint.semantics.purpose.files import writes_results
from perflint.semantics.purpose.frequency import frequency
from perflint.semantics.purpose.pictures import draws
from perflint.semantics.purpose.unreached import serves_project
from perflint.semantics.structure import last_name, names_in

_OF_STEPS = {
    Frequency.TOKEN: (Purpose.DECODING, "it runs for every token"),
    Frequency.BATCH: (Purpose.INFERENCE, "it runs for every batch, and no loop around it updates weights"),
    Frequency.FILE: (Purpose.INFERENCE, "it runs for every file"),
}
"""The purpose of code that runs each step, by the unit that it runs for; training for the others."""


@once_per_node
def purpose(model: Model, node: ast.AST) -> tuple[Purpose, str]:
    """The purpose of the code around a node, and what shows it, as a clause."""
    tests = model.heat_map.tests
    if frequency(model, node) is Frequency.NEVER:
        return Purpose.UNREACHED, "no program of the project reaches it"
    around = (node, *model.ancestors(node))
    if tests.are_all or any(map(tests.holds, around)):
        return Purpose.TESTS, "only tests run it"
    copied = copied_from(model)
    if copied is not None:
        return Purpose.COPY, copied
    if model.makes_module(node):
        return Purpose.SETUP, "it makes a module"
    if _copies_state(model, node) or any(copies_for_checkpoint(model, each) for each in around):
        return Purpose.CHECKPOINT, "it copies the state of a module or an optimizer"
    if draws(model, node):
        return Purpose.DRAWING, "it makes pictures"
    if model.host_code.holds(node):
        return Purpose.DATA, "it serves a dataset, a loader or another process"
    if prepares_data(model, node):
        return Purpose.DATA, "the name of the file says so"
    if writes_results(model, node):
        return Purpose.OUTPUT, "it writes a file in each iteration"
    analyses, evaluates = is_of_analysis(model, node), _evaluates(model, node)
    if analyses or evaluates:
        if _goes_on(model, node):
            return Purpose.DECODING, "each iteration goes on with the results of the last"
        function = model.function(node)
        if analyses or (function is not None and model.is_outside_training(function)):
            return Purpose.ANALYSIS, "it updates no weights, and no training leads to it"
        return Purpose.EVALUATION, "it runs a model, and updates no weights"
    if computes_metrics(model):
        return Purpose.METRICS, "the name of the file says so"
    if model.heat(node) is Heat.HOT:
        return _OF_STEPS.get(frequency(model, node), (Purpose.TRAINING, ""))
    if model.module.is_program or serves_project(model, node):
        return Purpose.OTHER, ""
    return Purpose.LIBRARY, "other projects may call it"


def copied_from(model: Model) -> str | None:
    """The evidence, as a clause, that the folder of the file is a copy of another one; None if it is not."""
    path = model.module.path
    found = model.view.original(path)
    if found is None:
        return None
    namesake = os.path.relpath(found, os.path.commonpath([found, path])).replace(os.sep, "/")
    return f"its folder is a copy of that of `{namesake}`"


def prepares_data(model: Model, node: ast.AST) -> bool:
    """True if a file prepares data by its name, except in functions that work on results."""
    if not conventions.prepares_data(model.module.name) or model.heat(node) is not Heat.WARM:
        return False
    functions = (outer for outer in model.ancestors(node) if isinstance(outer, ast.FunctionDef))
    return not any(conventions.works_on_results(function.name) for function in functions)


def _evaluates(model: Model, node: ast.AST) -> bool:
    """True if a node is in code that evaluates, and in no training."""
    if is_of_evaluation(model, node):
        return True
    function = model.function(node)
    if function is None or any(takes_steps(model, loop) for loop in loops_around(model, node)):
        return False
    if not isinstance(function, ast.Lambda) and conventions.analyses(function.name):
        return not (takes_steps(model, function) or only_checks(model, function))
    if is_in_model(model, node):
        return False
    return model.heat(node) is Heat.HOT and serves_project(model, node) and model.is_outside_training(function)


@once_per_node
def _feeds_back(model: Model, loop: ast.AST) -> bool:
    return goes_on(loop, model.heat_map.work.is_work)


def _goes_on(model: Model, node: ast.AST) -> bool:
    """True if a loop whose iterations go on with the results of the last is around a node, or around its function."""
    info = model.module.defined_by(model.function(node))
    calls = () if info is None else model.heat_map.callers(info)
    return any(_feeds_back(model, loop) for each in (node, *calls) for loop in loops_around(model, each))


def _copies_state(model: Model, node: ast.AST) -> bool:
    """True if a node copies a tensor of `model.state_dict()`, as for a checkpoint or the best weights so far."""
    names = names_in(node)
    return any(
        isinstance(source, ast.Call) and last_name(source) in ("items", "values") and _is_state_dict(source.func)
        for loop in loops_around(model, node)
        for target, source in targets(loop)
        if not names.isdisjoint(names_in(target))
    )


def _is_state_dict(method: ast.expr) -> bool:
    """True for `model.state_dict().items`."""
    return isinstance(method, ast.Attribute) and last_name(method.value) == "state_dict"
