"""Leftovers of deleted code: comments without code below them, blank lines, and unused imports."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

from perflint.findings import Edit, Span
from perflint.fixes.comments import is_for_tools
from perflint.fixes.edits import indentation
from perflint.fixes.rewrite import Offsets, Rewrite, rewrite
from perflint.semantics.binders import local_name
from perflint.source.text import Source

_WORD = re.compile(r"\w+")
_EXAMPLE = re.compile(r"^[ \t]*(?:>>>|\.\.\.) ?(.*)", re.MULTILINE)
"""A line of code in a docstring."""
_IMPORTS = (ast.Import, ast.ImportFrom)


def tidied(source: Source, changed: Rewrite) -> Rewrite:
    """The changed text without comments that stood right above deleted statements, if nothing of their block follows.

    Of blank lines above and below a deletion, the fewer ones go as well. `changed` has one stage.
    """
    edited, starts = Source("", changed.text), Offsets(source).starts
    lines, line_of = Offsets(edited).starts, {start: line for line, start in enumerate(starts, 1)}
    found: dict[int, Edit] = {}
    for piece in changed.stages[0].pieces:
        if piece.new_start == piece.new_end and piece.start < piece.end and {piece.start, piece.end} <= line_of.keys():
            below = bisect_left(lines, piece.new_start) + 1
            first = _first(edited, below, indentation(source, line_of[piece.start]))
            if first < below:
                found[below] = Edit(Span(first, 1, below, 1), "")
    return changed.then(rewrite(edited, found.values()))


def _first(edited: Source, below: int, depth: str) -> int:
    """The first line to delete above a line, where statements with an indentation are gone.

    Comments of the top level stay: they may be about the whole file.
    """
    follows = edited.lines[below - 1] if below <= len(edited.lines) else ""
    first = below
    if depth and (not follows.strip() or not follows.startswith(depth)):
        while first > 1 and _is_comment(edited, first - 1, depth):
            first -= 1
    above = _blank(edited, range(first - 1, 0, -1))
    at_the_end = below > len(edited.lines)
    return first - (above if at_the_end else min(above, _blank(edited, range(below, len(edited.lines) + 1))))


def _blank(source: Source, lines: Iterable[int]) -> int:
    """How many lines are blank, until one is not."""
    return sum(1 for _ in takewhile(lambda line: not source.lines[line - 1].strip(), lines))


def _is_comment(edited: Source, line: int, depth: str) -> bool:
    text = edited.lines[line - 1].strip()
    return text.startswith("#") and indentation(edited, line) == depth and not is_for_tools(text)


# Imports


def without_unused_imports(before: Source, after: Source, is_taken: Callable[[str], bool]) -> Rewrite:
    """The second text without the imports that it no longer uses, and the first does.

    `is_taken` tells which names other files use.
    """
    gone = _used(before.tree) - _used(after.tree)
    edits: list[Edit] = []
    for statement in _imported(after.tree):
        dropped = [alias for alias in statement.names if _local(alias) in gone]
        if dropped and not any(is_taken(_local(alias)) for alias in dropped):
            edits += _without(after, statement, dropped)
    return tidied(after, rewrite(after, edits))


def _imported(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """The imports of the top level."""
    return [statement for statement in tree.body if isinstance(statement, _IMPORTS)]


def _local(alias: ast.alias) -> str:
    """The name that an import binds; empty if it is for others: `from m import name as name`, `import *`."""
    if alias.name in ("*", alias.asname):
        return ""
    return local_name(alias)


def _used(tree: ast.Module) -> set[str]:
    """The names that a file uses, also in strings: annotations, `__all__`, code in docstrings."""
    found: set[str] = set()
    docstrings = set(_docstrings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= _used_in_examples(node.value) if node in docstrings else set(_WORD.findall(node.value))
    return found


def _used_in_examples(text: str) -> set[str]:
    """The names that the examples of a docstring take from their file: all but those that they import themselves."""
    code = "\n".join(_EXAMPLE.findall(text))
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return set(_WORD.findall(text))
    own = {_local(alias) for node in ast.walk(tree) if isinstance(node, _IMPORTS) for alias in node.names}
    return _used(tree) - own


def _docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _without(source: Source, statement: ast.Import | ast.ImportFrom, dropped: list[ast.alias]) -> Iterator[Edit]:
    """The deletion of some names of an import; nothing if it would take along a comment or other code."""
    span = source.span(statement)
    first, last = source.lines[span.line - 1], source.lines[span.end_line - 1]
    if first[: span.column - 1].strip() or last[span.end_column - 1 :].strip():
        return
    if len(dropped) == len(statement.names):
        if "#" not in source.segment(span):
            yield Edit(Span(span.line, 1, span.end_line + 1, 1), "")
        return
    edits = list(_between(source, statement.names, dropped))
    if not any("#" in source.segment(edit.span) for edit in edits):
        yield from edits


def _between(source: Source, names: list[ast.alias], dropped: list[ast.alias]) -> Iterator[Edit]:
    """The deletion of some names and of the commas that part them from those that stay."""
    spans = [source.span(alias) for alias in names]
    last_kept = max(at for at, alias in enumerate(names) if alias not in dropped)
    for at, alias in enumerate(names[:last_kept]):
        if alias in dropped:
            yield Edit(Span(spans[at].line, spans[at].column, spans[at + 1].line, spans[at + 1].column), "")
    if last_kept < len(names) - 1:
        kept, end = spans[last_kept], spans[-1]
        yield Edit(Span(kept.end_line, kept.end_column, end.end_line, end.end_column), "")
