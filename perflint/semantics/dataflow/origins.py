"""The origin of the tensor in an expression: a parameter, a batch, the result of a model, a call that made it.

`reasons` walks the same way back and reports each step. `Origins` returns the end of the way only, as a value that
rules can test, and in constant time: the bindings of each scope are collected once.
"""

from __future__ import annotations

import ast
import weakref
from bisect import bisect_right
from enum import Enum
from typing import TYPE_CHECKING

from perflint.frozen import dataclass
from perflint.semantics.binders import COMPREHENSIONS, Binding, How, binding_of, own_nodes, parameters
from perflint.semantics.explain.phrases import why
from perflint.semantics.structure import FunctionNode, last_name, path_of
from perflint.semantics.values import Instance, Tensor

if TYPE_CHECKING:
    from perflint.semantics.model import Model

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


@dataclass(frozen=True, slots=True)
class _Bound:
    """The bindings of one path in one scope, and the places from which on each holds, in order."""

    places: list[tuple[int, int]]
    bindings: list[Binding]


class Origins:
    """The origins of the tensors of one file."""

    def __init__(self, model: Model) -> None:
        self._model: Model = weakref.proxy(model)
        self._tables: dict[ast.AST, dict[str, _Bound]] = {}

    def of(self, node: ast.expr) -> Origin:
        """The origin of the tensor in an expression."""
        current, first, root = node, "", ""
        for _ in range(_LONGEST_WAY):
            path = path_of(current) if isinstance(current, (ast.Name, ast.Attribute)) else ""
            if path:
                first, root = first or path, path
                found = self._binding(current, path)
                if isinstance(found, ast.arg):
                    return Origin(Source.PARAMETER, found, first, path, found.lineno)
                if found is None:
                    following = self._receiver(current)
                    if following is None:
                        source = Source.STATE if isinstance(current, ast.Attribute) else Source.OUTSIDE
                        return Origin(source, current, first, root, current.lineno)
                    current = following
                    continue
                if found.value is None or found.how is How.WITH:
                    return Origin(Source.OUTSIDE, current, first, root, found.line)
                is_element = found.how in (How.LOOP, How.COMPREHENSION)
                if is_element and self._model.is_over_batches(found.value):
                    return Origin(Source.BATCH, found.value, first, root, found.line)
                current = found.value
                if is_element and not isinstance(self._model.value(found.value), Tensor):
                    held = self._held(found.node, found.value)
                    if path_of(held) in ("", root):
                        return Origin(Source.ELEMENT, found.value, first, root, found.line)
                    current = held
                continue
            source, following = self._step(current)
            if following is None:
                return Origin(source, current, first, root, current.lineno)
            current = following
        return Origin(Source.CALL, current, first, root, current.lineno)

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
        """The source of a loop's target: `xs` of `zip(ys, xs)`, `d` of `d.items()`."""
        while isinstance(node, ast.Call):
            name, arguments = last_name(node), node.args
            if isinstance(node.func, ast.Attribute) and name in _VIEWS and not arguments:
                node = node.func.value
            elif isinstance(node.func, ast.Name) and name in _WRAPPERS and arguments:
                around = self._model.parent(target)
                at = around.elts.index(target) if name == "zip" and isinstance(around, ast.Tuple) else 0  # type: ignore[arg-type]
                if at >= len(arguments) or isinstance(arguments[at], ast.Starred):
                    break
                node = arguments[at]
            else:
                break
        return node

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
        for scope in around.chain:
            outer = scope.node
            if isinstance(outer, (*_SCOPES, ast.Lambda, ast.Module)):
                found = self._in_scope(outer, path, at)
                if found is not None:
                    return found
                # Inner functions see the last value of a name.
                at = (outer.end_lineno or outer.lineno, 0) if isinstance(outer, ast.Lambda) else _END
            if scope is variable.scope and path == root and variable.bindings:
                if isinstance(outer, COMPREHENSIONS):
                    return variable.bindings[0]
                return next((each.node for each in variable.bindings if isinstance(each.node, ast.arg)), None)
            if scope is variable.scope:
                return None
        return None

    def _in_scope(self, scope: FunctionNode | ast.Module, path: str, at: _Position) -> Binding | None:
        known = self._tables.get(scope)
        if known is None:
            known = self._tables[scope] = self._table(scope)
        bound = known.get(path)
        if bound is None:
            return None
        index = bisect_right(bound.places, at)
        if index:
            return bound.bindings[index - 1]
        # A loop may come back to a binding that stands further down.
        is_parameter = not isinstance(scope, ast.Module) and path in parameters(scope)
        return None if is_parameter else bound.bindings[-1]

    def _table(self, scope: FunctionNode | ast.Module) -> dict[str, _Bound]:
        """The bindings of each path in a scope."""
        found: list[tuple[_Position, str, Binding]] = []
        for node in () if isinstance(scope, ast.Lambda) else own_nodes(scope):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                path = path_of(node)
                bound = binding_of(node, self._model.ancestors(node)) if path else None
                if bound is not None and bound.how not in (How.AUGMENTED, How.COMPREHENSION):
                    last: ast.expr = bound.value if bound.value is not None else node
                    found.append(((last.end_lineno or 0, last.end_col_offset or 0), path, bound))
        table: dict[str, _Bound] = {}
        for place, path, bound in sorted(found, key=lambda each: each[0]):
            known = table.setdefault(path, _Bound([], []))
            known.places.append(place)
            known.bindings.append(bound)
        return table


_Position = tuple[int, int]
_END = (1 << 60, 0)
