"""Where `torch.inference_mode` may stand for `torch.no_grad`."""

from __future__ import annotations

import ast
import re

from perflint.findings import Confidence
from perflint.rules.evaluation._escape import escapes
from perflint.rules.evaluation._loops import EVALUATING_WORDS, GENERATING_WORDS, wants_gradient
from perflint.rules.evaluation._runs import modes
from perflint.rules.evaluation._scopes import LOOPS, Scope, Survey, words
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
    calls = [node for node in walk(within) if isinstance(node, ast.Call)]
    if any(last_name(call) in _TRACES for call in calls):
        return None
    named = {word for around in scope.chain for word in words(around.name)}
    if escapes(survey, scope, within):
        if _trains_around(survey, scope, within):
            return None
        switched = any(mode.evaluating for mode in modes(survey, scope))
        if named & _FEEDS_OTHERS or not (switched or named & (EVALUATING_WORDS | GENERATING_WORDS)):
            return None
        return Confidence.LOW
    return Confidence.LOW if _COMPILES.search(survey.model.source.text) else Confidence.HIGH


def _trains_around(survey: Survey, scope: Scope, within: ast.AST) -> bool:
    """Whether what leaves a `with` goes on in code that computes gradients: its loop or function, a trainer's class."""
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
