"""Where `torch.inference_mode` may stand for `torch.no_grad`."""

from __future__ import annotations

import ast
import re

from perflint.findings import Confidence
from perflint.rules._says import says
from perflint.rules.evaluation._leaving import leaves
from perflint.rules.evaluation._regions import GENERATING_WORDS
from perflint.rules.evaluation._scopes import LOOPS, Scope, Survey, words
from perflint.rules.evaluation._training import EVALUATING_WORDS, wants_gradient
from perflint.semantics.structure import last_name, walk

_FEEDS_OTHERS = frozenset(
    {"embed", "embedding", "embeddings", "encode", "extract", "feature", "features", "teacher", "target"}
)
_LOSSES = frozenset({"_compute_loss", "compute_loss", "training_step"})
"""Methods of trainers that return what is backpropagated."""
_TRACES = frozenset({"export", "make_graphed_callables", "script", "trace"})
_COMPILES = re.compile(r"\btorch\s*\.\s*compile\b|\bcompile_model\b|\.compile\(")


def fits(survey: Survey, scope: Scope, within: ast.AST) -> Confidence | None:
    """How sure it is that `within` can run in inference mode; None where it had better not.

    High where no tensor leaves it, low where tensors may, by a function that is named as
    evaluations or generators are.
    """
    if _traces(within):
        return None
    named = {word for around in scope.chain for word in words(around.name)}
    if leaves(survey, scope, within):
        if _trains_around(survey, scope, within):
            return None
        switched = any(each.to_evaluation for each in survey.switched(scope))
        if named & _FEEDS_OTHERS or not (switched or named & (EVALUATING_WORDS | GENERATING_WORDS)):
            return None
        return Confidence.LOW
    return Confidence.LOW if says(survey.model.source.text, _COMPILES) else Confidence.HIGH


def may_be_compiled(survey: Survey, within: ast.AST) -> bool:
    """True if code may be compiled or traced, which some versions of torch cannot do in inference mode."""
    return _traces(within) or says(survey.model.source.text, _COMPILES)


def _traces(within: ast.AST) -> bool:
    return any(isinstance(node, ast.Call) and last_name(node) in _TRACES for node in walk(within))


def _trains_around(survey: Survey, scope: Scope, within: ast.AST) -> bool:
    """True if what leaves a `with` goes on in code that computes gradients: its loop or function, a trainer's class."""
    if within is scope.node:
        return False
    for outer in survey.model.ancestors(within):
        if isinstance(outer, LOOPS):
            return wants_gradient(survey, outer)
        if outer is scope.node:
            break
    below = (node for node in scope.node.body if node.lineno > getattr(within, "lineno", 0))
    if any(wants_gradient(survey, node) for node in below):
        return True
    return any(other.name in _LOSSES for other in survey.siblings(scope))
