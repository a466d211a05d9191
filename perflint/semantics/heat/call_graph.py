"""Which calls of a file call, or may call, each of its functions."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from perflint.semantics.callers.by_syntax import special_calls
from perflint.semantics.structure import is_of_super
from perflint.semantics.values import Function, Instance, Partial, Value

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred
    from perflint.semantics.structure import FunctionInfo


class CallGraph:
    """The calls of one file, by the functions of the file that they call."""

    def __init__(self, model: Inferred) -> None:
        # The model owns its graph: no circle, so that both go when the file is done.
        self._model: Inferred = weakref.proxy(model)

    def calls(self, info: FunctionInfo) -> list[ast.expr | ast.stmt]:
        """The places in this file that call a function, or may."""
        module = self._model.module.name
        if isinstance(info.node, ast.Lambda):
            return [*self._by_plain_name.get(self.bound_name(info.node), ())]
        known = list(self._callers.get(f"{module}.{info.qualname}", ()))
        if info.name == "__init__" and not self._model.is_module(Instance(f"{module}.{info.owner}")):
            # An object that is made in each step: a distribution, an output.
            known += self._callers.get(f"{module}.{info.owner}", ())
        elif info.owner and info.name != "__init__":
            known += self._callers.get("." + info.name, ())
            for base in self._model.lineage(f"{module}.{info.owner}")[1:]:
                # A call of the method that this one overrides.
                known += self._of_overridable.get(f"{base}.{info.name}", ())
        return known

    def given(self, info: FunctionInfo) -> list[ast.Call]:
        """The calls that are given a function to call: `optimizer.step(closure)`."""
        return self._given.get(f"{self._model.module.name}.{info.qualname}", [])

    def bound_name(self, node: ast.AST) -> str:
        """The plain name that a lambda is assigned to, or "" if there is none."""
        statement = self._model.parent(node)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        return target.id if isinstance(target, ast.Name) else ""

    @cached_property
    def _callers(self) -> dict[str, list[ast.expr | ast.stmt]]:
        """Calls by full name of the callee, or by the name of a method with a dot in front."""
        found: dict[str, list[ast.expr | ast.stmt]] = {}
        for node in self._model.nodes(ast.Call):
            for target in self._may_call(node):
                found.setdefault(target, []).append(node)
        for place, module, method, _ in special_calls(self._model):
            found.setdefault(f"{module.name}.{method.qualname}", []).append(place)
        return found

    @cached_property
    def _of_overridable(self) -> dict[str, list[ast.expr | ast.stmt]]:
        """Those calls that may run a method which overrides the callee."""
        return {name: [call for call in calls if not is_of_super(call)] for name, calls in self._callers.items()}

    @cached_property
    def _by_plain_name(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = {}
        for node in self._model.nodes(ast.Call):
            if isinstance(node.func, ast.Name):
                found.setdefault(node.func.id, []).append(node)
        return found

    @cached_property
    def _given(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = {}
        for node in self._model.nodes(ast.Call):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                if isinstance(argument, (ast.Name, ast.Attribute)):
                    value = self._model.value(argument)
                    if isinstance(value, Function):
                        found.setdefault(f"{value.module}.{value.qualname}", []).append(node)
        return found

    def _assigned_to(self, use: ast.Name) -> list[ast.expr]:
        """The attributes that the function around a name assigns to it: `init = self.compute`."""
        function = self._model.function(use)
        stored = self._attributes_by_name.get(use.id, ())
        return [value for value in stored if self._model.function(value) is function]

    @cached_property
    def _attributes_by_name(self) -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = {}
        assigned = [(node.targets[0], node.value) for node in self._model.nodes(ast.Assign)]
        assigned += [(node.target, node.value) for node in self._model.nodes(ast.AnnAssign) if node.value is not None]
        for target, value in assigned:
            if isinstance(value, ast.Attribute) and isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(value)
        return found

    def _functions_of(self, value: Value) -> Iterator[str]:
        """The full names of the functions that a value may be."""
        for member in value.members:
            function = member.function if isinstance(member, Partial) else member
            if isinstance(function, Function):
                yield f"{function.module}.{function.qualname}"

    def _may_call(self, node: ast.Call) -> Iterator[str]:
        """The full names that a call may call, and names of methods with a dot in front."""
        target = self._model.target(node)
        found = {*self._functions_of(self._model.value(node.func)), *([target] if target else [])}
        if not found and isinstance(node.func, ast.Name):
            # `init = self.compute`, then `init(config)`, where `init` may have been assigned something unknown too.
            found.update(*(self._functions_of(self._model.value(value)) for value in self._assigned_to(node.func)))
        yield from found
        if not target and isinstance(node.func, ast.Attribute) and node.func.attr not in ("train", "eval"):
            # A method of an unknown object: any method of this file with that name. Modes are set everywhere.
            yield "." + node.func.attr
        hook = node.args[0] if node.args else None
        if isinstance(hook, ast.Constant) and isinstance(hook.value, str) and "_" in hook.value:
            # `self.run_hooks("on_batch_end", loss)`.
            yield "." + hook.value
