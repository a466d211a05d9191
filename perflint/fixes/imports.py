"""The names of imports in a file, and the place for a new import."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from perflint.findings import Edit
from perflint.fixes.edits import in_newlines_of, insert
from perflint.frozen import dataclass
from perflint.source.text import Source


@dataclass(frozen=True, slots=True)
class Spelling:
    """How to write a full name at a place of a file.

    `imports` are the statements that the file lacks for it; they belong into `Fix.imports`.
    """

    text: str
    imports: tuple[str, ...] = ()


def spell(source: Source, name: str, at: ast.AST) -> Spelling | None:
    """How `name` ("torch.inference_mode") is written at `at`, with the imports that are visible there.

    The longest import wins: `from torch import inference_mode` over `import torch`. Where no
    import serves, the root package is to be imported. None where the name that would be
    used means something else somewhere in the file, and no other serves.
    """
    names = _names_of(source.tree)
    line = getattr(at, "lineno", 0)
    scopes = list(names.around(line))
    bound = names.bindings(scopes, line)
    for prefix in _prefixes(name):
        for local in bound.locals.get(prefix, ()):
            if not _is_rebound(local, scopes):
                return Spelling(local + name[len(prefix) :])
    root = name.partition(".")[0]
    if root in bound.names or _is_rebound(root, scopes):
        return None
    return Spelling(name, (f"import {root}",))


def _prefixes(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


def _binding(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> tuple[str, str]:
    """The local name that an import binds, and what it stands for."""
    if isinstance(statement, ast.ImportFrom):
        return alias.asname or alias.name, f"{'.' * statement.level}{statement.module or ''}.{alias.name}"
    if alias.asname:
        return alias.asname, alias.name
    root = alias.name.partition(".")[0]
    return root, root


def _imports(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports of a block that run whenever it does; those of `try` do, or what needs them does not."""
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif isinstance(statement, (ast.Try, ast.TryStar)):
            yield from _imports(statement.body)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


class _Imported:
    """The names that imports bind, and the local names that only stand for a full name."""

    def __init__(self, statements: Iterable[ast.Import | ast.ImportFrom]) -> None:
        self.names: dict[str, set[str]] = {}
        for statement in statements:
            for alias in statement.names:
                local, full = _binding(statement, alias)
                self.names.setdefault(local, set()).add(full)
        self.locals: dict[str, list[str]] = {}
        for local, full_names in self.names.items():
            if len(full_names) == 1:
                self.locals.setdefault(next(iter(full_names)), []).append(local)


class _Names:
    """The names that a scope binds itself, by other things than imports, and the scopes right inside it.

    `x = None` beside a guarded import binds nothing.
    """

    def __init__(self, scope: ast.Module | _Scope) -> None:
        self.scope = scope
        self.bound: set[str] = set()
        inner: list[_Scope] = []
        waiting = list(ast.iter_child_nodes(scope))
        while waiting:
            node = waiting.pop()
            self.bound.update(_bound_by(node))
            if isinstance(node, _SCOPES):
                inner.append(node)
            elif not (
                isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None
            ):
                waiting.extend(ast.iter_child_nodes(node))
        inner.sort(key=lambda each: (each.lineno, each.col_offset))
        self._inner: list[_Scope] = inner
        self._names: dict[_Scope, _Names] = {}

    @cached_property
    def imports(self) -> list[ast.Import | ast.ImportFrom]:
        """The imports of a module or function."""
        is_block = isinstance(self.scope, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef))
        return list(_imports(self.scope.body)) if is_block else []  # type: ignore[arg-type]

    @cached_property
    def imported(self) -> _Imported:
        """The names of these imports."""
        return _Imported(self.imports)

    def around(self, line: int) -> Iterator[_Names]:
        """This scope and those inside it that a line belongs to."""
        yield self
        at = bisect_right(self._inner, line, key=lambda each: each.lineno)
        for scope in (self._inner[each] for each in range(at - 1, -1, -1)):
            if (scope.end_lineno or 0) < line:
                return
            if scope not in self._names:
                self._names[scope] = _Names(scope)
            yield from self._names[scope].around(line)

    def bindings(self, scopes: Iterable[_Names], line: int) -> _Imported:
        """The names of the imports of the module and of the functions around a line that stand above it."""
        local = [
            statement
            for each in scopes
            if isinstance(each.scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and each.scope.body[0].lineno <= line
            for statement in each.imports
            if statement.lineno < line
        ]
        return _Imported([*self.imports, *local]) if local else self.imported


@lru_cache(maxsize=4)
def _names_of(tree: ast.Module) -> _Names:
    return _Names(tree)


def _is_rebound(name: str, scopes: Iterable[_Names]) -> bool:
    """True if something other than an import binds a name in one of some scopes."""
    return any(name in scope.bound for scope in scopes)


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, _NAMED) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


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
    """Where a new import goes: line, column, and what to write before and after it.

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
