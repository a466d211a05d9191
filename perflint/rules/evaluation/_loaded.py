"""Models whose weights a file loads and which it runs, while nothing in it trains and nothing switches a mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.rules._methods import in_tests
from perflint.rules.evaluation._layers import layers
from perflint.rules.evaluation._modules import is_pretrained, modules
from perflint.rules.evaluation._regions import is_foreign, is_other_code
from perflint.rules.evaluation._runs import Run, Surety
from perflint.rules.evaluation._scopes import Scope, Survey, assigned_to, dotted
from perflint.rules.evaluation._training import trains, wants_gradient
from perflint.semantics.facts import rule_conventions
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, names_in

SET_ELSEWHERE = re.compile(
    r"\bfrom_pretrained\b|\bjit\.load\b|eval_mode|set_eval|\beval\b(?!\()|InferenceSession|\bpipeline\("
)
"""Names that show that unseen code may set the mode."""
_LEAVES_MODE = frozenset({"bfloat16", "cpu", "cuda", "double", "float", "half", "load_state_dict", "parameters", "to"})
_PRETRAINED = re.compile(r"\bpretrained\s*=\s*True|\bweights\s*=\s*[^N\s]")


def loads(model: Model) -> bool:
    """True if a file may load the weights of a model; cheap, for a first look."""
    return model.says("load_state_dict(", "torch.load(") or model.matches(_PRETRAINED)


def runs_of_loaded(file: Survey) -> Iterator[ast.Call]:
    """The first call of each model whose weights a file loads, where nothing in it trains or switches a mode."""
    model = file.model
    if not loads(model) or in_tests(file.model):
        return
    switches = model.matches(SET_ELSEWHERE) or model.says(".eval()", ".train(")
    if switches or wants_gradient(file, file.model.source.tree):
        yield from _runs_of_local(file)
        return
    loaded = set(_loaded(file))
    for scope in file.scopes:
        if is_other_code(file, scope) or samples_on_purpose(scope) or file.is_module_class(scope.klass):
            continue
        if scope.name and trains(file, scope):
            continue
        for call in scope.calls:
            run = Run(call, file.module(call.func), Surety.PROVEN)
            if run.receiver in loaded and layers(file).mode_matters(run):
                loaded.discard(run.receiver)
                yield call


def _runs_of_local(file: Survey) -> Iterator[ast.Call]:
    """The first run of each model that a function creates, loads and runs itself, and passes to no other code."""
    known = modules(file)
    for scope in file.scopes[1:]:
        if is_other_code(file, scope) or samples_on_purpose(scope) or trains(file, scope):
            continue
        for name in sorted(_loaded_in(scope)):
            uses = known.uses(known.holder(scope.node.body[0], name))
            run = next((call for call in scope.calls if dotted(call.func) == name), None)
            made = any(isinstance(use, ast.Name) and isinstance(use.ctx, ast.Store) for use in uses)
            if run is None or not made or not all(_stays_here(file, use) for use in uses):
                continue
            if layers(file).mode_matters(Run(run, name, Surety.PROVEN)):
                yield run


def _loaded_in(scope: Scope) -> set[str]:
    """The plain names that get weights in a function."""
    found = {
        dotted(call.func.value)
        for call in scope.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"
    }
    return {name for name in found if name.isidentifier()}


def _stays_here(file: Survey, use: ast.expr) -> bool:
    """True if a use of a local model makes it by its class, moves it, loads it or runs it."""
    around = file.model.parent(use)
    if isinstance(around, ast.Attribute):
        return around.attr in _LEAVES_MODE
    if isinstance(around, ast.Assign) and use in around.targets:
        made = around.value
        while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in _LEAVES_MODE:
            made = made.func.value
        return isinstance(made, ast.Name) or (isinstance(made, ast.Call) and last_name(made)[:1].isupper())
    return isinstance(around, ast.Call) and (around.func is use or last_name(around) in ("print", "_export", "export"))


def _loaded(file: Survey) -> frozenset[str]:
    """The names of models with loaded weights: by `load_state_dict`, as whole objects, or from a factory with weights.

    A class that restores its own state, or has a base that is not seen, leaves the mode to others.
    """
    found: set[str] = set()
    for call in file.all(ast.Call):
        scope = file.scope_around(call)
        if last_name(call) == "load_state_dict" and isinstance(call.func, ast.Attribute):
            if not is_foreign(file, scope) and not _is_given(scope, call):
                found.add(dotted(call.func.value))
        elif file.model.target(call) == "torch.load":
            around = file.model.parent(call)
            found.update(map(dotted, around.targets) if isinstance(around, ast.Assign) else ())
    return frozenset(found | pretrained(file)) - {"", "self"}


@once
def pretrained(file: Survey) -> frozenset[str]:
    """The names of models that torchvision or timm make with weights: all of them drop or normalise."""
    found: set[str] = set()
    for call in file.all(ast.Call):
        if is_pretrained(file, call) and not is_foreign(file, file.scope_around(call)):
            found.update(assigned_to(file.model, call))
    return frozenset(found)


def _is_given(scope: Scope, call: ast.Call) -> bool:
    """True if the weights come from the caller of a method, which restores the state of an object that others use."""
    if scope.klass is None or isinstance(scope.node, ast.Module):
        return False
    given = {argument.arg for argument in scope.node.args.args}
    return any(names_in(argument) & given - {"self"} for argument in call.args)


def samples_on_purpose(scope: Scope) -> bool:
    """True if the name of a function says that it samples with dropout: Monte Carlo dropout, ensembles."""
    return any(rule_conventions.samples_dropout(around.name) for around in scope.chain)
