"""Which dimensions of a tensor are of size 1, as far as the code that makes it tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.frozen import dataclass
from perflint.rules._memory.flows import bound, flow_around
from perflint.rules._numbers import integer
from perflint.rules._operators import operators
from perflint.rules.model._flow import attributes
from perflint.semantics.around import class_around
from perflint.semantics.facts import torch_api
from perflint.semantics.model import Model
from perflint.semantics.structure import keyword
from perflint.semantics.values import NONE, Array, Const, Tensor, scalar_type

_SIZED = operators("sizes", "sized")
_SIZE_FIRST = frozenset(("torch.full", "torch.Tensor.new_full"))
_SAME = operators("sizes", "same")
_REDUCES = frozenset("sum mean amax amin all any prod std var norm argmax argmin logsumexp softmax".split())
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Shape:
    """How many dimensions there are, None if that is not known, and which are of size 1.

    Those are counted from the front, from 0; and, with negative numbers, from the back where the rank is unknown.
    `sliced`: some are cut by a slice, which may be empty.
    """

    rank: int | None = None
    ones: frozenset[int] = frozenset()
    sliced: bool = False

    def is_one(self, index: int) -> bool:
        """True if a dimension, counted from the front, is of size 1; a rank is needed to count from the back."""
        return index in self.ones or (self.rank is not None and index - self.rank in self.ones)

    def of_rank(self, rank: int | None) -> Shape:
        """The same, with a rank that is known from elsewhere."""
        if rank is None or self.rank is not None:
            return self
        ones = frozenset(each + rank if each < 0 else each for each in self.ones if -rank <= each < rank)
        return Shape(rank, ones, self.sliced)


NOTHING = Shape()


def shape(model: Model, node: ast.expr, depth: int = _DEPTH) -> Shape:
    """The shape of an expression's value."""
    value = model.value(node)
    rank = value.rank if isinstance(value, Tensor) and _is_whole(model, node, depth) else None
    return _made(model, node, depth).of_rank(rank) if depth else Shape(rank)


def _is_whole(model: Model, node: ast.expr, depth: int) -> bool:
    """True if all operands that decide the rank of an expression are known, also behind the names in it.

    If one operand of a sum is unknown, the model gives the sum the rank of the other one, but it may be greater.
    """
    if depth == 0:
        return False
    if isinstance(node, ast.Name):
        return all(_is_whole(model, value, depth - 1) for value in _assigned(model, node))
    if isinstance(node, ast.BinOp):
        return all(_has_rank(model, each) and _is_whole(model, each, depth - 1) for each in (node.left, node.right))
    if isinstance(node, ast.UnaryOp):
        return _is_whole(model, node.operand, depth - 1)
    if isinstance(node, ast.Subscript):
        return _is_whole(model, node.value, depth - 1)
    if isinstance(node, ast.Call):
        of_tensor = isinstance(node.func, ast.Attribute) and model.value(node.func.value).tensor is not None
        receiver = [node.func.value] if of_tensor and isinstance(node.func, ast.Attribute) else []
        return all(_is_whole(model, each, depth - 1) for each in (*receiver, *node.args))
    return True


def _has_rank(model: Model, node: ast.expr) -> bool:
    value = model.value(node)
    return scalar_type(value) != "" or (isinstance(value, (Tensor, Array)) and value.rank is not None)


def _assigned(model: Model, use: ast.Name) -> Iterator[ast.expr]:
    """The values that the statements of a function assign or add to a name."""
    last = bound(model, use)
    if last is not None:
        yield last
        return
    for each in flow_around(model, use).origins(use):
        statement = model.parent(each.node) if isinstance(each.node, ast.Name) else None
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and statement.value is not None:
            yield statement.value


def _made(model: Model, node: ast.expr, depth: int) -> Shape:
    if isinstance(node, ast.Subscript):
        return _indexed(model, node, depth)
    if isinstance(node, ast.Call):
        return _called(model, node, depth)
    origin = None
    if isinstance(node, ast.Name):
        origin = bound(model, node)
    elif isinstance(node, ast.Attribute):
        if node.attr == "data":
            return shape(model, node.value, depth - 1)
        origin = _attribute(model, node)
    return NOTHING if origin is None else shape(model, origin, depth - 1)


def _attribute(model: Model, node: ast.Attribute) -> ast.expr | None:
    """The value that the class assigns to an attribute of `self`, or registers as a buffer, if it does so once."""
    if not isinstance(node.value, ast.Name):
        return None
    definition = class_around(model, node)
    if definition is None:
        return None
    found = attributes(model, definition)
    own = found.get(node.attr)
    made = list(own.assigned) if own is not None else []
    registers = found.get("register_buffer")
    for call in registers.calls if registers is not None else []:
        if len(call.args) > 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == node.attr:
            made.append(call.args[1])
    return made[0] if len(made) == 1 else None


def _called(model: Model, call: ast.Call, depth: int) -> Shape:
    target = torch_api.canonical(model.target(call))
    head, _, name = target.rpartition(".")
    if target in _SIZED:
        return _sizes(model, _listed(call.args))
    if target in _SIZE_FIRST:
        return _sizes(model, _listed(call.args[:1]))
    if target == "torch.tensor" and call.args:
        return _literal(model, call.args[0])
    if not head.startswith("torch"):
        return NOTHING
    of_tensor = head == "torch.Tensor" and isinstance(call.func, ast.Attribute)
    operands = [call.func.value, *call.args] if of_tensor and isinstance(call.func, ast.Attribute) else call.args
    operands = operands or [each.value for each in call.keywords if each.arg in ("input", "data")]
    if not operands:
        return NOTHING
    given = operands[1] if len(operands) > 1 else None
    dim = next((each.value for each in call.keywords if each.arg in ("dim", "axis")), None if name == "norm" else given)
    along = integer(model, dim)
    if name == "unsqueeze":
        base = shape(model, operands[0], depth - 1)
        return NOTHING if along is None else _inserted(base, along)
    if name in _REDUCES and _keeps(model, call):
        base = shape(model, operands[0], depth - 1)
        return base if along is None else Shape(None, base.ones | {along}, base.sliced).of_rank(base.rank)
    return shape(model, operands[0], depth - 1) if name in _SAME else NOTHING


def _keeps(model: Model, call: ast.Call) -> bool:
    given = keyword(call, "keepdim")
    return given is not None and model.value(given) == Const(True)


def _listed(arguments: list[ast.expr]) -> list[ast.expr]:
    """The sizes that a call passes, one by one or as a list."""
    first = arguments[0] if len(arguments) == 1 else None
    return first.elts if isinstance(first, (ast.Tuple, ast.List)) else arguments


def _sizes(model: Model, sizes: list[ast.expr]) -> Shape:
    if not sizes or any(isinstance(each, ast.Starred) for each in sizes):
        return NOTHING
    if len(sizes) == 1 and scalar_type(model.value(sizes[0])) != "int":
        return NOTHING
    return Shape(len(sizes), frozenset(i for i, size in enumerate(sizes) if is_one(model, size)))


def _literal(model: Model, node: ast.expr) -> Shape:
    """The shape of `torch.tensor([[…]])`, from its brackets."""
    ones: set[int] = set()
    rank = 0
    while isinstance(node, (ast.List, ast.Tuple)) and node.elts and not isinstance(node.elts[0], ast.Starred):
        if len(node.elts) == 1:
            ones.add(rank)
        rank += 1
        node = node.elts[0]
    ends = scalar_type(model.value(node)) in ("int", "float", "bool") or _is_scalar_tensor(model, node)
    return Shape(rank if ends else None, frozenset(ones))


def _is_scalar_tensor(model: Model, node: ast.expr) -> bool:
    value = model.value(node)
    return isinstance(value, Tensor) and value.rank == 0


def _inserted(base: Shape, index: int) -> Shape:
    """The shape with a dimension of size 1 more."""
    if base.rank is not None:
        at = index + base.rank + 1 if index < 0 else index
        return Shape(base.rank + 1, frozenset(each + (each >= at) for each in base.ones) | {at}, base.sliced)
    if index < 0:
        return Shape(None, frozenset(each - (each <= index) for each in base.ones if each < 0) | {index}, base.sliced)
    return Shape(None, frozenset(each + (each >= index) for each in base.ones if each >= 0) | {index}, base.sliced)


def _indexed(model: Model, node: ast.Subscript, depth: int) -> Shape:
    base = shape(model, node.value, depth - 1)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    sliced = base.sliced or any(isinstance(part, ast.Slice) and (part.lower or part.upper) for part in parts)
    ellipsis = [i for i, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is ...]
    if not ellipsis:
        front = _walked(model, parts, base, 1)
        if front is None:
            return NOTHING
        taken, given, ones = front
        rank = None if base.rank is None else base.rank - taken + given
        rest = (each - taken + given for each in base.ones if each >= taken)
        return Shape(rank, frozenset((*ones, *rest)), sliced)
    if len(ellipsis) > 1:
        return NOTHING
    head = _walked(model, parts[: ellipsis[0]], base, 1)
    tail = _walked(model, parts[ellipsis[0] + 1 :][::-1], base, -1)
    if head is None or tail is None:
        return NOTHING
    rank = None if base.rank is None else base.rank - head[0] - tail[0] + head[1] + tail[1]
    return Shape(None, frozenset((*head[2], *(-1 - each for each in tail[2]))), sliced).of_rank(rank)


def _walked(model: Model, parts: list[ast.expr], base: Shape, step: int) -> tuple[int, int, list[int]] | None:
    """How many dimensions parts of an index take and give, and which of those that they give are of size 1."""
    taken = given = 0
    ones: list[int] = []
    for part in parts:
        if isinstance(part, ast.Slice):
            source = taken if step > 0 else -1 - taken
            if _is_thin(part) or source in base.ones or (base.rank is not None and source + base.rank in base.ones):
                ones.append(given)
            taken, given = taken + 1, given + 1
        elif model.value(part) == NONE:
            ones.append(given)
            given += 1
        elif scalar_type(model.value(part)) == "int":
            taken += 1
        else:
            return None
    return taken, given, ones


def _is_thin(part: ast.Slice) -> bool:
    """True if a slice takes one element: `:1`, `-1:`, `i : i + 1`."""
    lower, upper = part.lower, part.upper
    if part.step is not None:
        return False
    if upper is None:
        return lower is not None and ast.dump(lower) == ast.dump(ast.UnaryOp(ast.USub(), ast.Constant(1)))
    if lower is None or (isinstance(lower, ast.Constant) and lower.value == 0):
        return isinstance(upper, ast.Constant) and upper.value == 1
    return isinstance(upper, ast.BinOp) and ast.dump(upper) == ast.dump(ast.BinOp(lower, ast.Add(), ast.Constant(1)))


def is_one(model: Model, node: ast.expr) -> bool:
    """True if an expression is the number 1."""
    return (isinstance(node, ast.Constant) and node.value == 1) or model.value(node) == Const(1)
