"""`if mask.any():` in front of assignments that change nothing where the mask is empty."""

from __future__ import annotations

import ast

from perflint.frozen import dataclass
from perflint.rules._memory.flows import behind
from perflint.semantics.around import statement_of
from perflint.semantics.model import Model
from perflint.semantics.structure import walk
from perflint.semantics.values import Kind, Tensor, scalar_type

_PURE = (
    *(ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.UnaryOp, ast.BinOp),
    *(ast.Subscript, ast.Slice, ast.Tuple),
)


@dataclass(frozen=True, slots=True)
class Guard:
    """An `if` that only tests if any element of a mask is true."""

    statement: ast.If
    mask: ast.expr
    stored: tuple[ast.expr, ...]
    """The tensors that its body writes numbers into, through the mask."""
    numbers: tuple[ast.expr, ...]


def any_guard(model: Model, node: ast.expr) -> Guard | None:
    """The guard whose test waits at `node`; None if the test decides anything else."""
    statement = statement_of(model, node)
    if not isinstance(statement, ast.If) or statement.orelse or _is_elif(model, statement):
        return None
    mask, core = _any_of(model, statement.test)
    if mask is None or node not in core or not _is_mask(model, mask):
        return None
    stored = [_stored_through(model, part, ast.dump(mask)) for part in statement.body]
    pairs = [pair for pair in stored if pair is not None]
    if len(pairs) < len(stored):
        return None
    return Guard(statement, mask, tuple(tensor for tensor, _ in pairs), tuple(number for _, number in pairs))


def mask_asked_by(model: Model, test: ast.expr, finds_none: bool = False) -> ast.expr | None:
    """The mask of which a test that holds says that an element is true, or that none is; None for other tests."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return mask_asked_by(model, test.operand, not finds_none)
    if finds_none and isinstance(test, ast.Compare):
        return _any_of(model, test.left)[0] if _is_none(test) else None
    return None if finds_none else _any_of(model, test)[0]


def _is_elif(model: Model, statement: ast.If) -> bool:
    span = model.source.span(statement)
    return model.source.lines[span.line - 1].startswith("elif", span.column - 1)


def _any_of(model: Model, test: ast.expr) -> tuple[ast.expr | None, list[ast.expr]]:
    """The mask of a test for any true element, and the expressions of the test that may wait."""
    core: list[ast.expr] = [test]
    node = behind(model, test)
    if isinstance(node, ast.Compare) and _is_more_than_none(node):
        node = node.left
        core.append(node)
    while isinstance(node, ast.Call):
        target = model.target(node)
        if target in ("builtins.bool", "builtins.int") and len(node.args) == 1:
            node = node.args[0]
        elif target == "torch.Tensor.item" and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return _reduced(node, target), core
        core.append(node)
    return None, core


def _is_more_than_none(node: ast.Compare) -> bool:
    """`… > 0`, `… != 0` or `… >= 1`."""
    bound = node.comparators[0]
    if len(node.ops) != 1 or not isinstance(bound, ast.Constant) or isinstance(bound.value, bool):
        return False
    least = 1 if isinstance(node.ops[0], ast.GtE) else 0
    return isinstance(node.ops[0], (ast.Gt, ast.NotEq, ast.GtE)) and bound.value == least


def _is_none(node: ast.Compare) -> bool:
    """`… == 0`, `… < 1` or `… <= 0`."""
    bound = node.comparators[0]
    if len(node.ops) != 1 or not isinstance(bound, ast.Constant) or isinstance(bound.value, bool):
        return False
    most = 1 if isinstance(node.ops[0], ast.Lt) else 0
    return isinstance(node.ops[0], (ast.Eq, ast.Lt, ast.LtE)) and bound.value == most


def _reduced(node: ast.Call, target: str) -> ast.expr | None:
    owner, _, name = target.rpartition(".")
    if name not in ("any", "sum", "count_nonzero") or node.keywords:
        return None
    if owner == "torch.Tensor" and isinstance(node.func, ast.Attribute) and not node.args:
        return node.func.value
    return node.args[0] if owner == "torch" and len(node.args) == 1 else None


def _is_mask(model: Model, node: ast.expr) -> bool:
    """True if an expression surely gives booleans, the same each time. Integers would be positions, not a mask."""
    value = model.value(node)
    if not isinstance(value, Tensor) or value.kind is not Kind.BOOL:
        return False
    return all(isinstance(part, _PURE) for part in walk(node) if isinstance(part, ast.expr))


def _stored_through(model: Model, statement: ast.stmt, mask: str) -> tuple[ast.expr, ast.expr] | None:
    """The tensor into which a statement writes one number wherever the mask holds; None if it does more."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Subscript) and ast.dump(target.slice) == mask and _is_number(model, statement.value):
            return (target.value, statement.value) if model.value(target.value).tensor is not None else None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if model.target(call) != "torch.Tensor.masked_fill_" or not isinstance(call.func, ast.Attribute):
            return None
        if len(call.args) == 2 and ast.dump(call.args[0]) == mask and _is_number(model, call.args[1]):
            return call.func.value, call.args[1]
    return None


def _is_number(model: Model, node: ast.expr) -> bool:
    """True if an expression is a Python number that costs nothing to have."""
    if isinstance(node, ast.UnaryOp):
        return _is_number(model, node.operand)
    if isinstance(node, ast.Call):
        return model.target(node) == "builtins.float" and all(isinstance(part, ast.Constant) for part in node.args)
    if not isinstance(node, (ast.Constant, ast.Name, ast.Attribute)):
        return False
    members = model.value(node).members
    return bool(members) and all(scalar_type(member) in ("bool", "int", "float") for member in members)
