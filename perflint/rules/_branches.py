"""Advice for tests of tensors, by the code that a test decides on."""

from __future__ import annotations

import ast

from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import conventions
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, last_name, path_of, walk

CHOOSE = "Compute both and choose on the GPU (`torch.where`, `clamp`), or test a value that is already on the CPU."
_ASSERT = "Check on the GPU with `torch._assert_async`, or only in tests."
_WHILE = "Test every 10 iterations, or run a fixed number of them."
_STOP = "Test every 10 iterations, if a few more do no harm, or stop by a value that is already on the CPU."
_REPORT = "Check every 100 steps, or keep the answer on the GPU and read it later."
_READ_ONCE = "Read the number first, and test the number: that is one wait in place of two."
_FILTER = "Get all answers at once: stack them, and read them with one `.tolist()`."
_ON_CPU = "Only the CPU can branch: test a value that is already there, such as a shape, a setting or a count."


@once_per_node
def tested(model: Model, decided: ast.AST) -> str:
    """Advice for a test of a tensor, or of a number of one: `decided` is the statement or expression with the test."""
    if isinstance(decided, ast.Assert):
        return _ASSERT
    if isinstance(decided, ast.While):
        return _WHILE
    if isinstance(decided, ast.comprehension):
        return _FILTER
    if is_choice(model, decided):
        return CHOOSE
    if _reads_again(decided):
        return _READ_ONCE
    if isinstance(decided, ast.If):
        if any(map(_reports, (decided.body, decided.orelse))):
            return _REPORT
        if _stops(model, decided):
            return _STOP
    return _ON_CPU


def is_choice(model: Model, decided: ast.AST) -> bool:
    """True if a test does nothing but choose between tensors, which the GPU can do without the CPU."""
    if isinstance(decided, ast.IfExp):
        return all(_is_tensor(model, branch) for branch in (decided.body, decided.orelse))
    if not isinstance(decided, ast.If):
        return False
    statements = [*decided.body, *decided.orelse]
    return all(_computes(model, each) for each in statements)


def _reads_again(decided: ast.AST) -> bool:
    """True if a branch reads the number of a tensor that the test asks: `0 if loss == 0 else loss.item()`."""
    if not isinstance(decided, (ast.If, ast.IfExp)):
        return False
    asked = {path_of(part) for part in walk(decided.test) if isinstance(part, (ast.Name, ast.Attribute))}
    branches = [decided.body, decided.orelse] if isinstance(decided, ast.IfExp) else [*decided.body, *decided.orelse]
    calls = [*calls_in(*branches)]
    read = [call.func.value for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "item"]
    return any(path_of(node) in asked for node in read if isinstance(node, (ast.Name, ast.Attribute)))


def _computes(model: Model, statement: ast.stmt) -> bool:
    """True if a statement only computes tensors: none that leaves a loop, calls for an effect or counts."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)):
        in_loop = isinstance(statement, ast.Return) and any(map(_is_loop, model.ancestors(statement)))
        return statement.value is not None and not in_loop and _is_tensor(model, statement.value)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        return isinstance(func, ast.Attribute) and func.attr.endswith("_") and _is_tensor(model, func.value)
    return is_choice(model, statement)


def _is_tensor(model: Model, node: ast.expr) -> bool:
    return model.value(node).tensor is not None


def _is_loop(node: ast.AST) -> bool:
    return isinstance(node, LOOPS)


def _stops(model: Model, decided: ast.If) -> bool:
    """True if a branch ends the loop around it."""
    in_loop = any(map(_is_loop, model.ancestors(decided)))
    last = [block[-1] for block in (decided.body, decided.orelse) if block]
    return in_loop and any(isinstance(each, (ast.Break, ast.Return)) for each in last)


def _reports(block: list[ast.stmt]) -> bool:
    """True if a block only raises, warns or logs."""
    return bool(block) and all(isinstance(each, ast.Raise) or _logs(each) for each in block)


def _logs(statement: ast.stmt) -> bool:
    calls = [*calls_in(statement)]
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return is_call and any(conventions.writes_log(last_name(call)) for call in calls)
