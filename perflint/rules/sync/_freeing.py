"""Code that is there to free memory, or that does so once."""

from __future__ import annotations

import ast

from perflint.rules._statements import block_of
from perflint.semantics.around import Loop, inside, loops_around, targets
from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import rule_conventions
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, names_in, walk

_HOUSEKEEPING = ("gc.", "time.", "logging.", "psutil.", "os.", "ctypes.", "torch.cuda.", "torch.accelerator.")


def frees_memory(model: Model, node: ast.AST) -> bool:
    """True if the function around a call does nothing but free memory, and measure and tell how much it was."""
    function = model.function(node)
    if function is None:
        return False
    return all(_is_housekeeping(model, call) for call in walk(function) if isinstance(call, ast.Call))


def _is_housekeeping(model: Model, call: ast.Call) -> bool:
    if model.target(call).startswith(_HOUSEKEEPING):
        return True
    return bool(rule_conventions.frees_memory(last_name(call)))


def measures_memory(model: Model, node: ast.AST) -> bool:
    """True if the function around a call measures memory, or handles the lack of it."""
    function = model.function(node)
    if function is None:
        return False
    for part in walk(function):
        if isinstance(part, ast.Call) and model.target(part).rpartition(".")[2] in _MEASURES:
            return True
        if isinstance(part, ast.ExceptHandler) and part.type is not None and "OutOfMemory" in ast.dump(part.type):
            return True
    return False


_MEASURES = frozenset(
    """max_memory_allocated max_memory_reserved memory_allocated memory_reserved memory_stats mem_get_info
    reset_peak_memory_stats reset_max_memory_allocated memory_summary""".split()
)


def asks_for_memory(model: Model, test: ast.expr) -> bool:
    """True if a test measures memory."""
    return any(isinstance(node, ast.Call) and "mem" in model.target(node) for node in walk(test))


def is_retry(loop: Loop) -> bool:
    """True if a loop tries something again until it succeeds: each further iteration follows a failure."""
    if not isinstance(loop, (ast.For, ast.While)):
        return False
    for statement in loop.body:
        if isinstance(statement, ast.Try) and statement.handlers:
            if any(isinstance(each, (ast.Return, ast.Break)) for each in (*statement.body, *statement.orelse)):
                return True
            if isinstance(loop.body[-1], (ast.Return, ast.Break)):
                return True
    return False


def ends_loop(model: Model, node: ast.AST) -> bool:
    """True if a branch with a node leaves the loop around it at its end, so that it runs once for the whole loop."""
    if next(loops_around(model, node), None) is None:
        return False
    for outer in (node, *inside(model, node)):
        if isinstance(outer, LOOPS):
            return False
        if isinstance(outer, ast.stmt) and isinstance(block_of(model, outer)[-1], _LEAVE):
            return True
    return False


_LEAVE = (ast.Return, ast.Break)


def is_once(model: Model, branch: ast.If) -> bool:
    """True if a branch runs when a counter has a certain value: `if step == 1000:`."""
    test = branch.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    return any(
        _is_number(one) and isinstance(other, (ast.Name, ast.Attribute)) and _counts(model, branch, other)
        for one, other in (sides, sides[::-1])
    )


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _counts(model: Model, branch: ast.If, counter: ast.expr) -> bool:
    """True if the loops around a branch count with a name or attribute."""
    text = ast.unparse(counter)
    for loop in loops_around(model, branch):
        if any(text in names_in(target) for target, _ in targets(loop)):
            return True
    around = model.function(branch) or model.module.tree
    return any(isinstance(each, ast.AugAssign) and ast.unparse(each.target) == text for each in walk(around))
