"""Decides if `torch.inference_mode` may replace `torch.no_grad`."""

from __future__ import annotations

import ast
import re

from perflint.findings import Confidence
from perflint.rules.evaluation._leaving import leaves
from perflint.rules.evaluation._regions import is_named_so
from perflint.rules.evaluation._scopes import LOOPS, Scope, Survey
from perflint.semantics.facts import rule_conventions
from perflint.semantics.heat.training import differentiates
from perflint.semantics.regions.compiled import COMPILES
from perflint.semantics.structure import last_name, walk

_TRACES = frozenset({"export", "make_graphed_callables", "script", "trace"})
_COMPILES = re.compile(rf"{COMPILES.pattern}|\bcompile_model\b")


def fits(survey: Survey, scope: Scope, within: ast.AST) -> Confidence | None:
    """How sure it is that `within` can run in inference mode; None if it should not.

    High if no tensor leaves it. Low if tensors may leave it, but the function has a usual
    name of an evaluation or a generator.
    """
    if _traces(within):
        return None
    if leaves(survey, scope, within):
        if _trains_around(survey, scope, within):
            return None
        switched = any(each.to_evaluation for each in survey.switched(scope))
        feeds = any(rule_conventions.feeds_others(around.name) for around in scope.chain)
        if feeds or not (switched or is_named_so(scope)):
            return None
        return Confidence.LOW
    return Confidence.LOW if survey.model.matches(_COMPILES) else Confidence.HIGH


def may_be_compiled(survey: Survey, within: ast.AST) -> bool:
    """True if code may be compiled or traced, which some versions of torch cannot do in inference mode."""
    return _traces(within) or survey.model.matches(_COMPILES)


def _traces(within: ast.AST) -> bool:
    return any(isinstance(node, ast.Call) and last_name(node) in _TRACES for node in walk(within))


def _trains_around(survey: Survey, scope: Scope, within: ast.AST) -> bool:
    """True if the code around or after a `with` computes gradients: its loop or function, or the class of a trainer."""
    if within is scope.node:
        return False
    for outer in survey.model.ancestors(within):
        if isinstance(outer, LOOPS):
            return differentiates(survey.model, outer)
        if outer is scope.node:
            break
    below = (node for node in scope.node.body if node.lineno > getattr(within, "lineno", 0))
    if any(differentiates(survey.model, node) for node in below):
        return True
    return any(rule_conventions.returns_loss(other.name) for other in survey.siblings(scope))
