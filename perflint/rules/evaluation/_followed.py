"""The one function of a file that a call runs, if no other code can stand in for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from perflint.rules.evaluation._scopes import Scope, Survey
from perflint.semantics.binders import How
from perflint.semantics.memo import once
from perflint.semantics.structure import last_name

_KEEPS_SIGNATURE = frozenset(
    {"classmethod", "compile", "inference_mode", "no_grad", "script", "staticmethod", "torch_compile"}
)
_PLAIN_BASES = frozenset({"ABC", "Generic", "Module", "Protocol", "object"})
"""Bases that override no method of the file's classes."""
_DEEPEST = 16
"""The bases of a class are followed this far; a deeper class may derive from any other."""


class _Dispatch:
    """The functions of a file that a call is sure to run."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._certain: dict[Scope, bool] = {}
        self._ancestors: dict[ast.ClassDef, frozenset[str] | None] = {}

    def function(self, call: ast.Call) -> Scope | None:
        """The function or method that a call runs; None if another may run."""
        found = self._method(call) if isinstance(call.func, ast.Attribute) else self._plain(call)
        if found is None or isinstance(found.node, ast.Module):
            return None
        return found if all(last_name(each) in _KEEPS_SIGNATURE for each in found.node.decorator_list) else None

    # Functions

    def _plain(self, call: ast.Call) -> Scope | None:
        """The function that a name stands for, if all other bindings of the name keep it: `step = compile(step)`."""
        if not isinstance(call.func, ast.Name):
            return None
        bindings = self._survey.model.symbols.variable(call.func).bindings
        defined = [binding.node for binding in bindings if binding.how is How.DEFINITION]
        if len(defined) != 1 or not all(self._is_wrapper(each.node) for each in bindings if each.node not in defined):
            return None
        named = self._survey.by_name.get(call.func.id, ())
        return next((scope for scope in named if scope.node is defined[0] and scope.owner is None), None)

    def _is_wrapper(self, target: ast.AST) -> bool:
        around = self._survey.model.parent(target)
        if not isinstance(around, ast.Assign) or not isinstance(around.value, ast.Call):
            return False
        if last_name(around.value) not in _KEEPS_SIGNATURE or len(around.value.args) != 1:
            return False
        return last_name(around.value.args[0]) == last_name(target)

    # Methods

    def _method(self, call: ast.Call) -> Scope | None:
        found = self._survey.own_method(call)
        if found is None:
            return None
        if found not in self._certain:
            self._certain[found] = self._is_certain(found)
        return found if self._certain[found] else None

    def _is_certain(self, method: Scope) -> bool:
        """True if no subclass in the file overrides a method, and no attribute of its name is assigned to."""
        owner = method.owner
        if owner is None or is_abstract(method) or method.name in self._assigned_attributes:
            return False
        others = [scope for scope in self._survey.by_name[method.name] if scope is not method and scope.owner]
        if any(scope.owner is owner for scope in others):
            return False
        relatives = self._relatives.get(owner.name, frozenset())
        overriding = {scope.owner.name for scope in others if scope.owner is not None} | self._in_bodies(method.name)
        return relatives is not None and not overriding & relatives

    @cached_property
    def _relatives(self) -> dict[str, frozenset[str] | None]:
        """The classes of the file that objects of a class may be of as well, by its name; None if some are unseen."""
        found: dict[str, set[str] | None] = {}
        for node in self._survey.all(ast.ClassDef):
            lineage = self._lineage(node)
            if lineage is None:
                return dict.fromkeys(self._survey.classes)
            for name in lineage:
                own = self._lineage(self._survey.classes[name]) if name in self._survey.classes else None
                if own is None:
                    continue
                others = (lineage | {node.name}) - own - {name, ""}
                known = found.setdefault(name, set())
                if any(other not in self._survey.classes and other not in _PLAIN_BASES for other in others):
                    found[name] = None
                elif known is not None:
                    known |= others
        return {name: None if each is None else frozenset(each) for name, each in found.items()}

    def _lineage(self, node: ast.ClassDef) -> frozenset[str] | None:
        """The names of all bases of a class; None if there are too many."""
        if node not in self._ancestors:
            self._ancestors[node] = self._bases(node)
        return self._ancestors[node]

    def _bases(self, node: ast.ClassDef) -> frozenset[str] | None:
        found: set[str] = set()
        waiting = [node]
        while waiting:
            for name in map(last_name, waiting.pop().bases):
                if name not in found:
                    found.add(name)
                    if name in self._survey.classes:
                        waiting.append(self._survey.classes[name])
            if len(found) > _DEEPEST:
                return None
        return frozenset(found)

    def _in_bodies(self, name: str) -> set[str]:
        """The classes whose body assigns to a name: `note = other`."""
        return self._body_names.get(name, set())

    @cached_property
    def _body_names(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for node in self._survey.all(ast.ClassDef):
            for statement in node.body:
                for target in statement.targets if isinstance(statement, ast.Assign) else []:
                    found.setdefault(last_name(target), set()).add(node.name)
        return found

    @cached_property
    def _assigned_attributes(self) -> set[str]:
        """The attributes that the file assigns to, by name: `self.note = note`, `setattr(self, "note", note)`."""
        found = {node.attr for node in self._survey.all(ast.Attribute) if isinstance(node.ctx, ast.Store)}
        for call in self._survey.all(ast.Call):
            if last_name(call) == "setattr" and len(call.args) == 3:
                name = call.args[1]
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    found.add(name.value)
        return found


@once
def _dispatch(survey: Survey) -> _Dispatch:
    return _Dispatch(survey)


def followed(survey: Survey, call: ast.Call) -> Scope | None:
    """The one function of the file that a call runs; None if it may be another, or a decorator changes it."""
    return _dispatch(survey).function(call)


def passed(call: ast.Call, function: Scope) -> Iterator[tuple[ast.expr, ast.arg | None]]:
    """The arguments of a call with the parameters that they are bound to, or None if unknown."""
    assert not isinstance(function.node, ast.Module)
    args = function.node.args
    positional = [*args.posonlyargs, *args.args]
    is_static = any(last_name(each) == "staticmethod" for each in function.node.decorator_list)
    if function.owner is not None and not is_static:
        positional = positional[1:]
    by_name: dict[str | None, ast.arg] = {arg.arg: arg for arg in (*positional, *args.kwonlyargs)}
    is_open = False
    for index, given in enumerate(call.args):
        is_open = is_open or isinstance(given, ast.Starred)
        yield given, positional[index] if index < len(positional) and not is_open else None
    for keyword in call.keywords:
        yield keyword.value, by_name.get(keyword.arg)


def is_abstract(function: Scope) -> bool:
    """True if a function is only declared: its body is a docstring, `pass`, `...` or a `raise`."""
    return all(
        isinstance(each, (ast.Pass, ast.Raise)) or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in function.node.body
    )
