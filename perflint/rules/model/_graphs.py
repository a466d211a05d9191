"""The inputs of the losses of a loop, as far as plain assignments show them: the parts of graphs that they share."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from perflint.rules._memory.flows import flow_around
from perflint.rules._memory.operators import records
from perflint.rules._methods import is_self_or_cls
from perflint.rules._operators import operators
from perflint.rules._turns import Call, call_in_loop, heads
from perflint.rules.transfer._loops import Loop
from perflint.semantics.around import inside
from perflint.semantics.binders import LOOPS
from perflint.semantics.dataflow.flow import Bound, Use
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.structure import grouped, keyword, names_in, walk
from perflint.semantics.values import Class, Const, DeviceValue, Dtype, Function, Instance, Scalar, Value

_LEAVES_GRAPH = frozenset("item detach detach_ tolist numpy data shape size dtype device ndim numel dim".split())
_TENSOR_METHODS = operators("graphs", "only_of_tensors")
_MOST = 200
"""Bindings and uses of one name that are followed."""
_HARMLESS = ("torch.", "numpy.", "builtins.", "random.", "math.", "time.")


class Turn:
    """One iteration of a loop, or a function that a loop calls, and the origins of its names."""

    def __init__(self, model: Model, loop: Loop | FunctionNode) -> None:
        self.model = model
        self.loop = loop
        self.flow = flow_around(model, loop if isinstance(loop, LOOPS) else first_of(loop))
        self.inner = set(walk(loop))
        if isinstance(loop, LOOPS):
            self.data = {name for target, _ in heads(model, loop) for name in names_in(target)}
        else:
            call = call_in_loop(model, loop)
            self.data = set() if call is None else _data_of_call(model, call)

    @cached_property
    def bindings(self) -> Mapping[str, list[Bound]]:
        """The values that names get in an iteration, by name."""
        return self._by_name(lambda node: node in self.inner and self.model.parent(node) is not self.loop)

    @cached_property
    def _before(self) -> Mapping[str, list[Bound]]:
        """The values that names get in the function outside of the loop."""
        return self._by_name(lambda node: isinstance(self.loop, LOOPS) and node not in self.inner)

    def _by_name(self, is_wanted: Callable[[ast.AST], bool]) -> Mapping[str, list[Bound]]:
        wanted = (bound for node, bound in self.flow.stored.items() if is_wanted(node))
        valued = (bound for bound in wanted if self._value(bound) is not None)
        return grouped((bound.name, bound) for bound in valued if not self._is_of_comprehension(bound))

    def _value(self, bound: Bound) -> ast.expr | None:
        """The expression that a name takes a value from; that which is added to it, if it is changed in place."""
        changed = self.model.parent(bound.node) if bound.node is not None else None
        return changed.value if isinstance(changed, ast.AugAssign) else bound.value

    def _is_of_comprehension(self, bound: Bound) -> bool:
        outer = inside(self.model, bound.node) if bound.node is not None else ()
        return any(isinstance(each, ast.comprehension) and each.iter is bound.value for each in outer)

    def origins(self, *expressions: ast.expr) -> set[str] | None:
        """The names, bound in this iteration, that expressions derive from with their graph.

        None if something older may come in with a graph: a name that an iteration hands to the next,
        a tensor from before the loop, an unknown attribute.
        """
        found: set[str] = set()
        waiting = [use for each in expressions for use in self._uses(each)]
        while waiting:
            use = waiting.pop()
            if not isinstance(use, ast.Name):
                if not self._is_plain(use):
                    return None
                continue
            bound = self.flow.used.get(use)
            if use.id in found or (bound is not None and self._is_of_comprehension(bound)):
                continue
            values, is_data = self.bindings.get(use.id), use.id in self.data
            if values is None:
                if not is_data and not self.is_fresh(use):
                    return None
                continue
            if not is_data and self._is_carried(use.id):
                return None
            found.add(use.id)
            waiting += [inner for value in values for inner in self._uses_of(value)]
        return found

    def with_graph(self, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """True if a name of this iteration may stand for more than data and fresh tensors."""
        if name in seen:
            return False
        for bound in self.bindings.get(name, ()):
            value = self._value(bound)
            if value is None or not records(self.model, value):
                continue
            for node in walk(value):
                if isinstance(node, ast.Call) and not self._is_harmless(node):
                    return True
                if isinstance(node, ast.keyword) and node.arg == "requires_grad":
                    return True
            uses = (use for use in self._uses(value) if isinstance(use, ast.Name))
            if any(self.with_graph(use.id, seen | {name}) for use in uses):
                return True
        return False

    def _uses_of(self, bound: Bound) -> list[ast.expr]:
        value = self._value(bound)
        return [] if value is None or not records(self.model, value) else list(self._uses(value))

    def _is_harmless(self, call: ast.Call) -> bool:
        """True if a call makes no graph of arguments that have none."""
        target = self.model.target(call)
        if target.startswith(_HARMLESS) and not target.startswith(("torch.nn.Module", "torch.nn.parallel")):
            return True
        # A method of data, such as `x.cuda()`.
        return isinstance(call.func, ast.Attribute) and call.func.attr in _TENSOR_METHODS | {"type", "size"}

    def _uses(self, node: ast.expr) -> Iterator[ast.expr]:
        """The names and attributes that an expression reads, except in operations whose results have no graph."""
        stack: list[ast.AST] = [node]
        while stack:
            each = stack.pop()
            if isinstance(each, ast.Attribute):
                if each.attr in _LEAVES_GRAPH:
                    continue
                if isinstance(each.value, ast.Name) and each.value.id not in (*self.bindings, *self.data):
                    yield each
                    continue
                stack.append(each.value)
            elif isinstance(each, ast.Call):
                target = self.model.target(each)
                if target.startswith("torch.") and target.endswith("_like"):
                    # Only the shape of its argument counts.
                    continue
                stack += each.args
                stack += [keyword.value for keyword in each.keywords]
                stack += self._called_on(each)
            elif isinstance(each, ast.Name):
                if isinstance(each.ctx, ast.Load):
                    yield each
            elif not isinstance(each, ast.Lambda):
                stack += ast.iter_child_nodes(each)

    def _called_on(self, call: ast.Call) -> list[ast.expr]:
        """The object of a method call, where it may be a tensor."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr in _LEAVES_GRAPH:
            return []
        owner = call.func.value
        root = next(iter(names_in(owner)), "") if isinstance(owner, ast.Name) else ""
        if root and root not in self.bindings and root not in self.data and call.func.attr not in _TENSOR_METHODS:
            return []
        if isinstance(owner, ast.Attribute) and call.func.attr not in _TENSOR_METHODS:
            return []
        return [owner]

    def _is_plain(self, node: ast.expr) -> bool:
        """True if something from outside of the loop has no graph: an object, a number, a function."""
        value: Value = self.model.value(node)
        if isinstance(value, (Instance, Const, Scalar, Function, Class, DeviceValue, Dtype)):
            return True
        if isinstance(node, ast.Attribute):
            return isinstance(self.model.value(node.value), Instance) and not is_self_or_cls(node.value)
        return False

    def is_fresh(self, node: ast.expr, depth: int = 6) -> bool:
        """True if something from before the loop, or made of what it iterates over, is data alone."""
        if isinstance(node, ast.Constant) or self._is_plain(node):
            return True
        if depth == 0:
            return False
        if isinstance(node, ast.Name):
            if node.id in self.data or node.id in self.bindings:
                own = self.origins(node)
                return own is not None and not any(map(self.with_graph, own))
            before = [value for bound in self._before.get(node.id, ()) if (value := self._value(bound)) is not None]
            fresh = (not records(self.model, value) or self.is_fresh(value, depth - 1) for value in before)
            return bool(before) and all(fresh)
        if isinstance(node, ast.Attribute):
            return node.attr in _LEAVES_GRAPH
        if isinstance(node, ast.Call):
            return self._is_fresh_call(node, depth)
        parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        arithmetic = isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Tuple, ast.List, ast.Slice))
        return arithmetic and all(self.is_fresh(each, depth - 1) for each in parts)

    def _is_fresh_call(self, call: ast.Call, depth: int) -> bool:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _LEAVES_GRAPH:
            return True
        given = [*call.args, *(each.value for each in call.keywords)]
        if keyword(call, "requires_grad") is not None or not self._is_harmless(call):
            return False
        if isinstance(call.func, ast.Attribute) and not self.model.target(call).startswith(_HARMLESS):
            given.append(call.func.value)
        return all(self.is_fresh(each, depth - 1) for each in given)

    def _is_carried(self, name: str) -> bool:
        """True if an iteration may read, with its graph, the value that a name has when it begins."""
        older = [bound for bound in self.flow.bounds if bound.name == name and self._is_older(bound)]
        reached = (self.flow.reach(bound, _MOST) for bound in older)
        return any(reach is None or any(map(self._reads_graph, reach.uses)) for reach in reached)

    def _reads_graph(self, use: Use) -> bool:
        outer = self.model.parent(use)
        return use in self.inner and not (isinstance(outer, ast.Attribute) and outer.attr in _LEAVES_GRAPH)

    def _is_older(self, bound: Bound) -> bool:
        """True for the value with which an iteration begins."""
        return bound.loop is self.loop or (bound.node in self.inner and isinstance(bound.node, ast.arg))


def _data_of_call(model: Model, call: Call) -> set[str]:
    """The names in a function that a loop calls which stand for new tensors, or for what the loop iterates over."""
    around = Turn(model, call.loop)
    passed = {name for name, value in call.given.items() if around.is_fresh(value)}
    return passed | {name for name in around.data - call.given.keys() if not around.with_graph(name)}


def first_of(function: FunctionNode) -> ast.AST:
    """The first part of the body of a function."""
    return function.body if isinstance(function, ast.Lambda) else function.body[0]
