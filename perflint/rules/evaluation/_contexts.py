"""Where autograd is off: contexts, decorators, switches and callers that suspend it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from perflint.rules.evaluation._scopes import Scope, Survey, dotted
from perflint.semantics.structure import last_name, walk

_SUSPENDS = re.compile(
    r"no_?grad|inference|grad_mode|grad_enabled|enable_grad|without_grad|disable_grad", re.IGNORECASE
)
_EVALUATES = re.compile(r"eval|infer", re.IGNORECASE)
_TORCHS_OWN = frozenset({"inference_mode", "no_grad"})
_MOST_CALLERS_UP = 4


def speaks_of_autograd(node: ast.AST) -> bool:
    """Whether a name in an expression is one that suspends autograd, such as `torch.no_grad`."""
    for inner in walk(node):
        name = inner.attr if isinstance(inner, ast.Attribute) else inner.id if isinstance(inner, ast.Name) else ""
        if name and _SUSPENDS.search(name):
            return True
    return False


def suspended(survey: Survey, scope: Scope, node: ast.AST) -> bool:
    """Whether autograd is off, or is switched by a variable, where `node` runs in `scope`."""
    return suspended_in_text(survey, scope, node) or _suspended_by_callers(survey, scope, _MOST_CALLERS_UP)


def in_context_that_evaluates(survey: Survey, node: ast.AST) -> bool:
    """Whether a context manager or decorator around a node is named for evaluation, and is none of torch's own."""
    for context in _contexts_around(survey, node):
        name = last_name(context)
        if _EVALUATES.search(name) and name not in _TORCHS_OWN:
            return True
    return False


def suspended_in_text(survey: Survey, scope: Scope, node: ast.AST) -> bool:
    """The same, as far as the code around the node shows it."""
    if any(_is_suspending(survey, scope, context) for context in _contexts_around(survey, node)):
        return True
    return any(_switched_off(call) for around_it in scope.chain for call in around_it.calls)


def _contexts_around(survey: Survey, node: ast.AST) -> Iterable[ast.expr]:
    for outer in (node, *survey.model.ancestors(node)):
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            yield from (item.context_expr for item in outer.items)
        elif isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from outer.decorator_list


def _switched_off(call: ast.Call) -> bool:
    """`torch.set_grad_enabled(…)` as a statement, or a context entered on an exit stack."""
    name = last_name(call)
    if name == "enter_context":
        return any(speaks_of_autograd(argument) for argument in call.args)
    return name in ("set_grad_enabled", "_set_grad_enabled")


def _is_suspending(survey: Survey, scope: Scope, expression: ast.expr) -> bool:
    if speaks_of_autograd(expression):
        return True
    name = last_name(expression)
    if isinstance(expression, ast.Call) or not isinstance(expression, ast.Name):
        return _is_suspending_name(survey, name)
    assigned = [value for around in scope.chain for value in _assigned_to(around, name)]
    return any(speaks_of_autograd(value) for value in assigned) or _is_suspending_name(survey, name)


def _is_suspending_name(survey: Survey, name: str) -> bool:
    """A context manager or decorator of the project: by what it does, or by its name where that is not seen."""
    known = survey.by_name.get(name)
    if known:
        return any(speaks_of_autograd(statement) for scope in known for statement in scope.node.body)
    return bool(_EVALUATES.search(name))


def _assigned_to(scope: Scope, name: str) -> Iterable[ast.expr]:
    for node in scope.nodes:
        if isinstance(node, ast.Assign) and any(dotted(target) == name for target in node.targets):
            yield node.value


def _suspended_by_callers(survey: Survey, scope: Scope, depth: int) -> bool:
    """Whether somebody in the file calls the function, or one around it, with autograd off."""
    if depth == 0:
        return False
    for inner in scope.chain:
        for caller, call in survey.callers.get(inner, ()):
            if caller is inner:
                continue
            if suspended_in_text(survey, caller, call) or _suspended_by_callers(survey, caller, depth - 1):
                return True
    return False
