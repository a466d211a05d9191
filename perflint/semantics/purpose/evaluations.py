"""Decides if code evaluates a model or analyses its results, in a file of a project's programs that trains nothing."""

from __future__ import annotations

import ast
import re
from functools import partial

from perflint.findings import Heat
from perflint.semantics.around import loops_around
from perflint.semantics.callers.training import is_of_training
from perflint.semantics.facts import conventions
from perflint.semantics.heat.training import goes_backward
from perflint.semantics.heat.work import goes_backward_by_name
from perflint.semantics.memo import once, once_per_node
from perflint.semantics.model import Model
from perflint.semantics.module import Module
from perflint.semantics.purpose.beside import is_step
from perflint.semantics.structure import last_name, walk
from perflint.semantics.test_files import folders
from perflint.semantics.values import Instance

_UPDATES = re.compile(r"\b(?:\w+_)?optim(?:izers?)?\b|training_step|Train(?:er|ingArguments)\b")
_GOES_BACKWARD = re.compile(r"\bbackward\b")
_FITS = re.compile(r"\.fit\(")
_OTHER_FITS = re.compile(
    r"^\s*(?:from|import)\s+(?:sklearn|scipy|cuml|xgboost|lightgbm|catboost|umap|statsmodels|hmmlearn|pysr|gplearn)\b",
    re.MULTILINE,
)
"""Libraries whose models train on the CPU."""


@once
def _updates(model: Model) -> bool:
    """True if a file updates weights of torch, calls code that does, or gives its functions to training.

    Its text says the first: `optimizer`, or the arguments of a trainer, which hold for its steps wherever it runs.
    """
    if model.matches(_UPDATES) or (model.matches(_FITS) and not model.matches(_OTHER_FITS)):
        return True
    calls = model.nodes(ast.Call)
    if any(map(partial(_gives_function_to_training, model), calls)):
        return True
    return any(model.heat_map.work.of_call(call).steps for call in calls)


def _gives_function_to_training(model: Model, call: ast.Call) -> bool:
    """True if a call that trains, of another file, gets a function of this one: `pretrain(data, forward_step)`."""
    name, defined = last_name(call), model.module.definitions
    if name in defined or not conventions.runs_training(name):
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(isinstance(each, ast.Name) and each.id in defined for each in given)


def updates_weights(model: Model) -> bool:
    """True if the text of a file says that it updates weights or goes backward, or gives functions to training."""
    return _updates(model) or model.matches(_GOES_BACKWARD)


@once
def only_evaluates(model: Model) -> bool:
    """True if a file is a program that trains nothing, and no other file uses its functions."""
    if not _is_program(model.module) or updates_weights(model):
        return False
    return not model.is_imported


def _is_program(module: Module) -> bool:
    """True if a file is a program: it has a part for that, or its last statement calls one of its functions."""
    last = module.tree.body[-1] if module.tree.body else None
    call = last.value if isinstance(last, ast.Expr) else None
    return module.is_program or (isinstance(call, ast.Call) and last_name(call) in module.definitions)


def is_of_analysis(model: Model, node: ast.AST) -> bool:
    """True if a place is in a file that evaluates or analyses, and updates no weights.

    Not in a model, nor in a function that goes backward, nor in one that runs in each step of a training. A file that
    only its name shows is not meant if a training calls the function, each epoch or so.
    """
    function = model.function(node)
    if is_in_model(model, node):
        return False
    if not only_evaluates(model):
        if not _is_named_so(model) or (function is not None and is_of_training(model, function)):
            return False
    return function is None or not (goes_backward(model, function) or _is_part_of_steps(model, function))


def is_of_evaluation(model: Model, node: ast.AST) -> bool:
    """True if a place is in a loop that evaluates a model, in a file of a project that updates no weights.

    The loop iterates over the batches of a loader or runs a model, and copies results to the CPU in each
    iteration. Not in a model, nor in code that a package offers to others, nor in a function that runs in
    each step of a training.
    """
    if updates_weights(model):
        return False
    function = model.function(node)
    if is_in_model(model, node) or model.is_offered or not is_one_of_many(model):
        return False
    loops = [loop for loop in loops_around(model, node) if _evaluates(model, loop)]
    if not loops or not _takes_results(model, loops[-1]):
        return False
    return function is None or not _is_part_of_steps(model, function)


@once_per_node
def only_checks(model: Model, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True if a function checks its arguments: it runs no model, returns no value, and may raise at its end.

    `def _tensor_validation(target): if target.max() > 1: raise ValueError` runs as often as the code that it guards.
    """
    raises = any(isinstance(node, ast.Raise) for node in walk(function.body[-1]))
    if not raises or model.heat_map.work.of(function.body).any:
        return False
    return not any(isinstance(node, ast.Return) and node.value is not None for node in walk(function))


@once_per_node
def _evaluates(model: Model, loop: ast.AST) -> bool:
    """True if a loop iterates over the batches of a loader, or runs a model in each iteration."""
    over_batches = isinstance(loop, (ast.For, ast.AsyncFor)) and model.is_over_batches(loop.iter)
    return over_batches or is_step(model, loop)


@once_per_node
def _is_part_of_steps(model: Model, function: ast.AST) -> bool:
    """True if a function of another file that goes backward calls a function in each step."""
    info = model.module.defined_by(function)
    chain = None if info is None else model.chain(info)
    caller = chain.calls[-1].caller if chain is not None and chain.heat is Heat.HOT else None
    module = None if caller is None else model.view.peek(caller.path)
    if caller is None or module is None:
        return False
    return any(
        each.qualname == caller.qualname and any(map(goes_backward_by_name, walk(each.node)))
        for each in module.structure.functions.values()
    )


@once
def _is_named_so(model: Model) -> bool:
    """True if only programs of a project use a file, and its name says that it evaluates or analyses."""
    module = model.module
    names = (module.path.stem, *folders(module.path, module.root))
    if not any(map(conventions.analyses, names)) or _updates(model):
        return False
    return model.serves_programs or (_stands_alone(model) and not model.is_imported)


@once
def computes_metrics(model: Model) -> bool:
    """True if the name of a file says that it computes metrics, which the project does once for an evaluation.

    A package that offers metrics to other code does not know when that computes them.
    """
    is_named_so = any(map(conventions.computes_metrics, model.module.name.split(".")))
    return is_named_so and not model.is_offered and model.view.project.is_whole


def _stands_alone(model: Model) -> bool:
    """True if a file is in no package, and not the only file of its project."""
    return "." not in model.module.name and is_one_of_many(model)


def is_one_of_many(model: Model) -> bool:
    """True if a file is not the only one of its project: a file by itself may belong to another project."""
    project = model.view.project
    return project.is_whole and len(project.files) > 1


@once_per_node
def _takes_results(model: Model, loop: ast.AST) -> bool:
    """True if a loop copies results to the CPU. A program also if it reads numbers, which others may sum up instead."""
    found = {last_name(node) for node in walk(loop) if isinstance(node, ast.Call)}
    return not found.isdisjoint(_TO_CPU) or ("item" in found and only_evaluates(model))


_TO_CPU = frozenset({"cpu", "numpy", "tolist"})


@once_per_node
def _owner_is_model(model: Model, function: ast.AST) -> bool:
    info = model.module.defined_by(function)
    return info is not None and bool(info.owner) and model.is_module(Instance(f"{model.module.name}.{info.owner}"))


def is_in_model(model: Model, node: ast.AST) -> bool:
    """True if a node is in a method of a module, or in a function inside of one."""
    function = model.function(node)
    while function is not None:
        if _owner_is_model(model, function):
            return True
        function = model.function(function)
    return False
