"""Attention that is written out: a product, its softmax, and the product of that with the values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.frozen import dataclass
from perflint.rules._memory.flows import behind, made
from perflint.rules._methods import called_on
from perflint.rules._numbers import literal
from perflint.rules._sources import given
from perflint.rules._statements import outward
from perflint.semantics.model import Model
from perflint.semantics.purpose.given import arguments_given
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Const, Instance

SOFTMAX = ("torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax", "torch.Tensor.softmax")
"""Functions that make probabilities."""
_PRODUCTS = frozenset({"matmul", "bmm", "einsum"})
_TURNS = frozenset({"transpose", "permute", "swapaxes", "swapdims", "t", "mT", "T", "adjoint"})
_PASSES_ON = frozenset({"to", "type_as", "type", "float", "half", "bfloat16", "contiguous", "view", "reshape"})
_MASKS = frozenset({"masked_fill", "masked_fill_"})
_ZEROS = (Const(0), Const(0.0))
_FACTS = frozenset({"shape", "size", "dtype", "device", "dim", "ndim"})


@dataclass(frozen=True, slots=True)
class Attention:
    """A softmax whose weights go into one product and nowhere else."""

    softmax: ast.Call
    product: ast.expr
    """The product with the values."""
    biased: bool
    """True if something is added to the scores, or a tensor scales them."""


def attentions(model: Model) -> Iterator[Attention]:
    """The attentions that a file writes out, in source order."""
    seen: set[ast.expr] = set()
    for call in model.nodes(ast.Call):
        if not is_softmax(model, call):
            continue
        function = model.function(call)
        scores = _argument(model, call)
        if function is None or scores is None:
            continue
        product = _consumer(model, call, function)
        if product is not None:
            chain = _Chain(model, function, call)
            # Softmaxes in two branches have one product.
            if product in seen or not chain.leads_to_product(scores) or chain.is_read_elsewhere():
                continue
            if chain.is_over_last_axis(scores):
                seen.add(product)
                yield Attention(call, product, chain.biased)


def is_softmax(model: Model, call: ast.Call) -> bool:
    """True if a call is a softmax over an axis that may be the last one."""
    axis = _axis(model, call)
    return axis is not None and (axis == -1 or axis > 0)


def _axis(model: Model, call: ast.Call) -> int | None:
    """The axis of a softmax; None if it is not written out, and for other calls."""
    target = model.target(call)
    if target == "torch.nn.Module.__call__":
        made = model.value(call.func)
        if not isinstance(made, Instance) or made.cls != "torch.nn.Softmax":
            return None
        axis = made.argument("dim")
        return axis.value if isinstance(axis, Const) and type(axis.value) is int else None
    if target not in SOFTMAX:
        named = isinstance(call.func, ast.Attribute) and call.func.attr == "softmax"
        if target or not named or len(call.args) + len(call.keywords) > 2 or _is_library(call):
            return None
        return literal(given(call, "dim", 0))
    return literal(given(call, "dim", 0 if target == "torch.Tensor.softmax" else 1))


def _is_library(call: ast.Call) -> bool:
    """True if a call is of a module's function, not of a tensor's method."""
    assert isinstance(call.func, ast.Attribute)
    return bool(call.args) and not isinstance(call.args[0], (ast.Constant, ast.UnaryOp))


def _argument(model: Model, call: ast.Call) -> ast.expr | None:
    method = isinstance(call.func, ast.Attribute) and (
        model.target(call) == "torch.Tensor.softmax" or not model.target(call)
    )
    if method:
        assert isinstance(call.func, ast.Attribute)
        return call.func.value
    return call.args[0] if call.args else None


def _consumer(model: Model, node: ast.expr, function: ast.AST) -> ast.expr | None:
    """The one product that takes attention weights, as far as nothing else sees them."""
    place = _outermost(model, node)
    product = _product_around(model, place)
    if product is not None:
        return product
    parent = model.parent(place)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name):
        return None
    name, products = parent.targets[0].id, []
    end = (parent.end_lineno or 0, parent.end_col_offset or 0)
    for use in walk(function):
        if not isinstance(use, ast.Name) or use.id != name or not isinstance(use.ctx, ast.Load):
            continue
        if (use.lineno, use.col_offset) < end:
            continue
        outer = _outermost(model, use)
        product = _product_around(model, outer)
        if product is not None:
            products.append(product)
        elif not _is_rebound(model.parent(outer), name):
            return None
    return products[0] if len(products) == 1 else None


def _outermost(model: Model, node: ast.expr) -> ast.expr:
    """The expression with the casts, dropout, and zeros for masked weights around it."""
    while True:
        parent, call = model.parent(node), called_on(model, node)
        if call is not None and last_name(call) in _PASSES_ON | _MASKS:
            if last_name(call) in _MASKS and (len(call.args) != 2 or model.value(call.args[1]) not in _ZEROS):
                return node
            node = call
        elif isinstance(parent, ast.Call) and parent.args[:1] == [node] and "drop" in last_name(parent).lower():
            node = parent
        else:
            return node


def _is_rebound(around: ast.AST | None, name: str) -> bool:
    """`weights = self.dropout(weights)`."""
    if not isinstance(around, ast.Assign) or len(around.targets) != 1:
        return False
    target = around.targets[0]
    return isinstance(target, ast.Name) and target.id == name


def _product_around(model: Model, node: ast.expr) -> ast.expr | None:
    """The product whose left factor an expression is."""
    parent = model.parent(node)
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.MatMult):
        return parent if parent.left is node else None
    call = called_on(model, node)
    if call is not None and last_name(call) in _PRODUCTS:
        return call
    if isinstance(parent, ast.Call) and last_name(parent) in _PRODUCTS and _operands(parent)[:1] == [node]:
        return parent
    return None


def _operands(call: ast.Call) -> list[ast.expr]:
    """The operands of a product; without the equation of `einsum`."""
    return [each for each in call.args if not (isinstance(each, ast.Constant) and isinstance(each.value, str))]


class _Chain:
    """The operations between the product and the softmax of the scores."""

    def __init__(self, model: Model, function: ast.AST, softmax: ast.Call) -> None:
        self.model = model
        self.function = function
        self.softmax = softmax
        self.biased = False
        self.names: set[str] = set()
        self.last_axes: set[int] = set()
        """The last axis of the scores, counted from the first, as far as their products show it."""

    def is_over_last_axis(self, scores: ast.expr) -> bool:
        """True if the softmax is over the last axis of the scores."""
        axis, tensor = _axis(self.model, self.softmax), self.model.value(scores).tensor
        if axis == -1:
            return True
        rank = None if tensor is None else tensor.rank
        return self.last_axes == {axis} if rank is None else axis == rank - 1

    def leads_to_product(self, node: ast.expr) -> bool:
        """True if scores are a product with a transposed factor, scaled or masked, and nothing else."""
        node = behind(self.model, node)
        if isinstance(node, ast.BinOp):
            return self._leads_from_operation(node)
        if isinstance(node, ast.Call):
            return self._leads_from_call(node)
        return isinstance(node, ast.Name) and self._leads_from_name(node)

    def _leads_from_operation(self, node: ast.BinOp) -> bool:
        if isinstance(node.op, ast.MatMult):
            return self._is_turned(node.right)
        if isinstance(node.op, (ast.Mult, ast.Div, ast.Add, ast.Sub)):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if self.leads_to_product(one):
                    self._note(node.op, other)
                    return one is node.left or not isinstance(node.op, (ast.Div, ast.Sub))
        return False

    def _note(self, operator: ast.operator, other: ast.expr) -> None:
        if isinstance(operator, (ast.Add, ast.Sub)) or self.model.value(other).tensor is not None:
            self.biased = True

    def _leads_from_call(self, call: ast.Call) -> bool:
        name = last_name(call)
        if name in _PRODUCTS:
            method = isinstance(call.func, ast.Attribute) and name != "einsum" and len(_operands(call)) == 1
            operands = _operands(call)
            if name == "einsum":
                self.last_axes.update(_last_axis(call))
                return _is_score_equation(call)
            if name == "bmm":
                self.last_axes.add(2)
            if method:
                return self._is_turned(operands[0])
            return len(operands) == 2 and self._is_turned(operands[1])
        if name == "where" and len(call.args) == 3:
            return any(self.leads_to_product(each) for each in call.args[1:])
        if isinstance(call.func, ast.Attribute) and name in _MASKS | _PASSES_ON:
            return self.leads_to_product(call.func.value)
        return False

    def _is_turned(self, node: ast.expr, depth: int = 3) -> bool:
        """True if a factor is transposed, here or where its name is bound."""
        for part in walk(node):
            if isinstance(part, ast.Attribute) and part.attr in _TURNS:
                self._note_axes(self.model.parent(part))
                return True
        if not isinstance(node, ast.Name) or depth == 0:
            return False
        if any(self._is_turned(value, depth - 1) for value, _ in self._values(node)):
            return True
        given = arguments_given(self.model, node)
        return bool(given) and all(_is_made_by_turn(self.model, each) for each in given)

    def _note_axes(self, turn: ast.AST | None) -> None:
        """`k.transpose(2, 3)`: a product needs the last two axes of its factor in the other order."""
        axes = [literal(each) for each in turn.args] if isinstance(turn, ast.Call) else []
        first, second = axes if len(axes) == 2 else (None, None)
        if first is not None and second is not None and first > 0 and abs(first - second) == 1:
            self.last_axes.add(max(first, second))

    def _values(self, node: ast.Name) -> Iterator[tuple[ast.expr, ast.stmt]]:
        """The value that the function assigns to a name before its use."""
        for each in walk(self.function):
            if isinstance(each, (ast.Assign, ast.AugAssign)) and (each.lineno, each.col_offset) <= (
                self.softmax.lineno,
                self.softmax.col_offset,
            ):
                targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                if any(isinstance(target, ast.Name) and target.id == node.id for target in targets):
                    yield each.value, each

    def _leads_from_name(self, node: ast.Name) -> bool:
        if node.id in self.names:
            # Asked for already, by an assignment to itself.
            return True
        self.names.add(node.id)
        found = False
        for value, statement in self._values(node):
            if any(inner is self.softmax for inner in walk(value)):
                continue
            if isinstance(statement, ast.AugAssign):
                if not isinstance(statement.op, (ast.Mult, ast.Div, ast.Add, ast.Sub)):
                    return False
                self._note(statement.op, value)
            elif not self.leads_to_product(value):
                return False
            else:
                found = True
        return found

    def is_read_elsewhere(self) -> bool:
        """True if other code reads the scores, or masks them in a way that no mask argument can express."""
        for use in walk(self.function):
            if not isinstance(use, ast.Name) or use.id not in self.names or not isinstance(use.ctx, ast.Load):
                continue
            if (use.lineno, use.col_offset) > (self.softmax.end_lineno or 0, self.softmax.end_col_offset or 0):
                continue
            parent = self.model.parent(use)
            if isinstance(parent, ast.Attribute) and parent.attr in _FACTS | _MASKS:
                continue
            if not self._is_in_chain(use) and not self._is_in_other_branch(use):
                return True
        return False

    def _is_in_chain(self, use: ast.Name) -> bool:
        for outer in self.model.ancestors(use):
            if outer is self.softmax:
                return True
            if isinstance(outer, (ast.Assign, ast.AugAssign)):
                targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
                return any(isinstance(target, ast.Name) and target.id in self.names for target in targets)
            if isinstance(outer, ast.stmt):
                return False
        return False

    def _is_in_other_branch(self, use: ast.Name) -> bool:
        """True if a softmax reads the scores that runs only if this one does not."""
        if not any(isinstance(each, ast.Call) and is_softmax(self.model, each) for each in self.model.ancestors(use)):
            return False
        around = {each: inner for each, inner in outward(self.model, self.softmax) if isinstance(each, ast.If)}
        return any(
            outer in around and inner in outer.body and around[outer] in outer.orelse
            for outer, inner in outward(self.model, use)
            if isinstance(outer, ast.If)
        )


def _is_made_by_turn(model: Model, node: ast.expr) -> bool:
    """True if a tensor is made by a transposition, here or in a function of the file: `self.split_heads(k)`."""
    found = made(model, node)
    functions = model.functions_of(found.func) if isinstance(found, ast.Call) else ()
    places = (found, *(info.node for info in functions))
    return any(isinstance(part, ast.Attribute) and part.attr in _TURNS for place in places for part in walk(place))


def _last_axis(call: ast.Call) -> set[int]:
    """The last axis of the result of `einsum`, counted from the first; empty if an ellipsis hides it."""
    equation = call.args[0] if call.args else None
    if not isinstance(equation, ast.Constant) or not isinstance(equation.value, str):
        return set()
    out = equation.value.replace(" ", "").rpartition("->")[2]
    return set() if "." in out else {len(out) - 1}


def _is_score_equation(call: ast.Call) -> bool:
    """True for the product of queries and keys: one axis of both is summed over, and the positions of both stay."""
    if not call.args or not isinstance(call.args[0], ast.Constant) or not isinstance(call.args[0].value, str):
        return False
    left, arrow, out = call.args[0].value.replace(" ", "").partition("->")
    factors = left.split(",")
    if not arrow or len(factors) != 2 or any(len(each) < 2 for each in (*factors, out)):
        return False
    first, second = factors
    if first[:-1] == second[:-1] and first[-1] != second[-1]:
        # `b c t, b c s -> b t s`
        return out == first[:-2] + first[-1] + second[-1]
    # `b h i d, b h j d -> b h i j`
    return first[-1] == second[-1] and first[-1] not in out and out[-1] in second and out[-1] not in first
