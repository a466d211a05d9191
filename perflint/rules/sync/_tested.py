"""Tests of tensors in a row, `a.any() or b.any()`, whose answers one read gives."""

from __future__ import annotations

import ast

from perflint.findings import Fix, Safety
from perflint.fixes.edits import replace
from perflint.frozen import dataclass
from perflint.rules._methods import serves_tests
from perflint.rules._order import has_effects
from perflint.rules.sync._dimensions import COMPARES
from perflint.rules.sync._once import is_module, is_on_only_gpu, knows_several_gpus
from perflint.rules.sync._scalars import NAN_CHECK, SCALAR_READ, TRUTH_OF_TENSOR, Read
from perflint.semantics.around import statement_of
from perflint.semantics.facts import torch_api
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import walk
from perflint.semantics.values import Evidence, Kind, Tensor, Value, scalar_type
from perflint.source.concrete import code, cst

_QUESTIONS = frozenset("isnan isinf isfinite isposinf isneginf".split())
_QUANTIFIERS = frozenset("any all".split())
_ELEMENTWISE = frozenset("abs detach float double bool long int eq ne lt le gt ge logical_not".split())
_NEED_ELEMENTS = frozenset("max min amax amin".split())
"""Functions that raise an error for a tensor without elements."""
_TOTAL = _QUESTIONS | _QUANTIFIERS | _ELEMENTWISE | _NEED_ELEMENTS | {"sum", "count_nonzero"}
_PARTS = (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Compare, ast.Subscript, ast.UnaryOp, ast.BinOp)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.BitOr, ast.BitAnd)


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand of `and` or `or`, and the tensor that it tests."""

    node: ast.expr
    tensor: ast.expr
    form: str
    """How Python gets the answer: "", "not", "bool" or "item"."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Neighbouring operands of one form in `and` or `or`."""

    test: ast.BoolOp
    start: int
    operands: tuple[_Operand, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """One test in place of several."""

    text: str
    fix: Fix


def asked_together(model: Model, read: Read) -> Joined | None:
    """One test of tensors in place of a row of tests that a read belongs to; None for a single one.

    The tests have no effects, and a later one raises no error that an earlier one would have prevented.
    """
    test = _test_around(model, read.node)
    if test is None or model.is_scripted(test.lineno):
        return None
    if serves_tests(model) and isinstance(statement_of(model, test), ast.Assert):
        # It says which of its parts fails.
        return None
    return _tests_joined(model, test).get(read.node)


@once_per_node
def _tests_joined(model: Model, test: ast.BoolOp) -> dict[ast.expr, Joined]:
    """One test in place of each row in an `and` or `or`, by the expressions that wait."""
    found: dict[ast.expr, Joined] = {}
    for row in _rows(model, test):
        whole = _joined(model.source.concrete(test), row)
        if whole is None:
            continue
        new, joined = whole
        fix = Fix(
            "Ask the GPU once",
            Safety.SAFE if _keeps_errors(model, row) else Safety.UNSAFE,
            (replace(model.source, model.source.span(test), new),),
            leaves=(TRUTH_OF_TENSOR, NAN_CHECK, SCALAR_READ),
        )
        found |= dict.fromkeys(map(_read_of, row.operands), Joined(code(joined), fix))
    return found


def _test_around(model: Model, node: ast.expr) -> ast.BoolOp | None:
    """The `and` or `or` that a tested expression is an operand of, as it is or behind `not`."""
    outer = model.parent(node)
    if isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not):
        outer = model.parent(outer)
    return outer if isinstance(outer, ast.BoolOp) else None


def _read_of(operand: _Operand) -> ast.expr:
    """The expression that waits for an operand."""
    return operand.tensor if operand.form in ("", "not") else operand.node


def _rows(model: Model, test: ast.BoolOp) -> list[_Row]:
    """The rows of an `and` or `or`, each of two operands or more."""
    found: list[_Row] = []
    row: list[_Operand] = []
    is_test = _is_only_tested(model, test)
    for index, node in enumerate([*test.values, None]):
        operand = None if node is None else _operand(model, node)
        fits = operand is not None and (is_test or operand.form != "") and _is_answer(model, operand)
        if fits and operand is not None and row and operand.form == row[0].form and _follows(model, row, operand):
            row.append(operand)
            continue
        if len(row) > 1:
            found.append(_Row(test, index - len(row), tuple(row)))
        row = [operand] if fits and operand is not None and not has_effects(model, operand.tensor) else []
    return found


def _operand(model: Model, node: ast.expr) -> _Operand:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _Operand(node, node.operand, "not")
    if isinstance(node, ast.Call):
        target = model.target(node)
        if target == "builtins.bool" and len(node.args) == 1 and not node.keywords:
            return _Operand(node, node.args[0], "bool")
        if target == "torch.Tensor.item" and not node.args and isinstance(node.func, ast.Attribute):
            return _Operand(node, node.func.value, "item")
    return _Operand(node, node, "")


def _is_only_tested(model: Model, node: ast.expr) -> bool:
    """True if only the truth of an `and` or `or` is used, and not one of its operands."""
    inner: ast.AST = node
    outer = model.parent(inner)
    while isinstance(outer, ast.BoolOp):
        inner, outer = outer, model.parent(outer)
    if isinstance(outer, (ast.If, ast.While, ast.Assert, ast.IfExp)):
        return outer.test is inner
    if isinstance(outer, ast.comprehension):
        return any(each is inner for each in outer.ifs)
    if isinstance(outer, ast.Call):
        return model.target(outer) == "builtins.bool" and outer.args == [inner]
    return isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not)


def _is_answer(model: Model, operand: _Operand) -> bool:
    """True if an operand tests a truth value: `x.any()`, `x > 0`, `torch.isnan(x)`."""
    node = operand.tensor
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and isinstance(node.ops[0], COMPARES) and isinstance(model.value(node), Tensor)
    if not isinstance(node, ast.Call):
        return False
    owner, _, name = torch_api.canonical(model.target(node)).rpartition(".")
    if owner not in ("torch", "torch.Tensor") or name not in _QUESTIONS | _QUANTIFIERS:
        return False
    if operand.form == "item" and name in _QUANTIFIERS and not _is_of_truths(model, node):
        # `x.byte().any().item()` is a number.
        return False
    return len(node.args) + len(node.keywords) == (1 if owner == "torch" else 0)


def _is_of_truths(model: Model, node: ast.Call) -> bool:
    """True for `(x > 0).any()`, and for any() of another tensor that is certainly boolean."""
    operand = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else node
    value = model.value(operand)
    if isinstance(operand, ast.Call) and model.target(operand).rpartition(".")[2] in _QUESTIONS:
        return True
    return isinstance(value, Tensor) and value.kind is Kind.BOOL and value.evidence >= Evidence.ANNOTATION


def _follows(model: Model, row: list[_Operand], operand: _Operand) -> bool:
    """True if an operand may be evaluated whenever the first one of a row is, on the same device."""
    first, node = row[0].tensor, operand.tensor
    seen = {ast.dump(each) for each in walk(first) if isinstance(each, ast.expr)}
    if has_effects(model, node) or not all(_is_total(model, each, seen) for each in walk(node)):
        return False
    are_numbers = _is_one(model, first) and _is_one(model, node)
    if not are_numbers and not _has_same_shape(model, first, node):
        return False
    before, names = _tensors(model, first), _tensors(model, node)
    with_dimensions = {name for name, value in names.items() if value.tensor is None or value.tensor.rank != 0}
    if len(with_dimensions) > 1 and not with_dimensions <= before.keys():
        # Two tensors may have different shapes: the first test may be there to find out.
        return False
    if any(name in before and value.tensor is not None for name, value in names.items()):
        return True
    if are_numbers and not knows_several_gpus(model):
        # A tensor of the CPU without dimensions may be combined with one of the GPU.
        return True
    return all(is_on_only_gpu(model, model.value(each)) for each in (first, node))


def _is_total(model: Model, part: ast.AST, seen: set[str]) -> bool:
    """True for a part of an expression that raises no error, if expressions that were evaluated before raised none."""
    if not isinstance(part, ast.expr):
        return not isinstance(part, ast.keyword)
    if ast.dump(part) in seen:
        return True
    if isinstance(part, ast.Subscript):
        return _has_like(part, seen)
    if isinstance(part, ast.BinOp):
        return isinstance(part.op, _ARITHMETIC)
    if isinstance(part, ast.Compare):
        return len(part.ops) == 1 and isinstance(part.ops[0], COMPARES)
    if isinstance(part, ast.Call):
        owner, _, name = torch_api.canonical(model.target(part)).rpartition(".")
        if owner not in ("torch", "torch.Tensor") or name not in _TOTAL or part.keywords:
            return False
        operand = part.func.value if owner == "torch.Tensor" and isinstance(part.func, ast.Attribute) else None
        operand = operand or (part.args[0] if part.args else None)
        return operand is not None and (name not in _NEED_ELEMENTS or _is_reduced_like(operand, seen))
    return isinstance(part, _PARTS)


def _has_like(node: ast.Subscript, seen: set[str]) -> bool:
    """True for `x[1]` if the first test has `x[0]`."""
    if not isinstance(node.slice, ast.Constant) or type(node.slice.value) is not int:
        return False
    return any(ast.dump(_with_index(node, other)) in seen for other in (0, 1, -1))


def _with_index(node: ast.Subscript, index: int) -> ast.Subscript:
    return ast.Subscript(node.value, ast.Constant(index), node.ctx)


def _is_reduced_like(operand: ast.expr, seen: set[str]) -> bool:
    """True for `x.max()` if the first test has `x.min()`, which would have raised the error."""
    return any(
        ast.dump(ast.Call(ast.Attribute(operand, name, ast.Load()), [], [])) in seen for name in sorted(_NEED_ELEMENTS)
    )


def _is_one(model: Model, node: ast.expr) -> bool:
    """True if a tensor surely has no dimensions."""
    value = model.value(node)
    if isinstance(value, Tensor) and value.rank == 0:
        return True
    return isinstance(node, ast.Call) and model.target(node).rpartition(".")[2] in _QUANTIFIERS


def _has_same_shape(model: Model, first: ast.expr, node: ast.expr) -> bool:
    """True for `x.isnan()` and `x.isinf()`."""
    return all(
        isinstance(each, ast.Call) and model.target(each).rpartition(".")[2] in _QUESTIONS for each in (first, node)
    ) and _tensor_of(first) == _tensor_of(node)


def _tensor_of(node: ast.expr) -> str:
    assert isinstance(node, ast.Call)
    operand = node.func.value if not node.args and isinstance(node.func, ast.Attribute) else node.args[0]
    return ast.dump(operand)


def _keeps_errors(model: Model, row: _Row) -> bool:
    """True if all tests of a row are questions about one tensor, so that a later one raises no error of its own."""
    first = row.operands[0].tensor
    found = _tensors(model, first)
    value = next(iter(found.values()), None)
    if len(found) != 1 or not isinstance(value, Tensor) or value.evidence < Evidence.ANNOTATION:
        return False
    is_ordered = _has_order(first)
    return all(
        _tensors(model, each.tensor).keys() == found.keys()
        and all(_is_harmless(model, part, is_ordered) for part in walk(each.tensor))
        for each in row.operands
    )


def _is_harmless(model: Model, part: ast.AST, is_ordered: bool) -> bool:
    """True for a part of a test that any tensor takes. Numbers of complex tensors have no order."""
    if isinstance(part, ast.Compare):
        number = part.comparators[0]
        return (is_ordered or not _has_order(part)) and isinstance(number, ast.Constant) and _fits_any(number.value)
    if isinstance(part, ast.Call):
        return model.target(part).rpartition(".")[2] in _FOR_ANY
    return isinstance(part, (ast.Name, ast.Attribute, ast.Constant)) or not isinstance(part, ast.expr)


_FOR_ANY = _QUANTIFIERS | _NEED_ELEMENTS | {"isnan", "isinf", "isfinite"}


def _has_order(node: ast.expr) -> bool:
    compares = (each for each in walk(node) if isinstance(each, ast.Compare))
    return any(isinstance(sign, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for each in compares for sign in each.ops)


def _fits_any(number: object) -> bool:
    """True for a number that a tensor of any dtype can be compared with."""
    return isinstance(number, (int, float)) and 0 <= number < 128


def _tensors(model: Model, node: ast.expr) -> dict[str, Value]:
    """The names and attributes in an expression whose values may be tensors, with these values."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        if isinstance(node, ast.Name) and is_module(model, node):
            return {}
        value = model.value(node)
        return {} if scalar_type(value) or getattr(node, "attr", "") in _FACTS else {ast.dump(node): value}
    parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        # `x.any` is a method of x.
        parts = [node.func.value, *node.args]
    found: dict[str, Value] = {}
    for part in parts:
        found.update(_tensors(model, part))
    return found


_FACTS = ("shape", "ndim", "dtype", "device")
"""Attributes of tensors that are not on the device."""


def _joined(whole: cst.BaseExpression, row: _Row) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The `and` or `or` with one test in place of a row, and this test; None if it is laid out otherwise."""
    operands, signs = _flat(whole, type(row.test.op))
    if len(operands) != len(row.test.values):
        return None
    end = row.start + len(row.operands)
    form = row.operands[0].form
    # Not a or not b: not (a and b).
    is_or = isinstance(row.test.op, ast.Or) != (form == "not")
    parts = [_inner(each, form) for each in operands[row.start : end]]
    new: cst.BaseExpression = _in_brackets(parts[0])
    between = signs[row.start : end - 1]
    is_whole, has_lines = len(row.operands) == len(operands), any(map(_breaks_line, between))
    if has_lines and is_whole and form:
        # A formatter would put the brackets elsewhere.
        return None
    for sign, part in zip(between, parts[1:], strict=True):
        bit = cst.BitOr if is_or else cst.BitAnd
        # Formatters break lines at `and` and `or` first.
        space = cst.SimpleWhitespace(" ")
        before, after = (
            (space, space) if has_lines and not is_whole else (sign.whitespace_before, sign.whitespace_after)
        )
        operator = bit(whitespace_before=before, whitespace_after=after)
        new = cst.BinaryOperation(new, operator, _in_brackets(part))
    new = _outer(operands[row.start], form, new)
    rest = [*operands[: row.start], new, *operands[end:]]
    built = rest[0]
    for sign, part in zip([*signs[: row.start], *signs[end - 1 :]], rest[1:], strict=True):
        built = cst.BooleanOperation(built, sign, part)
    return built, new


def _flat(node: cst.BaseExpression, kind: type[ast.boolop]) -> tuple[list[cst.BaseExpression], list[cst.BaseBooleanOp]]:
    """The operands of a chain of `and` or of `or`, and the operators between them."""
    sign = cst.Or if kind is ast.Or else cst.And
    if not isinstance(node, cst.BooleanOperation) or not isinstance(node.operator, sign):
        return [node], []
    # The expression itself is parsed without its brackets; brackets within make an operand of their own.
    operands, signs = ([node.left], []) if _has_brackets(node.left) else _flat(node.left, kind)
    return [*operands, node.right], [*signs, node.operator]


def _breaks_line(sign: cst.BaseBooleanOp) -> bool:
    around = (sign.whitespace_before, sign.whitespace_after)
    return any(isinstance(each, cst.ParenthesizedWhitespace) for each in around)


def _has_brackets(node: cst.BaseExpression) -> bool:
    return bool(node.lpar)


def _inner(node: cst.BaseExpression, form: str) -> cst.BaseExpression:
    """The tensor that an operand tests."""
    if form == "not":
        assert isinstance(node, cst.UnaryOperation)
        return node.expression
    if form in ("bool", "item"):
        assert isinstance(node, cst.Call)
        if form == "bool":
            return node.args[0].value
        assert isinstance(node.func, cst.Attribute)
        return node.func.value
    return node


def _outer(node: cst.BaseExpression, form: str, joined: cst.BaseExpression) -> cst.BaseExpression:
    """The joined test, asked in the form of an operand."""
    if form == "":
        return joined
    if form == "bool":
        assert isinstance(node, cst.Call)
        return node.with_changes(args=[cst.Arg(joined)])
    in_brackets = joined.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    if form == "not":
        assert isinstance(node, cst.UnaryOperation)
        return node.with_changes(expression=in_brackets)
    assert isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return node.with_changes(func=node.func.with_changes(value=in_brackets))


def _in_brackets(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that can stand beside `|` and `&`."""
    if node.lpar or isinstance(node, (cst.Name, cst.Call, cst.Attribute, cst.Subscript)):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
