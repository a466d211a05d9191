"""Assertions about tensors, checked on the device."""

from __future__ import annotations

import ast

from perflint.findings import Confidence, Fix, Safety
from perflint.fixes.edits import replace
from perflint.fixes.imports import spell
from perflint.rules._methods import serves_tests
from perflint.rules._since import ASSERT_ASYNC, ASSERT_ASYNC_MESSAGE
from perflint.rules._statements import swallows
from perflint.rules.sync._scalars import Read
from perflint.semantics.model import Model
from perflint.semantics.values import Kind, Tensor
from perflint.source.concrete import cst


def async_assert(model: Model, read: Read) -> Fix | None:
    """`torch._assert_async` in place of an `assert` whose whole test is a read; None if it does not fit.

    None in tests and their helpers: an assertion that fails late, in another test, is of no use there. None if the
    code around it handles the error: on a GPU it cannot be handled. None in a notebook: the error ends its session,
    with all tensors that it holds. None if the tensor may well be on the CPU.
    """
    if read.confidence is Confidence.LOW or serves_tests(model) or swallows(model, read.node):
        return None
    if model.source.path.endswith(".ipynb"):
        return None
    test, statement = read.node, model.parent(read.node)
    if isinstance(statement, ast.UnaryOp) and isinstance(statement.op, ast.Not):
        test, statement = statement, model.parent(statement)
    if not isinstance(statement, ast.Assert) or statement.test is not test or read.tensor is not read.node:
        return None
    if test is not read.node and not _is_any_or_all(model, read.node):
        # The opposite of a number is not `~number`.
        return None
    if statement.lineno != statement.end_lineno:
        # Its layout would be lost.
        return None
    message = statement.msg
    if message is not None and not (isinstance(message, ast.Constant) and isinstance(message.value, str)):
        # A message that is put together would be so each time, not only when the check fails.
        return None
    if not _is_one_truth(model, read):
        return None
    name = spell(model.symbols, "torch._assert_async", statement)
    if name is None:
        return None
    condition = model.source.concrete(read.node)
    if test is not read.node:
        condition = _opposite(model, read.node, condition)
    arguments = [cst.Arg(condition), *([] if message is None else [cst.Arg(model.source.concrete(message))])]
    new = cst.Call(cst.parse_expression(name.text), arguments)
    edit = replace(model.source, model.source.span(statement), new)
    since = ASSERT_ASYNC if message is None else ASSERT_ASYNC_MESSAGE
    return Fix("Check on the GPU with `torch._assert_async`", Safety.UNSAFE, (edit,), name.imports, since=since)


def _opposite(model: Model, node: ast.expr, condition: cst.BaseExpression) -> cst.BaseExpression:
    """The opposite of `x.any()`. Of bytes this is a byte, whose `~` is true both for 0 and for 1."""
    assert isinstance(node, ast.Call)
    operand = node.args[0] if node.args else getattr(node.func, "value", node)
    tensor = model.value(operand).tensor
    if tensor is not None and tensor.kind is Kind.BOOL:
        return cst.UnaryOperation(cst.BitInvert(), condition)
    return cst.Call(cst.Attribute(condition, cst.Name("logical_not")))


def _is_one_truth(model: Model, read: Read) -> bool:
    """True if the tested value is surely a tensor of one element."""
    if not isinstance(read.value, Tensor):
        return False
    if read.value.rank == 0 and read.value.kind is not Kind.UNKNOWN:
        return True
    return _is_any_or_all(model, read.node)


def _is_any_or_all(model: Model, node: ast.expr) -> bool:
    """True for `x.any()`, `torch.all(x)` and so on, whose result is a truth value."""
    if not isinstance(node, ast.Call):
        return False
    owner, _, name = model.target(node).rpartition(".")
    arguments = len(node.args) + len(node.keywords)
    return name in ("all", "any") and (owner, arguments) in (("torch.Tensor", 0), ("torch", 1))
