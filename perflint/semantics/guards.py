"""Guards: tests that come out one way only now and then, such as `step % 100 == 0`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Scalar, Value

_MODES = frozenset("is_tracing is_scripting is_exporting is_in_onnx_export is_compiling".split())
_SELDOM_TRUE = _MODES | frozenset(
    """is_main_process is_rank_zero is_global_zero is_master verbose debug should_log do_log log_this_step""".split()
)
_SHORTEST_INTERVAL = 6
"""What runs every fifth step, or more often, still costs a good part of what runs each step."""


Values = Callable[[ast.expr], Value]
"""What an expression may evaluate to."""


def rarely(test: ast.expr, outcome: bool, values: Values) -> bool:
    """Whether a test comes out as `outcome` only now and then: every k steps, on one rank, while tracing."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return rarely(test.operand, not outcome, values)
    if isinstance(test, ast.BoolOp):
        rare = [value for value in test.values if rarely(value, outcome, values)]
        # `step % k == 0 or is_last` is no less rare.
        return bool(rare) and (isinstance(test.op, ast.And) is outcome or not _is_reached(test, rare, outcome))
    if isinstance(test, ast.NamedExpr):
        return rarely(test.value, outcome, values)
    if isinstance(test, ast.Compare):
        return _rare_comparison(test, values) is outcome
    if isinstance(test, ast.BinOp):
        return _is_interval(test, values) and not outcome
    if isinstance(test, ast.Constant):
        # `if 0:` is code that somebody has switched off.
        return bool(test.value) is not outcome
    return outcome and _is_seldom_true(test.func if isinstance(test, ast.Call) else test)


def _is_reached(test: ast.BoolOp, rare: list[ast.expr], outcome: bool) -> bool:
    """Whether the operands that are not rare lead to an outcome for which one operand is enough.

    After `if x.is_cpu and not is_compiling(): return` comes what runs on the GPU.
    """
    others = [value for value in test.values if value not in rare]
    if others and all(_names_mode(value) for value in rare):
        return True
    return any(_means_gpu(value, outcome) for value in others)


def _names_mode(node: ast.expr) -> bool:
    """`torch.jit.is_scripting()`, `not is_compiling()`."""
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return last_name(node) in _MODES


def _means_gpu(test: ast.expr, outcome: bool) -> bool:
    """Whether a test that comes out as `outcome` says that data is on the GPU."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _means_gpu(test.operand, not outcome)
    if isinstance(test, ast.Compare):
        words = {node.value for node in walk(test) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        says_gpu = outcome is isinstance(test.ops[0], (ast.Eq, ast.Is, ast.In))
        return ("cuda" in words and says_gpu) or ("cpu" in words and not says_gpu)
    name = last_name(test)
    return (name == "is_cuda" and outcome) or (name == "is_cpu" and not outcome)


def _is_seldom_true(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in _SELDOM_TRUE


def _is_interval(node: ast.expr, values: Values) -> bool:
    """`step % k`, where k is not known to be small, nor by default; no formatting of text."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mod) or isinstance(node.left, ast.JoinedStr):
        return False
    if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
        return False
    known = values(node.right)
    # A constant of the file is a setting that others change; a parameter's default is what most run with.
    default = known.default if isinstance(known, Scalar) else None
    every = node.right.value if isinstance(node.right, ast.Constant) else default and default.value
    # An interval of 0 is that of something switched off.
    return not isinstance(every, int) or every < 1 or every >= _SHORTEST_INTERVAL


_TRUE_FOR_FEW = (ast.Eq, ast.Is, ast.Lt, ast.LtE)


def _rare_comparison(test: ast.Compare, values: Values) -> bool | None:
    """The outcome of a comparison that is rare, None where there is none."""
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    if _is_interval(left, values) or _is_interval(right, values):
        return isinstance(operator, _TRUE_FOR_FEW)
    if _is_seldom_true(left):
        is_off = isinstance(right, ast.Constant) and not right.value
        return not is_off if isinstance(operator, (ast.Eq, ast.Is)) else isinstance(operator, (ast.Gt, ast.GtE))
    return None


def leaves(body: list[ast.stmt]) -> bool:
    """Whether a branch ends by leaving the function or this turn of the loop."""
    return isinstance(body[-1], (ast.Return, ast.Continue))


def fails(body: list[ast.stmt]) -> bool:
    """Whether a branch is the way to an exception."""
    return bool(body) and isinstance(body[-1], ast.Raise)


def asks_state(test: ast.expr) -> bool:
    """Whether a test asks what was made before: `self.table is None`, `not hasattr(x, "y")`, `key not in known`."""
    return any(map(_is_of_state, walk(test)))


def _is_of_state(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr != "training" and isinstance(node.value, ast.Name) and node.value.id == "self"
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], ast.NotIn)
    return isinstance(node, ast.Call) and last_name(node) in ("hasattr", "getattr")


def fills_cache(branch: ast.If) -> bool:
    """Whether the body of a branch runs once for each key: `if key not in cache: … cache[key] = …`."""
    test = branch.test
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.NotIn):
        return False
    key, cache = ast.unparse(test.left), ast.unparse(test.comparators[0])
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) == cache
        and ast.unparse(node.slice) == key
        for statement in branch.body
        for node in ast.walk(statement)
    )
