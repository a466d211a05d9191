"""The statement that an expression belongs to, and the block that it stands in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Edit
from perflint.fixes.edits import delete_statement, in_newlines_of, indentation, insert, with_last_comments
from perflint.semantics.around import inside
from perflint.semantics.dataflow.definitions import ways_out
from perflint.semantics.model import Model
from perflint.semantics.structure import block_in, names_in, stands_in, walk
from perflint.source.text import Source

_ASKING = frozenset({"is_available", "is_initialized", "device_count", "is_bf16_supported"})
"""Functions of torch that ask which devices and formats are available."""
LATER = (ast.Lambda, ast.GeneratorExp, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""Code that may run after names got other values."""
_SOMETIMES = (ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.Await, ast.Yield, ast.YieldFrom)
_LET_PASS = ("torch.", "accelerate.Accelerator.")
_TRIES = (ast.Try, ast.TryStar)


def block_of(model: Model, statement: ast.stmt) -> list[ast.stmt]:
    """The statements of the block of a statement, itself included; only itself if the block is unknown."""
    return block_in(model.parent(statement), statement) or [statement]


def mention_before(model: Model, statement: ast.stmt, name: str) -> ast.stmt | None:
    """The last statement with a name in front of another one, or in front of the `with` statements around that."""
    block = block_of(model, statement)
    for before in reversed(block[: block.index(statement)]):
        if name in names_in(before):
            return before
    around = model.parent(statement)
    # A `with` runs its body once.
    return mention_before(model, around, name) if isinstance(around, (ast.With, ast.AsyncWith)) else None


def shares_last_line(model: Model, loop: ast.stmt) -> bool:
    """True if something else follows the loop on its last line."""
    block = block_of(model, loop)
    after = block[block.index(loop) + 1 :]
    return bool(after) and after[0].lineno == loop.end_lineno


def outward(model: Model, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The nodes around a node up to the module, each with its part that leads there."""
    return ways_out(node, model.ancestors(node))


def outward_in_function(model: Model, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The same without the function, class or module around the node, and what is around that."""
    return ways_out(node, inside(model, node))


def always_runs(model: Model, node: ast.expr, statement: ast.stmt) -> bool:
    """True if an expression is evaluated whenever its statement runs."""
    for outer in model.ancestors(node):
        if outer is statement:
            return True
        if isinstance(outer, (*LATER, *_SOMETIMES)) or (isinstance(outer, ast.Compare) and len(outer.ops) > 1):
            return False
    return False


def line_before(source: Source, line: int, text: str) -> Edit:
    """The insertion of a line in front of another one, with the same indentation."""
    return insert(line, 1, in_newlines_of(source, line, f"{indentation(source, line)}{text}\n"))


def line_behind(source: Source, statement: ast.stmt, text: str) -> Edit | None:
    """The insertion of a line behind a compound statement and the comments that end it; None at the end of the text."""
    end = with_last_comments(source, source.span(statement)).end_line
    if end > len(source.lines) or not source.lines[end - 1].endswith(("\n", "\r")):
        return None
    return insert(end + 1, 1, in_newlines_of(source, end, f"{indentation(source, statement.lineno)}{text}\n"))


def removal(model: Model, statement: ast.stmt) -> Edit | None:
    """The deletion of a statement, together with an `if` that would hold nothing else.

    None if another block would be left empty, or if the test of the `if` may have effects.
    """
    block = block_of(model, statement)
    while len(block) == 1:
        outer = model.parent(statement)
        if not isinstance(outer, ast.If) or outer.orelse or not stands_in(outer.body, statement):
            return None
        if not _has_no_effect(model, outer.test):
            return None
        statement, block = outer, block_of(model, outer)
    return delete_statement(model.source, statement, block)


def _has_no_effect(model: Model, test: ast.expr) -> bool:
    """True if a test only looks at names, attributes, constants, and at which devices there are."""
    for node in walk(test):
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Subscript)):
            return False
        if isinstance(node, ast.Call):
            target = model.target(node)
            if not target.startswith("torch.") or target.rpartition(".")[2] not in _ASKING:
                return False
    return True


def swallows(model: Model, node: ast.AST) -> bool:
    """True if the function around a node may go on after an error in it: in a handler, or behind a `with`."""
    for outer, inner in outward_in_function(model, node):
        if isinstance(outer, _TRIES) and stands_in(outer.body, inner):
            return True
        if isinstance(outer, (ast.With, ast.AsyncWith)) and not all(lets_pass(model, item) for item in outer.items):
            return True
    return False


def lets_pass(model: Model, item: ast.withitem) -> bool:
    """True if a context is one of torch's or of Accelerate's, which let errors pass."""
    call = item.context_expr
    return isinstance(call, ast.Call) and model.target(call).startswith(_LET_PASS)
