"""Models whose weights a file loads and which it runs, while nothing in it trains and nothing switches a mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.rules._methods import in_tests
from perflint.rules.evaluation._layers import mode_matters
from perflint.rules.evaluation._loops import is_foreign, is_other_code, trains, wants_gradient
from perflint.rules.evaluation._modules import is_pretrained
from perflint.rules.evaluation._runs import Run, Surety
from perflint.rules.evaluation._scopes import Scope, Survey, assigned_to, dotted, last_name, words

SET_ELSEWHERE = re.compile(
    r"\bfrom_pretrained\b|\bjit\.load\b|eval_mode|set_eval|\beval\b(?!\()|InferenceSession|\bpipeline\("
)
"""What says that the mode may be set by code that is not seen."""
_SAMPLED = frozenset({"bayes", "bayesian", "dropout", "ensemble", "mc", "montecarlo", "stochastic", "uncertainty"})
_PRETRAINED = re.compile(r"\bpretrained\s*=\s*True|\bweights\s*=\s*[^N\s]")


def loads(text: str) -> bool:
    """Whether a file may load the weights of a model; cheap, for a first look."""
    return "load_state_dict(" in text or "torch.load(" in text or _PRETRAINED.search(text) is not None


def runs_of_loaded(file: Survey) -> Iterator[ast.Call]:
    """The first call of each model whose weights a file loads, where nothing in it trains or switches a mode."""
    text = file.model.source.text
    if not loads(text) or SET_ELSEWHERE.search(text) or ".eval()" in text or ".train(" in text:
        return
    if in_tests(file.model) or wants_gradient(file, file.model.source.tree):
        return
    loaded = _loaded(file)
    for scope in file.scopes:
        if is_other_code(file, scope) or samples_on_purpose(scope) or file.is_module_class(scope.klass):
            continue
        if scope.name and trains(file, scope):
            continue
        for call in scope.calls:
            run = Run(call, dotted(call.func), Surety.PROVEN)
            if run.receiver in loaded and mode_matters(file, run):
                loaded = loaded - {run.receiver}
                yield call


def _loaded(file: Survey) -> frozenset[str]:
    """The names of what gets weights: by `load_state_dict`, or as a whole, or by a factory that has them.

    A class that restores its own state, or has a base that is not seen, leaves the mode to others.
    """
    found: set[str] = set()
    for call in file.all(ast.Call):
        scope = file.scope_around(call)
        if last_name(call) == "load_state_dict" and isinstance(call.func, ast.Attribute):
            if not is_foreign(file, scope) and scope.name != "load_state_dict":
                found.add(dotted(call.func.value))
        elif file.model.target(call) == "torch.load":
            around = file.model.parent(call)
            found.update(map(dotted, around.targets) if isinstance(around, ast.Assign) else ())
        elif is_pretrained(file, call) and not is_foreign(file, scope):
            found.update(assigned_to(file.model, call))
    return frozenset(found - {"", "self"})


def samples_on_purpose(scope: Scope) -> bool:
    """Whether a function is named for what draws dropout: Monte Carlo dropout, ensembles."""
    return any(_SAMPLED.intersection(words(around.name)) for around in scope.chain)
