"""The names of imports in a file, and the place for a new import."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from perflint.findings import Edit
from perflint.fixes.edits import in_newlines_of, insert
from perflint.frozen import dataclass
from perflint.semantics.binders import How, Imported
from perflint.semantics.symbols import Scope, Symbols
from perflint.source.text import Source


@dataclass(frozen=True, slots=True)
class Spelling:
    """How to write a full name at a place of a file.

    `imports` are the statements that the file lacks for it; they belong into `Fix.imports`.
    """

    text: str
    imports: tuple[str, ...] = ()


def spell(symbols: Symbols, name: str, at: ast.AST) -> Spelling | None:
    """How `name` ("torch.inference_mode") is written at `at`, with the imports that are visible there.

    The longest import wins: `from torch import inference_mode` over `import torch`. If no import serves, the root
    package is to be imported. None if the name that would be used means something else somewhere in the code around,
    and no other serves.
    """
    scopes = list(symbols.scope_around(at).chain)
    bound: dict[str, set[str]] = {}
    for each in _visible(symbols, scopes, at):
        bound.setdefault(each.local, set()).add(each.full)
    for prefix in beginnings(name):
        for local, full in bound.items():
            if full == {prefix} and not _is_rebound(symbols, local, scopes):
                return Spelling(local + name[len(prefix) :])
    root = name.partition(".")[0]
    if root in bound or _is_rebound(symbols, root, scopes):
        return None
    return Spelling(name, (f"import {root}",))


def beginnings(name: str) -> Iterator[str]:
    """A dotted name, and those of the objects that it is part of."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _visible(symbols: Symbols, scopes: Iterable[Scope], at: ast.AST) -> Iterator[Imported]:
    """The imports of the module, and those of the functions around a place that stand above it.

    Only those count that run whenever the module or function does.
    """
    line = getattr(at, "lineno", 0)
    for scope in scopes:
        for each in symbols.sure_imports.get(scope, ()):
            if scope is symbols.module or each.statement.lineno < line:
                yield each


def _is_rebound(symbols: Symbols, name: str, scopes: Iterable[Scope]) -> bool:
    """True if something other than an import binds a name in one of some scopes.

    `x = None` beside a guarded import does not count.
    """
    return any(
        binding.how is not How.IMPORT and not (isinstance(binding.value, ast.Constant) and binding.value.value is None)
        for scope in scopes
        if symbols.binds(scope, name)
        for binding in symbols.bound(scope)[name].bindings
    )


def _imports(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports of a block that run whenever it does; those of `try` do, or the code that needs them does not."""
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif isinstance(statement, (ast.Try, ast.TryStar)):
            yield from _imports(statement.body)


def import_edits(source: Source, statements: Iterable[str]) -> list[Edit]:
    """The insertions that bring the imports of `statements` that the file lacks, each once."""
    missing = [text for text in dict.fromkeys(statements) if not _has(source.tree, text)]
    by_place: dict[tuple[int, int, str, str], list[str]] = {}
    for text in missing:
        by_place.setdefault(_place(source, text), []).append(text)
    edits = []
    for (line, column, before, after), texts in by_place.items():
        edits.append(insert(line, column, in_newlines_of(source, line, before + "\n".join(sorted(texts)) + after)))
    return edits


def _has(tree: ast.Module, text: str) -> bool:
    (wanted,) = ast.parse(text).body
    assert isinstance(wanted, (ast.Import, ast.ImportFrom))
    return all(any(_gives(statement, wanted, alias) for statement in _imports(tree.body)) for alias in wanted.names)


def _gives(statement: ast.Import | ast.ImportFrom, wanted: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    if isinstance(wanted, ast.ImportFrom):
        if not isinstance(statement, ast.ImportFrom):
            return False
        if (statement.module, statement.level) != (wanted.module, wanted.level):
            return False
        return any((a.name, a.asname or a.name) == (alias.name, alias.asname or alias.name) for a in statement.names)
    if not isinstance(statement, ast.Import):
        return False
    if alias.asname:
        return any((a.name, a.asname) == (alias.name, alias.asname) for a in statement.names)
    return any(not a.asname and (a.name + ".").startswith(alias.name + ".") for a in statement.names)


def _place(source: Source, text: str) -> tuple[int, int, str, str]:
    """The place of a new import: line, column, and the texts to write before and after it.

    Above the first import of the same package; else below the imports that the file starts
    with; else below its docstring; else above its first statement.
    """
    body = source.tree.body
    root = _root(ast.parse(text).body[0])
    for statement in body:
        if _root(statement) == root:
            return statement.lineno, 1, "", "\n"
    head = _head(body)
    if head is None:
        return (_first_line(body[0]), 1, "", "\n\n") if body else (len(source.lines) + 1, 1, "", "\n")
    last = head.end_lineno or head.lineno
    gap = "" if isinstance(head, (ast.Import, ast.ImportFrom)) and not _is_future(head) else "\n"
    if last == len(source.lines) and not source.lines[-1].endswith(("\n", "\r")):
        return last, len(source.lines[-1]) + 1, "\n" + gap, ""
    return last + 1, 1, gap, "\n"


def _root(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Import):
        return statement.names[0].name.partition(".")[0]
    if isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module:
        return statement.module.partition(".")[0]
    return None


def _is_future(statement: ast.stmt) -> bool:
    return _root(statement) == "__future__"


def _head(body: list[ast.stmt]) -> ast.stmt | None:
    """The last of the docstring and imports that a module starts with."""
    last = None
    for index, statement in enumerate(body):
        docstring = (
            index == 0
            and isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
        )
        if not docstring and not isinstance(statement, (ast.Import, ast.ImportFrom)):
            break
        last = statement
    return last


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return decorators[0].lineno if decorators else statement.lineno
