"""The code that runs with autograd off: contexts, decorators, switches and callers that suspend it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from perflint.rules.evaluation._scopes import OfFile, Scope, Survey, reached
from perflint.semantics.facts import rule_conventions
from perflint.semantics.memo import once, once_per_key, once_per_node
from perflint.semantics.structure import grouped, last_name, path_of, walk

_TORCHS_OWN = frozenset({"inference_mode", "no_grad"})


def speaks_of_autograd(node: ast.AST) -> bool:
    """True if a name in an expression suspends autograd, such as `torch.no_grad`."""
    for inner in walk(node):
        name = inner.attr if isinstance(inner, ast.Attribute) else inner.id if isinstance(inner, ast.Name) else ""
        if name and rule_conventions.suspends_autograd(name):
            return True
    return False


class Contexts(OfFile):
    """The contexts, decorators and switches of a file that concern autograd."""

    def suspended(self, scope: Scope, node: ast.AST) -> bool:
        """True if autograd is off, or is switched by a variable, where `node` runs in `scope`."""
        return self.suspended_in_text(scope, node) or scope in self._called_suspended

    def suspended_in_text(self, scope: Scope, node: ast.AST) -> bool:
        """The same, as far as the code around the node shows it."""
        if any(self._suspends(outer) for outer in self._around(node)):
            return True
        return any(self._switches_off(outer) for outer in scope.chain)

    def evaluates(self, node: ast.AST) -> bool:
        """True if a context manager or decorator around a node is named for evaluation and is not one of torch's."""
        for outer in self._around(node):
            for context in self._contexts_of(outer):
                name = last_name(context)
                if rule_conventions.is_evaluation_context(name) and name not in _TORCHS_OWN:
                    return True
        return False

    @cached_property
    def _called_suspended(self) -> set[Scope]:
        """The functions that the file calls, directly or through others, with autograd off; and those inside them."""
        survey = self._survey
        called = (
            scope
            for scope, calls in survey.callers.items()
            if any(caller is not scope and self.suspended_in_text(caller, call) for caller, call in calls)
        )
        return reached(called, lambda scope: (*survey.callees.get(scope, ()), *survey.nested(scope)))

    def _around(self, node: ast.AST) -> Iterable[ast.AST]:
        for outer in (node, *self._survey.model.ancestors(node)):
            if isinstance(outer, (ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield outer

    def _contexts_of(self, outer: ast.AST) -> list[ast.expr]:
        """The contexts that a statement enters; of a function its decorators, also those that are called behind it."""
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            return [item.context_expr for item in outer.items]
        return [*getattr(outer, "decorator_list", ()), *self._wrapping.get(getattr(outer, "name", ""), ())]

    @cached_property
    def _wrapping(self) -> dict[str, list[ast.expr]]:
        """The decorators that are called, by the name of the function: `evaluate = torch.no_grad()(evaluate)`."""
        made = ((path_of(each.targets[0]), each.value) for each in self._survey.model.nodes(ast.Assign))
        calls = ((name, value) for name, value in made if name.isidentifier() and isinstance(value, ast.Call))
        return grouped((name, call.func) for name, call in calls if [*map(path_of, call.args)] == [name])

    @once_per_node
    def _suspends(self, outer: ast.AST) -> bool:
        return any(map(self._is_suspending, self._contexts_of(outer)))

    def _is_suspending(self, expression: ast.expr) -> bool:
        if speaks_of_autograd(expression):
            return True
        name = last_name(expression)
        if isinstance(expression, ast.Call) or not isinstance(expression, ast.Name):
            return self._is_suspending_name(name)
        assigned = self._survey.model.symbols.variable(expression).assigned
        return any(map(speaks_of_autograd, assigned)) or self._is_suspending_name(name)

    @once_per_key
    def _is_suspending_name(self, name: str) -> bool:
        """A context manager or decorator of the project: by its body, or by its name if the file does not have it."""
        known = self._survey.by_name.get(name, ())
        found = any(speaks_of_autograd(statement) for scope in known for statement in scope.node.body)
        return found if known else bool(rule_conventions.is_evaluation_context(name))

    @once_per_key
    def _switches_off(self, scope: Scope) -> bool:
        """True if a function switches autograd itself, by a call or by a context on an exit stack."""
        return any(map(_switched_off, scope.calls))


@once
def contexts(survey: Survey) -> Contexts:
    """The contexts of a file."""
    return Contexts(survey)


def _switched_off(call: ast.Call) -> bool:
    """`torch.set_grad_enabled(…)` as a statement, or a context entered on an exit stack."""
    name = last_name(call)
    if name == "enter_context":
        return any(speaks_of_autograd(argument) for argument in call.args)
    return name in ("set_grad_enabled", "_set_grad_enabled")
