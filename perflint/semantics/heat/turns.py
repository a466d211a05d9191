"""Loops that turn once or a few times, and those that count their turns or the epochs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from perflint.semantics.structure import children, last_name, names_in, walk

Loop = ast.For | ast.AsyncFor | ast.While

_FEW_TURNS = 10
"""Loops of no more iterations are not worth a change."""


def turns_once(loop: Loop) -> bool:
    """True if the body of a loop always leaves the loop in its first iteration: `for batch in loader: …; break`."""
    return leaves_loop(loop.body)


def leaves_loop(block: Sequence[ast.stmt]) -> bool:
    """True if a block always leaves the loop around it as it ends, so that it runs at most once for each loop."""
    if not isinstance(block[-1], (ast.Break, ast.Return, ast.Raise)):
        return False
    stack: list[ast.AST] = list(block)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Continue):
            return False
        if not isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.expr)):
            stack += children(node)
    return True


def turns_few(loop: Loop) -> bool:
    """True if a loop ends after a few iterations, by a number in the code: `if step == 10: break`."""
    tests = (each.test for each in loop.body if isinstance(each, ast.If) and isinstance(each.body[-1], ast.Break))
    return any(
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], (ast.Eq, ast.Gt, ast.GtE))
        and isinstance(test.left, ast.Name)
        and _is_few(test.comparators[0])
        and _is_counted(loop, test.left.id)
        for test in tests
    )


def ranges_few(loop: Loop) -> bool:
    """True for `for i in range(10):` and shorter loops."""
    counted = loop.iter if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) else None
    return counted is not None and last_name(counted) == "range" and len(counted.args) == 1 and _is_few(counted.args[0])


def length_awaited(branch: ast.If, loop: Loop) -> ast.expr | None:
    """The length of a list at which a branch empties it; None if the branch tests and empties no list.

    Iterations of the loop append to the list. It is `k` of `if len(rows) == k: …; rows.clear()`.
    """
    test = branch.test
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.GtE, ast.Gt)):
        return None
    asked = test.left.args if isinstance(test.left, ast.Call) and last_name(test.left) == "len" else []
    held = ast.unparse(asked[0]) if len(asked) == 1 and isinstance(asked[0], (ast.Name, ast.Attribute)) else ""
    if not held or not any(_empties(statement, held) for statement in branch.body):
        return None
    grows = {_grows(node, held) for node in walk(loop)}
    return test.comparators[0] if grows == {"", "append"} else None


def _empties(statement: ast.stmt, held: str) -> bool:
    """True for `rows.clear()`, `rows = []` and `del rows[:]`."""
    if isinstance(statement, ast.Expr):
        return ast.unparse(statement) == f"{held}.clear()"
    if isinstance(statement, ast.Delete):
        return any(ast.unparse(target) == f"{held}[:]" for target in statement.targets)
    if not isinstance(statement, ast.Assign) or ast.unparse(statement.value) not in ("[]", "list()"):
        return False
    return held in map(ast.unparse, statement.targets)


def _grows(node: ast.AST, held: str) -> str:
    """The way in which a node makes a list longer: "append", "extend", "insert", "+="; "" for all other nodes."""
    if isinstance(node, ast.AugAssign):
        return "+=" if ast.unparse(node.target) == held else ""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    is_growth = node.func.attr in ("append", "extend", "insert") and ast.unparse(node.func.value) == held
    return node.func.attr if is_growth else ""


def counts_epochs(loop: Loop) -> bool:
    """True for `for epoch in range(10)`, `for _ in range(args.epochs)`."""
    named = () if isinstance(loop, ast.While) else (loop.target, loop.iter)
    words = (getattr(part, name, None) for node in named for part in walk(node) for name in ("id", "attr"))
    return any(isinstance(word, str) and "epoch" in word.lower() for word in words)


def asks_for_first(test: ast.expr, outcome: bool) -> str:
    """The name that is 0 if a test comes out as `outcome`: "i" of `i == 0` and of `not i`; "" for other tests."""
    if isinstance(test, ast.Name):
        return "" if outcome else test.id
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Name):
        return ""
    limit, operator = test.comparators[0], test.ops[0]
    is_zero = isinstance(limit, ast.Constant) and type(limit.value) is int and limit.value == 0
    says_so = isinstance(operator, ast.Eq) if outcome else isinstance(operator, (ast.NotEq, ast.Gt))
    return test.left.id if is_zero and says_so else ""


def asks_for_last(test: ast.expr, outcome: bool, loop: Loop, over: Iterable[ast.expr]) -> bool:
    """True if a test that comes out as `outcome` compares a variable of a loop with its length: `i + 1 == len(rows)`.

    `over`: what the loop is over: `rows`, or a call that is given them.
    """
    if isinstance(loop, ast.While) or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    if not isinstance(test.ops[0], (ast.Eq, ast.GtE) if outcome else (ast.NotEq, ast.Lt)):
        return False
    counted, length = (each.left if isinstance(each, ast.BinOp) else each for each in (test.left, test.comparators[0]))
    if not isinstance(counted, ast.Name) or counted.id not in names_in(loop.target):
        return False
    if not isinstance(length, ast.Call) or last_name(length) != "len" or len(length.args) != 1:
        return False
    return ast.unparse(length.args[0]) in {ast.unparse(part) for each in over for part in walk(each)}


class Counts(NamedTuple):
    """The numbers that a loop counts."""

    turns: str
    """The name that counts all iterations: `for i, x in enumerate(xs)`, `for i in range(n)`; "" if there is none.

    A loop of a few iterations has none.
    """
    raised: frozenset[str]
    """The names that each iteration raises: `count += 1`, `seen += len(x)`."""
    set_anew: frozenset[str]
    """The names that the loop binds other than by `+=`, as in `count = 0`."""


def counts_of(loop: Loop) -> Counts:
    """The numbers that a loop counts."""
    adds = (each for each in loop.body if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add))
    raised = frozenset(each.target.id for each in adds if isinstance(each.target, ast.Name) and _is_count(each.value))
    added = {node.target for node in walk(loop) if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)}
    bound = {node for node in walk(loop) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    return Counts(_counter_of(loop), raised, frozenset(node.id for node in bound - added))


def loop_that_raises(name: str, loops: Iterable[tuple[Loop, Counts]]) -> Loop | None:
    """The outermost of some loops, inner ones first, in which a number is only raised, and in each iteration.

    Such a number is 0 in the first iteration alone. None if there is no such loop.
    """
    found: Loop | None = None
    for loop, counts in loops:
        if name in counts.set_anew:
            break
        if found is not None or name in counts.raised:
            found = loop
    return found


def _counter_of(loop: Loop) -> str:
    if isinstance(loop, ast.While):
        return ""
    name = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
    if not isinstance(name, ast.Name):
        return ""
    if isinstance(loop.target, ast.Tuple):
        counts = _is_counted(loop, name.id)
    else:
        calls = (node for node in walk(loop.iter) if isinstance(node, ast.Call))
        ranges = [call.args for call in calls if last_name(call) in ("range", "trange")]
        counts = len(ranges) == 1 and len(ranges[0]) == 1 and not _is_few(ranges[0][0])
    return name.id if counts and not any(_binds(each, name.id) for each in loop.body) else ""


def _is_count(node: ast.expr) -> bool:
    """True for `1`, `len(x)`, `x.size(0)` and `x.shape[0]`."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int and node.value > 0
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return isinstance(node, ast.Call) and last_name(node) in ("len", "size")


def _binds(statement: ast.stmt, name: str) -> bool:
    names = (node for node in walk(statement) if isinstance(node, ast.Name) and node.id == name)
    return any(isinstance(node.ctx, ast.Store) for node in names)


def _is_few(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value <= _FEW_TURNS


def _is_counted(loop: Loop, name: str) -> bool:
    """True if a name counts the iterations of a loop: `for i, x in enumerate(xs)`, `i += 1`."""
    if isinstance(loop, (ast.For, ast.AsyncFor)) and isinstance(loop.target, ast.Tuple):
        first = loop.target.elts[0]
        if isinstance(first, ast.Name) and first.id == name:
            return any(isinstance(each, ast.Call) and last_name(each) == "enumerate" for each in walk(loop.iter))
    adds = (each for each in loop.body if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add))
    return any(isinstance(each.target, ast.Name) and each.target.id == name for each in adds)
