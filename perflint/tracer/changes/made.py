"""The statement that makes a model, and the places for statements before and behind it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from perflint.findings import Edit, Span
from perflint.fixes.edits import indentation, insert
from perflint.frozen import dataclass
from perflint.semantics.scanning import scan
from perflint.semantics.structure import Structure, block_in, path_of
from perflint.semantics.symbols import Symbols
from perflint.source.text import Source
from perflint.tracer.changes.base import Refused

_RETURNING_SELF = frozenset("to cuda cpu train eval float half bfloat16 double requires_grad_ apply".split())
"""Methods of modules that return the module itself."""
_NAMES = ("model", "net", "module")
"""Names for a model that a function returns without binding it."""


@dataclass(frozen=True, slots=True)
class Made:
    """An object that a statement constructs and binds or returns."""

    source: Source
    structure: Structure
    symbols: Symbols
    statement: ast.Assign | ast.AnnAssign | ast.Return
    following: Sequence[ast.stmt]
    """The statements behind it in its block."""
    name: str
    """The name or path that it is bound to; for a `return`, a free name."""

    @property
    def is_returned(self) -> bool:
        """True if it is returned and not bound."""
        return isinstance(self.statement, ast.Return)

    @property
    def margin(self) -> str:
        """The white space that its statement starts with."""
        return indentation(self.source, self.statement.lineno)

    def before(self, text: str) -> Edit:
        """Insert a statement in front."""
        return insert(self.statement.lineno, 1, f"{self.margin}{text}\n")

    def behind(self, *statements: str) -> tuple[Edit, ...]:
        """Insert statements behind, and behind those that move the object directly afterwards."""
        edits = []
        last: ast.stmt = self.statement
        if isinstance(self.statement, ast.Return):
            start = self.source.span(self.statement)
            word = Span(start.line, start.column, start.line, start.column + len("return"))
            edits.append(Edit(word, f"{self.name} ="))
            statements = (*statements, f"return {self.name}")
        else:
            for each in self.following:
                if not self._moves(each):
                    break
                last = each
        end = self.source.span(last)
        margin = self.margin
        if end.end_line == len(self.source.lines) and not self.source.lines[-1].endswith(("\n", "\r")):
            text = "".join(f"\n{margin}{each}" for each in statements)
            edits.append(insert(end.end_line, len(self.source.lines[-1]) + 1, text))
        else:
            edits.append(insert(end.end_line + 1, 1, "".join(f"{margin}{each}\n" for each in statements)))
        return tuple(edits)

    def is_passed_to(self, *functions: str) -> bool:
        """True if a call of one of some functions in the file has the object, or one of its name, as its argument."""
        return any(
            any(path_of(given) == self.name for given in call.args) and (self.symbols.full_name(call.func) in functions)
            for call in self.calls
        )

    def has_call(self, method: str) -> bool:
        """True if a method of the object, or of one of its name, is called in the file.

        The method may belong to an attribute: `module.compile`.
        """
        return any(path_of(call.func) == f"{self.name}.{method}" for call in self.calls)

    @property
    def calls(self) -> list[ast.Call]:
        """All calls of the file."""
        return self.structure.every(ast.Call)

    def _moves(self, statement: ast.stmt) -> bool:
        """True for `model.to(device)` and `model = model.to(device)` on lines of their own."""
        if isinstance(statement, ast.Assign):
            value: ast.expr = statement.value
            if len(statement.targets) != 1 or path_of(statement.targets[0]) != self.name:
                return False
        elif isinstance(statement, ast.Expr):
            value = statement.value
        else:
            return False
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            return False
        is_move = value.func.attr in (*_RETURNING_SELF, "compile")
        return is_move and path_of(value.func.value) == self.name and has_own_lines(self.source, statement)


def made_at(source: Source, span: Span) -> Made:
    """The object that the call at `span` constructs. Raises Refused if no statement can follow it."""
    structure = scan(source.tree)
    found = next((node for node in structure.every(ast.Call) if _is_at(source, node, span)), None)
    if found is None:
        raise Refused("the place is not a call any more")
    node: ast.AST = found
    while (outer := _chained(structure, node)) is not None:
        node = outer
    statement = structure.parents[node]
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)) or statement.value is not node:
        raise Refused("the model is made inside a larger expression")
    if not has_own_lines(source, statement):
        raise Refused("its statement shares a line with others")
    symbols = Symbols(source.tree, structure)
    name = _bound(statement) if not isinstance(statement, ast.Return) else _free(symbols, statement)
    if not name:
        raise Refused("it is bound to several names, or to an element of a container")
    block = block_in(structure.parents.get(statement), statement)
    following = block[block.index(statement) + 1 :]
    return Made(source, structure, symbols, statement, following, name)


def _is_at(source: Source, node: ast.AST, span: Span) -> bool:
    return isinstance(node, ast.Call) and node.lineno == span.line and source.span(node) == span


def _chained(structure: Structure, node: ast.AST) -> ast.Call | None:
    """The call `node.to(…)` around a node, or None."""
    attribute = structure.parents.get(node)
    if not isinstance(attribute, ast.Attribute) or attribute.attr not in _RETURNING_SELF:
        return None
    call = structure.parents.get(attribute)
    return call if isinstance(call, ast.Call) and call.func is attribute else None


def _bound(statement: ast.Assign | ast.AnnAssign) -> str:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return path_of(targets[0]) if len(targets) == 1 else ""


def _free(symbols: Symbols, statement: ast.Return) -> str:
    """A name that is free in the scopes around a statement; empty if there is none."""
    scopes = list(symbols.scope_around(statement).chain)
    used = {node.id for scope in scopes for node in ast.walk(scope.node) if isinstance(node, ast.Name)}
    taken = {name for name in _NAMES if name in used or any(symbols.binds(scope, name) for scope in scopes)}
    return next((name for name in _NAMES if name not in taken), "")


def has_own_lines(source: Source, statement: ast.stmt) -> bool:
    """True if nothing but a comment shares the lines of a statement."""
    span = source.span(statement)
    before = source.lines[span.line - 1][: span.column - 1]
    after = source.lines[span.end_line - 1][span.end_column - 1 :].strip()
    return not before.strip() and (not after or after.startswith("#"))
