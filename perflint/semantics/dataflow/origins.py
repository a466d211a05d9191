"""The origin of the tensor in an expression: a parameter, a batch, the result of a model, a call that made it.

`reasons` walks the same way back and reports each step. `Origins` returns the end of the way only, as a value that
rules can test, and quickly: the bindings of each scope are collected once.
"""

from __future__ import annotations

import ast
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING

from perflint.frozen import dataclass
from perflint.semantics.binders import COMPREHENSIONS, LOOPS, Binding, How, binding_of, own_nodes, parameters
from perflint.semantics.dataflow.definitions import excludes, ways_out
from perflint.semantics.explain.phrases import why
from perflint.semantics.memo import remembered
from perflint.semantics.structure import GROWS, FunctionNode, last_name, path_of, stands_in
from perflint.semantics.values import Const, Instance, Mapping, Never, Scalar, Sequence, Tensor, Value

if TYPE_CHECKING:
    from perflint.semantics.heated import Heated

_LONGEST_WAY = 12
_MOVES = frozenset({"to", "cuda", "cpu"})
_VIEWS = frozenset({"items", "values"})
_WRAPPERS = frozenset({"enumerate", "zip", "list", "tuple", "iter", "reversed", "sorted", "tqdm"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef)


class Source(Enum):
    """The origin of a tensor."""

    PARAMETER = "parameter"
    """A parameter of the function around it."""
    BATCH = "batch"
    """The batches of a loader."""
    ELEMENT = "element"
    """The elements of something that a loop iterates over."""
    MODEL = "model"
    """The result of running a module."""
    CALL = "call"
    """The result of another function."""
    MADE = "made"
    """The result of a torch function without tensors as arguments: `torch.zeros(8)`."""
    MOVED = "moved"
    """`.to(device)`, `.cuda()` or `.cpu()` of something that was elsewhere."""
    STATE = "state"
    """An attribute of an object, such as a parameter or buffer of a module."""
    LITERAL = "literal"
    """A number, or a list or tuple that is written out."""
    OUTSIDE = "outside"
    """A name of another scope that no binding was found for."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The end of the way back from an expression."""

    source: Source
    node: ast.expr | ast.arg
    """The expression that the tensor comes from, or the parameter."""
    name: str
    """The name in the expression that the way begins with; "" if it begins with none."""
    root: str
    """The last name on the way: the parameter, the batch, or the name that the result was bound to."""
    line: int
    is_computed: bool = False
    """True if an operation lies on the way: the expression is then not the origin itself."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """The bindings of one path in one scope, and the places from which on each holds, in order."""

    places: list[tuple[int, int]]
    bindings: list[Binding]
    additions: list[Binding]
    """The code that adds to its value: `x += y`, `x[k] = y`, `x.append(y)`."""


class Origins:
    """The origins of the tensors of one file."""

    def __init__(self, model: Heated) -> None:
        self._model: Heated = weakref.proxy(model)

    def of(self, node: ast.expr) -> Origin:
        """The origin of the tensor in an expression."""
        current, first, root, is_computed = node, "", "", False

        def end(source: Source, at: ast.expr | ast.arg, line: int) -> Origin:
            return Origin(source, at, first, root, line, is_computed)

        seen: set[ast.expr] = set()
        while current not in seen and len(seen) < _LONGEST_WAY:
            seen.add(current)
            path = path_of(current) if isinstance(current, (ast.Name, ast.Attribute)) else ""
            if path:
                if not first:
                    first, is_computed = path, False
                root = path
                found = self._binding(current, path)
                if isinstance(found, ast.arg):
                    return end(Source.PARAMETER, found, found.lineno)
                if found is None:
                    following = self._receiver(current)
                    if following is None:
                        source = Source.STATE if isinstance(current, ast.Attribute) else Source.OUTSIDE
                        return end(source, current, current.lineno)
                    current = following
                    continue
                if found.value is None or found.how is How.WITH:
                    return end(Source.OUTSIDE, current, found.line)
                is_computed = is_computed or found.how is How.AUGMENTED
                is_element = found.how in (How.LOOP, How.COMPREHENSION)
                if is_element and self._model.is_over_batches(found.value):
                    return end(Source.BATCH, self.iterated(found.value, self._places(found.node)), found.line)
                current = found.value
                if is_element and not isinstance(self._model.value(found.value), Tensor):
                    held = self._held(found.node, found.value)
                    if self._model.is_over_batches(held):
                        return end(Source.BATCH, held, found.line)
                    if path_of(held) in ("", root):
                        return end(Source.ELEMENT, found.value, found.line)
                    current = held
                continue
            source, following = self._step(current)
            if source is Source.BATCH and following is not None:
                return end(source, following, current.lineno)
            if following is None:
                return end(source, current, current.lineno)
            is_computed = is_computed or isinstance(current, _OPERATIONS)
            if isinstance(current, ast.BinOp) and path_of(following) == root:
                # `total = total + x`: the total comes from its parts.
                other = current.right if following is current.left else current.left
                following = other if self._model.value(other).tensor is not None else following
            current = following
        return end(Source.CALL, current, current.lineno)

    def iterated(self, node: ast.expr, places: Iterable[int] = ()) -> ast.expr:
        """The loader whose batches a loop gets: `loader` of `enumerate(tqdm(loader))`, and of a name for that.

        `places` are those of a name in the tuples of the loop's target, as `_places` gives them: `zip` has a loader
        for each.
        """
        left = [*places]
        while True:
            inner = node
            if isinstance(node, ast.Name):
                found = self._binding(node, node.id)
                is_whole = isinstance(found, Binding) and found.how is How.ASSIGNED and found.whole
                inner = found.value if is_whole and isinstance(found, Binding) and found.value is not None else node
            if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Name) or not inner.args:
                return node
            given = inner.args[self._argument(inner.func.id, left, len(inner.args))]
            if isinstance(given, ast.Starred) or not self._model.is_over_batches(given):
                return node
            node = given

    def _step(self, node: ast.expr) -> tuple[Source, ast.expr | None]:
        """The origin of an expression other than a name, or the expression inside it that decides."""
        if isinstance(node, (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict)):
            return Source.LITERAL, None
        if isinstance(node, ast.Call):
            return self._call(node)
        _, following = why(self._model, node)
        return Source.CALL, following

    def _call(self, node: ast.Call) -> tuple[Source, ast.expr | None]:
        target, method = self._model.target(node), node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if target == "builtins.next" and node.args and self._model.is_over_batches(node.args[0]):
            return Source.BATCH, self.iterated(node.args[0])
        if target == "torch.nn.Module.__call__":
            return Source.MODEL, None
        if method in _MOVES and isinstance(node.func, ast.Attribute) and self._moves(node, node.func.value):
            return Source.MOVED, None
        if target.startswith("torch.Tensor.") and isinstance(node.func, ast.Attribute):
            return Source.CALL, node.func.value
        _, following = why(self._model, node)
        if following is not None and (self._model.value(following).tensor is not None or not target):
            return Source.CALL, following if self._model.value(following).tensor is not None else None
        if target.startswith("torch.") and not isinstance(self._model.value(node), Instance):
            return Source.MADE, None
        return Source.CALL, None

    def _held(self, target: ast.AST, node: ast.expr) -> ast.expr:
        """The source of a name in a loop's target: `xs` of `zip(ys, xs)`, `d` of `d.items()`."""
        places = self._places(target)
        while isinstance(node, ast.Call):
            name, arguments = last_name(node), node.args
            if isinstance(node.func, ast.Attribute) and name in _VIEWS and not arguments:
                node = node.func.value
            elif isinstance(node.func, ast.Name) and name in _WRAPPERS and arguments:
                given = arguments[self._argument(name, places, len(arguments))]
                if isinstance(given, ast.Starred):
                    break
                node = given
            else:
                break
        return node

    @staticmethod
    def _argument(wrapper: str, places: list[int], count: int) -> int:
        """The number of the argument whose items a wrapper gives at a place, which is taken from `places`."""
        place = places.pop() if wrapper in ("zip", "enumerate") and places else 0
        return min(place, count - 1) if wrapper == "zip" else 0

    def _places(self, target: ast.AST) -> list[int]:
        """The places of a name in the tuples of a loop's target, those in the outermost one last."""
        places = []
        outer = self._model.parent(target)
        while isinstance(outer, (ast.Tuple, ast.List)):
            places.append(next(index for index, each in enumerate(outer.elts) if each is target))
            target, outer = outer, self._model.parent(outer)
        return places

    def _moves(self, call: ast.Call, receiver: ast.expr) -> bool:
        before, after = self._model.value(receiver).tensor, self._model.value(call).tensor
        return after is not None and (before is None or (before.device, before.place) != (after.device, after.place))

    def _receiver(self, node: ast.expr) -> ast.expr | None:
        """The tensor or the unknown object that an attribute is read of; None if the attribute is state."""
        if not isinstance(node, ast.Attribute):
            return None
        value = self._model.value(node.value)
        is_open = value.is_unknown and path_of(node.value) not in ("", "self", "cls")
        return node.value if isinstance(value, Tensor) or is_open else None

    # Bindings

    def _binding(self, node: ast.expr, path: str) -> Binding | ast.arg | None:
        """The nearest binding of a path before a place in its function, or in a scope around that."""
        symbols, at = self._model.symbols, (node.lineno, node.col_offset)
        root = path.partition(".")[0]
        around = symbols.scope_around(node)
        variable = symbols.resolve(around, root)
        holds = _holds_tensors(self._model.value(node))
        passed: list[_Bound] = []
        for scope in around.chain:
            outer = scope.node
            if isinstance(outer, (*_SCOPES, ast.Lambda, ast.Module)):
                bound = self._bound(outer, path)
                found = None if bound is None else self._nearest(bound, outer, node, path, at, holds)
                passed += [] if bound is None else [bound]
                if found is not None:
                    if not holds or self._may_hold_tensors(found):
                        return found
                    # A sum that begins with a number, or an empty container, has its tensors from what is added.
                    additions = (each for bound in passed for each in reversed(bound.additions))
                    return next(filter(self._adds_tensors, additions), found)
                # Inner functions see the last value of a name.
                at = (outer.end_lineno or outer.lineno, 0) if isinstance(outer, ast.Lambda) else _END
            if scope is variable.scope and path == root and variable.bindings:
                if isinstance(outer, COMPREHENSIONS):
                    return variable.bindings[0]
                return next((each.node for each in variable.bindings if isinstance(each.node, ast.arg)), None)
            if scope is variable.scope:
                return None
        return None

    def _nearest(
        self, bound: _Bound, scope: FunctionNode | ast.Module, node: ast.expr, path: str, at: _Position, holds: bool
    ) -> Binding | None:
        """The nearest binding that may reach a place, one that may hold tensors if there is one and `holds`."""
        index = bisect_right(bound.places, at)
        reaching = _Reaching(self._model, node)
        is_parameter = not isinstance(scope, ast.Module) and path in parameters(scope)
        later = range(len(bound.bindings) - 1, index - 1, -1)
        nearest: Binding | None = None
        for at_index in chain(range(index - 1, -1, -1), () if is_parameter else later):
            binding = bound.bindings[at_index]
            if reaching.reaches(binding.node, at_index >= index):
                if not holds or self._may_hold_tensors(binding):
                    return binding
                nearest = nearest or binding
        return nearest

    def _adds_tensors(self, addition: Binding) -> bool:
        return addition.value is not None and _holds_tensors(self._model.value(addition.value))

    def _may_hold_tensors(self, binding: Binding) -> bool:
        if binding.value is None or not binding.whole or binding.how is not How.ASSIGNED:
            return True
        if isinstance(binding.value, (ast.List, ast.Dict)) and not _elements(binding.value):
            return False
        return not all(map(_is_without_tensors, self._model.value(binding.value).members))

    def _bound(self, scope: FunctionNode | ast.Module, path: str) -> _Bound | None:
        return self._table(scope).get(path)

    @remembered
    def _table(self, scope: FunctionNode | ast.Module) -> dict[str, _Bound]:
        """The bindings of each path in a scope."""
        found: list[tuple[_Position, str, Binding]] = []
        table: dict[str, _Bound] = {}
        for node in () if isinstance(scope, ast.Lambda) else own_nodes(scope):
            path, bound = self._stored(node)
            if not path or bound is None or bound.how is How.COMPREHENSION:
                continue
            if bound.how in (How.AUGMENTED, How.GROWN):
                table.setdefault(path, _Bound([], [], [])).additions.append(bound)
                continue
            last = bound.value if bound.value is not None else bound.node
            found.append(((getattr(last, "end_lineno", 0), getattr(last, "end_col_offset", 0)), path, bound))
        for place, path, bound in sorted(found, key=lambda each: each[0]):
            known = table.setdefault(path, _Bound([], [], []))
            known.places.append(place)
            known.bindings.append(bound)
        return table

    def _stored(self, node: ast.AST) -> tuple[str, Binding | None]:
        """The path that a node binds or adds to, and the binding."""
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            path = path_of(node)
            return path, binding_of(node, self._model.ancestors(node)) if path else None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            bound = binding_of(node, self._model.ancestors(node))
            value = None if bound is None else bound.value
            return path_of(node.value), Binding(How.GROWN, node, node.lineno, value, False)
        added = node.args[-1:] if isinstance(node, ast.Call) else []
        if added and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in GROWS:
            return path_of(node.func.value), Binding(How.GROWN, node, node.lineno, added[0], False)
        return "", None


def may_meet(model: Heated, first: ast.AST, later: ast.AST) -> bool:
    """True if control flow may lead from one of two places to the other. Two branches of an `if` exclude each other."""
    return _Reaching(model, later).reaches(first, False) or _Reaching(model, first).reaches(later, True)


class _Reaching:
    """The bindings and other places that control flow may lead from to a place."""

    def __init__(self, model: Heated, node: ast.AST) -> None:
        self._model = model
        self._around = dict(ways_out(node, model.ancestors(node)))

    def reaches(self, start: ast.AST, is_later: bool) -> bool:
        """True unless the branches or, for a start that stands later, the lack of a loop prevent it."""
        is_apart = False
        for outer, inner in ways_out(start, self._model.ancestors(start)):
            other = self._around.get(outer)
            if other is not None and not is_apart:
                if excludes(outer, inner, other):
                    return False
                is_apart = True
            if is_apart and (not is_later or isinstance(outer, LOOPS)):
                return True
            if isinstance(outer, ast.If) and not is_apart:
                branch = next((each for each in (outer.body, outer.orelse) if stands_in(each, inner)), None)
                if branch and isinstance(branch[-1], (ast.Return, ast.Raise)):
                    return False
            if isinstance(outer, (*_SCOPES, ast.Module)):
                return not is_later
        return True


def _holds_tensors(value: Value) -> bool:
    """True for a tensor, and for a container of tensors."""
    return value.tensor is not None or any(map(_holds_tensors, _contents(value)))


def _contents(value: Value) -> Iterator[Value]:
    """The elements of the containers that a value may be."""
    for member in value.members:
        if isinstance(member, (Sequence, Mapping)):
            yield member.element
        if isinstance(member, Mapping):
            yield from (item for _, item in member.items)


def _elements(display: ast.List | ast.Dict) -> list[ast.expr]:
    return display.elts if isinstance(display, ast.List) else display.values


def _is_without_tensors(value: Value) -> bool:
    """True for a number, a text, None, and an empty container."""
    if isinstance(value, (Sequence, Mapping)):
        return isinstance(value.element, Never) and not value.items
    return isinstance(value, (Const, Scalar))


_OPERATIONS = (ast.Call, ast.BinOp, ast.Compare, ast.UnaryOp)
_Position = tuple[int, int]
_END = (1 << 60, 0)
