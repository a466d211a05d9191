"""Fixes that turn autograd off if it is proven that no gradient is lost."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import takewhile

from perflint.findings import Edit, Fix, Safety, Span
from perflint.fixes.edits import under
from perflint.fixes.imports import spell
from perflint.rules._since import INFERENCE_MODE
from perflint.rules.evaluation._graph import Fate
from perflint.rules.evaluation._inference import may_be_compiled
from perflint.rules.evaluation._leaving import may_leave
from perflint.rules.evaluation._proof import Proofs, proofs
from perflint.rules.evaluation._regions import Region
from perflint.rules.evaluation._runs import mode_at
from perflint.rules.evaluation._scopes import Scope, Survey
from perflint.rules.evaluation._scopes import survey as survey_of
from perflint.semantics.around import statement_of
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, path_of, walk
from perflint.source.concrete import code, cst

_SHOW = frozenset(("builtins.print", "builtins.str", "builtins.repr"))
_COMPILED = frozenset({"compile", "script", "export", "script_method"})
_FURTHER = ("TPF502",)
"""If `no_grad` is right, inference mode may be better still."""
_NOTHING_LEAVES = "no value that has a gradient leaves the function"
_NOTHING_USED = "no gradient of what the statement computes is used"
_NOTHING_COMES_IN = "no optimizer gets the parameters of the model, and its input has no gradient"


def decorate(region: Region) -> Fix | None:
    """Put `@torch.inference_mode()`, or `@torch.no_grad()` if tensors leave, above a function that only evaluates.

    None for loops inside other code, coroutines, generators and functions that a compiler reads, and if it is not
    proven that no gradient is lost.
    """
    survey, scope = region.survey, region.scope
    function = scope.node
    info = survey.model.module.defined_by(function)
    if region.loop is not None or not isinstance(function, ast.FunctionDef) or info is None or info.is_generator:
        return None
    if any(last_name(decorator) in _COMPILED for decorator in function.decorator_list):
        return None
    if not _is_proven(survey, scope, lambda proof, scope: proof.function(scope, is_evaluation=region.switched)):
        return None
    context = context_of(region)
    spelling = spell(survey.model.symbols, f"torch.{context}", function)
    if spelling is None:
        return None
    source = survey.model.source
    column = source.column(function.lineno, function.col_offset)
    line = source.lines[function.lineno - 1]
    decorator = cst.Decorator(cst.parse_expression(f"{spelling.text}()"))
    text = code(decorator).rstrip("\n") + ("\r\n" if line.endswith("\r\n") else "\n") + line[: column - 1]
    place = Span(function.lineno, column, function.lineno, column)
    since = INFERENCE_MODE if context == "inference_mode" else None
    message, edits = f"Decorate `{function.name}` with `@{spelling.text}()`", (Edit(place, text),)
    return Fix(message, Safety.RISKY, edits, spelling.imports, _FURTHER, since, _NOTHING_LEAVES)


def _is_proven(survey: Survey, scope: Scope, ask: Callable[[Proofs, Scope], bool]) -> bool:
    """True if there is a proof by the callers that are known, and one that holds whatever other files pass."""
    if not ask(proofs(survey), scope):
        return False
    for_any = survey_of(survey.model.for_any_caller)
    return ask(proofs(for_any), for_any.scope_around(scope.node.body[0]))


def context_of(region: Region) -> str:
    """The context to evaluate in: `no_grad` if code that is not seen may use a tensor later, else inference mode."""
    survey, scope = region.survey, region.scope
    if may_be_compiled(survey, region.node):
        return "no_grad"
    leaves = may_leave(survey, scope, region.node, Fate.RETURNED | Fate.STORED | Fate.PASSED)
    return "no_grad" if leaves else "inference_mode"


def under_no_grad(survey: Survey, scope: Scope, call: ast.Call, is_untrained: bool) -> Fix | None:
    """Put the statement around a run under `with torch.no_grad():`.

    None unless it is a plain statement on lines of its own, and it is proven that no gradient is lost.
    """
    statement = statement_of(survey.model, call)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)):
        return None
    if statement.value is None or not any(node is call for node in walk(statement.value)):
        return None
    if survey.model.function(call) is not survey.model.function(statement) or _runs_later(survey.model, call):
        return None
    is_in_training = mode_at(scope, call, path_of(call.func)) is False
    if is_in_training or (statement.value is call and _is_shown(survey.model, statement)):
        # The run shows what a step of training does, or what a graph looks like.
        return None
    if not _is_proven(survey, scope, lambda proof, scope: proof.statement(scope, statement)):
        return None
    spelling = spell(survey.model.symbols, "torch.no_grad", statement)
    edits = None if spelling is None else under(survey.model.source, [statement], f"with {spelling.text}():")
    if edits is None or spelling is None:
        return None
    text, proof = f"Put it under `with {spelling.text}():`", _NOTHING_COMES_IN if is_untrained else _NOTHING_USED
    return Fix(text, Safety.RISKY, edits, spelling.imports, _FURTHER, proof=proof)


def _is_shown(model: Model, statement: ast.Assign | ast.AnnAssign | ast.Return) -> bool:
    """True if the value of a statement is printed as a whole: a tensor with a graph prints its `grad_fn`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    around = model.function(statement) or model.source.tree
    return any(_prints(model, use) for name in names for use in model.names(around, name))


def _prints(model: Model, use: ast.Name) -> bool:
    outer = model.parent(use)
    if isinstance(outer, ast.FormattedValue):
        return outer.format_spec is None
    return isinstance(outer, ast.Call) and use in outer.args and model.target(outer) in _SHOW


def _runs_later(model: Model, call: ast.Call) -> bool:
    """True if a call runs when a generator is used, which may be outside of the context."""
    around = takewhile(lambda outer: not isinstance(outer, ast.stmt), model.ancestors(call))
    return any(isinstance(each, ast.GeneratorExp) and not isinstance(model.parent(each), ast.Call) for each in around)
