"""The inputs of the losses of a loop, as far as plain assignments show them: the parts of graphs that they share."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from perflint.frozen import dataclass
from perflint.rules._memory.flows import body_around
from perflint.rules._methods import is_self_or_cls
from perflint.rules._turns import Call, call_in_loop, heads
from perflint.rules.transfer._loops import Loop
from perflint.semantics.around import inside
from perflint.semantics.binders import LOOPS
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.structure import keyword, names_in, walk
from perflint.semantics.values import Class, Const, DeviceValue, Dtype, Function, Instance, Scalar, Value

_LEAVES_GRAPH = frozenset("item detach detach_ tolist numpy data shape size dtype device ndim numel dim".split())
_NO_GRADIENT = ("no_grad", "inference_mode")
_TENSOR_METHODS = frozenset(
    "abs clone cpu cuda exp flatten float log max mean min mul pow reshape sqrt square squeeze sum t to "
    "transpose unsqueeze view".split()
)
_HARMLESS = ("torch.", "numpy.", "builtins.", "random.", "math.", "time.")


@dataclass(frozen=True, slots=True)
class Binding:
    """A place in a loop that binds a name, and the expression that it takes the value from."""

    statement: ast.AST
    value: ast.expr
    certain: bool
    """True if each iteration of the loop comes by, before it goes on."""


class Turn:
    """One iteration of a loop, or a function that a loop calls, and the origins of its names."""

    def __init__(self, model: Model, loop: Loop | FunctionNode) -> None:
        self.model = model
        self.loop = loop
        if isinstance(loop, LOOPS):
            self.data = {name for target, _ in heads(model, loop) for name in names_in(target)}
        else:
            call = call_in_loop(model, loop)
            self.data = set() if call is None else _data_of_call(model, call)

    @cached_property
    def bindings(self) -> dict[str, list[Binding]]:
        """The bindings in the body of the loop, in source order."""
        found: dict[str, list[Binding]] = {}
        for node in walk(self.loop):
            for name, value in _bound(node):
                if node is not self.loop:
                    found.setdefault(name, []).append(Binding(node, value, self._is_certain(node, name)))
        for places in found.values():
            places.sort(key=lambda each: (each.value.lineno, each.value.col_offset))
        return found

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
            if use.id in found:
                continue
            places, is_data = self.bindings.get(use.id), use.id in self.data
            if places is None:
                if not is_data and not self.is_fresh(use) and not self._is_local_to_comprehension(use):
                    return None
                continue
            if not is_data and self._is_carried(use.id, places):
                return None
            found.add(use.id)
            waiting += [inner for place in places for inner in self._uses_of(place)]
        return found

    def with_graph(self, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """True if a name of this iteration may stand for more than data and fresh tensors."""
        if name in seen:
            return False
        for place in self.bindings.get(name, ()):
            if self._is_off(place.statement):
                continue
            for node in walk(place.value):
                if isinstance(node, ast.Call) and not self._is_harmless(node):
                    return True
                if isinstance(node, ast.keyword) and node.arg == "requires_grad":
                    return True
            if any(self.with_graph(use.id, seen | {name}) for use in self._names(place)):
                return True
        return False

    def _names(self, place: Binding) -> Iterator[ast.Name]:
        yield from (use for use in self._uses_of(place) if isinstance(use, ast.Name))

    def _uses_of(self, place: Binding) -> list[ast.expr]:
        return [] if self._is_off(place.statement) else list(self._uses(place.value))

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
                if isinstance(each.value, ast.Name) and each.value.id not in self.bindings | dict.fromkeys(self.data):
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

    @cached_property
    def _before(self) -> dict[str, list[Binding]]:
        """The bindings of the function outside of the loop."""
        found: dict[str, list[Binding]] = {}
        if not isinstance(self.loop, LOOPS):
            return found
        inner = set(walk(self.loop))
        for node in walk(body_around(self.model, self.loop)):
            if node not in inner:
                for name, value in _bound(node):
                    found.setdefault(name, []).append(Binding(node, value, True))
        return found

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
            places = self._before.get(node.id, [])
            return bool(places) and all(
                self._is_off(place.statement) or self.is_fresh(place.value, depth - 1) for place in places
            )
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

    def _is_local_to_comprehension(self, use: ast.Name) -> bool:
        for outer in inside(self.model, use):
            for generator in getattr(outer, "generators", ()):
                if use.id in names_in(generator.target):
                    return True
        return False

    def _is_carried(self, name: str, places: list[Binding]) -> bool:
        """True if an iteration may read the value that the iteration before it gave to a name."""
        first = places[0]
        own = {use.id for use in self._uses_of(first) if isinstance(use, ast.Name)}
        if name in own or isinstance(first.statement, ast.AugAssign):
            return True
        if not first.certain and not self._is_read_in_branch(name, first):
            return True
        start = (first.value.lineno, first.value.col_offset)
        reads = (node for node in walk(self.loop) if isinstance(node, ast.Name) and node.id == name)
        return any(isinstance(read.ctx, ast.Load) and (read.lineno, read.col_offset) < start for read in reads)

    def _is_read_in_branch(self, name: str, place: Binding) -> bool:
        """True if a name that one branch binds is read in that branch alone."""
        inner: ast.AST = place.statement
        for outer in inside(self.model, place.statement):
            if isinstance(outer, ast.If):
                branch = outer.body if inner in outer.body else outer.orelse
                within = {part for each in branch for part in walk(each)}
                return not any(
                    isinstance(node, ast.Name) and node.id == name and node not in within for node in walk(self.loop)
                )
            inner = outer
        return False

    def _is_certain(self, node: ast.AST, name: str) -> bool:
        inner = node
        for outer in inside(self.model, node):
            if outer is self.loop:
                return True
            if isinstance(outer, ast.If):
                other = outer.orelse if inner in outer.body else outer.body
                if not any(name == bound for each in other for part in walk(each) for bound, _ in _bound(part)):
                    return False
            elif isinstance(outer, (ast.Try, ast.While)):
                return False
            inner = outer
        return not isinstance(self.loop, LOOPS)

    def _is_off(self, node: ast.AST) -> bool:
        """True if autograd is off where a statement runs."""
        for outer in inside(self.model, node):
            if isinstance(outer, (ast.With, ast.AsyncWith)):
                said = " ".join(ast.unparse(item.context_expr) for item in outer.items)
                if any(word in said for word in _NO_GRADIENT):
                    return True
        return False


def _data_of_call(model: Model, call: Call) -> set[str]:
    """The names in a function that a loop calls which stand for new tensors, or for what the loop iterates over."""
    around = Turn(model, call.loop)
    passed = {name for name, value in call.given.items() if around.is_fresh(value)}
    return passed | {name for name in around.data - call.given.keys() if not around.with_graph(name)}


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that a node binds, each with the expression behind it."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from ((name, node.value) for name in _stored(target))
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
        if node.value is not None:
            yield from ((name, node.value) for name in _stored(node.target))
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from ((name, node.iter) for name in _stored(node.target))
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if item.optional_vars is not None:
                yield from ((name, item.context_expr) for name in _stored(item.optional_vars))


def _stored(target: ast.expr) -> Iterator[str]:
    yield from (each.id for each in walk(target) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
