"""Guards: tests that rarely have one outcome, such as `step % 100 == 0`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TypeGuard

from perflint.semantics import conventions
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Scalar, Value

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
    return bool(conventions.is_mode(last_name(node)))


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
    return bool(conventions.is_rarely_true(_name_of(node)))


def _name_of(node: ast.expr) -> str:
    """The last part of a name or attribute; "" for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


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
    is_zero = isinstance(right, ast.Constant) and right.value == 0 and not isinstance(right.value, (bool, str))
    if is_zero and isinstance(operator, (ast.Eq, ast.NotEq, ast.Gt)) and _counts_steps(left):
        return isinstance(operator, ast.Eq)
    return None


def _counts_steps(node: ast.expr) -> bool:
    """`step`, `self.global_step`, `batch_idx`: it is 0 once."""
    return bool(conventions.counts_steps(_name_of(node)))


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


def fills_cache(branch: ast.If, before: Callable[[ast.If], list[ast.stmt]]) -> bool:
    """Whether the body of a branch runs once, or once for each key, for it makes what the test misses.

    `if key not in cache: … cache[key] = …`, `if self.table is None: … self.table = …`, `if self.first: …
    self.first = False`, and the same of a name that `cache.get(key)` was assigned to. `before` gives the statements
    before a branch.
    """
    return any(_stores(branch.body, made) for made in _missed(branch.test, lambda: before(branch))) or _drops(branch)


def _drops(branch: ast.If) -> bool:
    """`if self.first: … self.first = False`, `if not self.is_set_up: … self.is_set_up = True`."""
    is_off = isinstance(branch.test, ast.UnaryOp) and isinstance(branch.test.op, ast.Not)
    flag = branch.test.operand if isinstance(branch.test, ast.UnaryOp) and is_off else branch.test
    return _is_of_self(flag) and any(
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is is_off
        and ast.unparse(statement.targets[0]) == ast.unparse(flag)
        for statement in branch.body
    )


def returns_kept(branch: ast.If, block: list[ast.stmt]) -> bool:
    """Whether a branch of a block returns what the rest of the block makes once, or once for each key.

    `if key in cache: return cache[key]`, `if self.table is not None: return self.table`, and the same of a
    name that `cache.get(key)` was assigned to.
    """
    if not isinstance(branch.body[-1], ast.Return):
        return False
    index = block.index(branch)
    return any(_stores(block[index + 1 :], made) for made in _found(branch.test, block[:index]))


def _missed(test: ast.expr, before: Callable[[], list[ast.stmt]]) -> Iterator[str]:
    """What a test finds missing, as the code that would store it."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _missed(value, before)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _attribute_asked_for(test.operand)
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn):
        yield _entry(test.comparators[0], test.left)
    elif _is_to_none(test, ast.Is) and _is_of_self(test.left):
        yield ast.unparse(test.left)
    elif _is_to_none(test, ast.Is) and isinstance(test.left, ast.Name):
        yield from _asked_of(before(), test.left.id)


def _found(test: ast.expr, before: list[ast.stmt]) -> Iterator[str]:
    """What a test finds there, as the code that would store it; `before`: the statements before it."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In):
        yield _entry(test.comparators[0], test.left)
    elif _is_to_none(test, ast.IsNot) and _is_of_self(test.left):
        yield ast.unparse(test.left)
    elif _is_to_none(test, ast.IsNot) and isinstance(test.left, ast.Name):
        yield from _asked_of(before, test.left.id)
    else:
        yield from _attribute_asked_for(test)


def _asked_of(before: list[ast.stmt], name: str) -> Iterator[str]:
    """The entry that the statement before asks a dict for: `name = cache.get(key)`."""
    last = before[-1] if before else None
    call = last.value if isinstance(last, ast.Assign) and last_name(last.targets[0]) == name else None
    if isinstance(call, ast.Call) and last_name(call) == "get" and isinstance(call.func, ast.Attribute):
        yield from (_entry(call.func.value, key) for key in call.args[:1])


def _is_to_none(test: ast.expr, operator: type[ast.cmpop]) -> TypeGuard[ast.Compare]:
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], operator):
        return False
    other = test.comparators[0]
    return isinstance(other, ast.Constant) and other.value is None


def _is_of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _attribute_asked_for(node: ast.expr) -> Iterator[str]:
    """`hasattr(self, "table")`."""
    if isinstance(node, ast.Call) and last_name(node) == "hasattr" and len(node.args) == 2:
        owner, name = node.args
        if isinstance(owner, ast.Name) and owner.id == "self" and isinstance(name, ast.Constant):
            yield f"self.{name.value!s}"


def _entry(cache: ast.expr, key: ast.expr) -> str:
    return ast.unparse(ast.Subscript(cache, key, ast.Load()))


def _stores(body: list[ast.stmt], target: str) -> bool:
    return any(
        isinstance(node, (ast.Subscript, ast.Attribute))
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node) == target
        for statement in body
        for node in walk(statement)
    )


def finds_nothing(test: ast.expr, outcome: bool) -> bool:
    """Whether a test that comes out as `outcome` says that there are no elements: `len(x) == 0`, `not x.numel()`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return finds_nothing(test.operand, not outcome)
    if not isinstance(test, ast.Compare):
        return not outcome and _counts(test)
    limit = test.comparators[0]
    if len(test.ops) != 1 or not _counts(test.left) or not isinstance(limit, ast.Constant):
        return False
    empty = {ast.Eq: 0, ast.LtE: 0, ast.Lt: 1, ast.NotEq: 0, ast.Gt: 0, ast.GtE: 1}
    says_so = isinstance(test.ops[0], (ast.Eq, ast.LtE, ast.Lt))
    return empty.get(type(test.ops[0])) == limit.value and says_so is outcome


def _counts(node: ast.expr) -> bool:
    """`len(x)`, `x.numel()`, `x.shape[0]`, `x.size(0)`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call) and last_name(node) == "size":
        return len(node.args) == 1
    return isinstance(node, ast.Call) and last_name(node) in ("len", "numel", "nelement")


def warns(call: ast.Call) -> bool:
    """Whether a call reports what should not happen: `warnings.warn(…)`, `logger.error(…)`."""
    return bool(conventions.reports(last_name(call))) and isinstance(call.func, ast.Attribute)
