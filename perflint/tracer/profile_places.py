"""The places of a project that the Python frames of a profile stand for.

A frame has the name of its function and the line at which that begins, or at which it was when the profile began. It
does not have the line of each call. So a wait is placed by the function and the name that it calls: `item`.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from perflint.frozen import dataclass
from perflint.source.files import is_below
from perflint.source.reading import Unreadable, read
from perflint.source.text import Source
from perflint.tracer.events import Place
from perflint.tracer.places import TEXT_LIMIT

_FRAME = re.compile(r"(?P<file>.+?\.py)\((?P<line>\d+)\): (?P<function>.+)")
BUILT_IN = "<built-in "
_BUILT_IN = re.compile(rf"{BUILT_IN}(?:method|function) (\w+)")
_DEPTH, _MOST_FOLDERS = 3, 2_000
"""Of the folders from which imports may start."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTIONS = (*_DEFINITIONS, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CONDITIONS = (ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.TryStar, ast.Match, ast.comprehension)
_NUMBERS = frozenset({"float", "int", "bool", "complex", "round"})
TRUTH = "bool()"
"""The name for a test of a tensor, which Python calls without a frame."""
NUMBER = "float()"
"""The same for the conversion of a tensor to a number, which an index needs, too."""
INDEX = "[]"
"""The same for the selection of elements by a tensor."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A Python function, as a profile names it."""

    file: str
    line: int
    function: str


def frame_of(name: str) -> Frame | None:
    """The Python function that an event names; None for built-in functions and modules."""
    found = _FRAME.fullmatch(name)
    return None if found is None else Frame(found["file"], int(found["line"]), found["function"])


def called(name: str) -> str:
    """The name by which code calls the function of an event; empty if there is none."""
    if built_in := _BUILT_IN.match(name):
        return built_in[1]
    frame = frame_of(name)
    return "" if frame is None else frame.function.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The expressions of a function that a call may be; `in_order` if each run of the code evaluates each once."""

    places: tuple[Place, ...]
    in_order: bool


class Files:
    """The files of the project below a folder."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, _File | None] = {}

    def has(self, frame: Frame) -> bool:
        """True if a frame is of a file of the project, and its function is where it was."""
        file = self._file(frame.file)
        return file is not None and file.function(frame) is not None

    def candidates(self, frame: Frame, name: str) -> Candidates:
        """The expressions of a function that call a name."""
        file = self._file(frame.file)
        return Candidates((), False) if file is None else file.candidates(frame, name)

    def sources(self) -> Iterator[tuple[str, Source]]:
        """The files that frames were found in."""
        for file in self._known.values():
            if file is not None and file.is_used:
                yield file.name, file.source

    def _file(self, name: str) -> _File | None:
        if name not in self._known:
            self._known[name] = self._found(name)
        return self._known[name]

    def _found(self, name: str) -> _File | None:
        """The file below the root that a profile names, in absolute form or relative to a folder of `sys.path`."""
        if os.path.isabs(name):
            paths = [name] if is_below(os.path.realpath(name), os.path.realpath(self._root)) else []
        else:
            paths = [os.path.join(folder, name) for folder in self._folders.get(name.partition("/")[0], ())]
        for path in paths:
            if os.path.isfile(path):
                try:
                    source = Source(path, read(path).text)
                    source.tree  # noqa: B018
                except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
                    continue
                return _File(os.path.relpath(path, self._root).replace(os.sep, "/"), source)
        return None

    @cached_property
    def _folders(self) -> dict[str, list[str]]:
        """The folders near the root by the names of their entries, the root first."""
        found: dict[str, list[str]] = {}
        level, seen = [self._root], 0
        for _ in range(_DEPTH):
            below: list[str] = []
            for folder in level:
                seen += 1
                for entry in _entries(folder) if seen <= _MOST_FOLDERS else ():
                    found.setdefault(entry.name, []).append(folder)
                    if entry.is_dir(follow_symlinks=False) and not entry.name.startswith((".", "_")):
                        below.append(entry.path)
            level = below
        return found


class _File:
    """A file of the project."""

    def __init__(self, name: str, source: Source) -> None:
        self.name = name
        self.source = source
        self.is_used = False
        """True if a frame is of one of its functions."""
        self._functions: dict[Frame, ast.AST | None] = {}

    def function(self, frame: Frame) -> ast.AST | None:
        """The function of a frame; None if the file no longer has it there."""
        if frame not in self._functions:
            self._functions[frame] = self._found(frame)
            self.is_used = self.is_used or self._functions[frame] is not None
        return self._functions[frame]

    def _found(self, frame: Frame) -> ast.AST | None:
        if frame.function == "<module>":
            return self.source.tree
        name = frame.function.rpartition(".")[2]
        around = [node for node in ast.walk(self.source.tree) if isinstance(node, _DEFINITIONS) and node.name == name]
        around = [node for node in around if _first_line(node) <= frame.line <= (node.end_lineno or node.lineno)]
        return max(around, key=lambda node: node.lineno, default=None)

    def candidates(self, frame: Frame, name: str) -> Candidates:
        """The expressions of a function that call a name."""
        function = self.function(frame)
        if function is None:
            return Candidates((), False)
        parents = {inner: outer for outer in _own(function) for inner in ast.iter_child_nodes(outer)}
        nodes = [node for node in parents if isinstance(node, ast.expr) and _is_call_of(node, parents[node], name)]
        nodes.sort(key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
        loops = {_loop_around(node, function, parents) for node in nodes}
        in_order = len(loops) == 1 and None not in loops and name not in (TRUTH, NUMBER, INDEX)
        return Candidates(tuple(self._place(node, frame) for node in nodes), in_order)

    def _place(self, node: ast.expr, frame: Frame) -> Place:
        span = self.source.span(node)
        text = self.source.lines[span.line - 1].strip()[:TEXT_LIMIT]
        return Place(self.name, span.line, span.column, span.end_line, span.end_column, frame.function, text)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions in it."""
    pending = [function]
    while pending:
        node = pending.pop()
        if node is function or not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node
            pending += ast.iter_child_nodes(node)


def _is_call_of(node: ast.expr, parent: ast.AST, name: str) -> bool:
    """True if an expression may be the call, test, conversion or index that `name` stands for."""
    if name == TRUTH:
        return _is_test(node, parent)
    if name in (INDEX, NUMBER) and isinstance(node, ast.Subscript):
        return _is_dynamic(node)
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if name == NUMBER:
        return isinstance(function, ast.Name) and function.id in _NUMBERS | {"range"}
    return name == (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None))


def _is_dynamic(node: ast.Subscript) -> bool:
    """True if an index has other parts than constants."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    ends = [end for part in parts for end in _ends(part)]
    return not all(isinstance(end, (ast.Constant, ast.UnaryOp)) for end in ends)


def _ends(part: ast.expr) -> list[ast.expr]:
    """A part of an index, or the ends of a slice."""
    if not isinstance(part, ast.Slice):
        return [part]
    return [end for end in (part.lower, part.upper, part.step) if end is not None]


def _is_test(node: ast.expr, parent: ast.AST) -> bool:
    """True for an expression whose truth a statement tests, unless it is certainly not a tensor."""
    if isinstance(node, (ast.BoolOp, ast.Constant)) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return False
    if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
        return False
    if isinstance(parent, (ast.If, ast.While, ast.Assert, ast.IfExp)):
        return parent.test is node
    if isinstance(parent, ast.comprehension):
        return node in parent.ifs
    is_not = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    of_bool = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "bool"
    return is_not or isinstance(parent, ast.BoolOp) or (of_bool and node is not getattr(parent, "func", None))


def _loop_around(node: ast.AST, function: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST | None:
    """The innermost loop around an expression, or the function; None if a condition may skip the expression."""
    while node is not function:
        above = parents[node]
        if isinstance(above, _CONDITIONS):
            return None
        if isinstance(above, _LOOPS):
            return above if node in above.body else None
        node = above
    return function


def shared(candidates: Sequence[Place], name: str, function: str) -> str:
    """The sentence part for waits that may be at several places."""
    words = {TRUTH: "tests", NUMBER: "conversions and indices", INDEX: "indices"}
    calls = words.get(name, f"calls of `{name}`")
    return f"one of {len(candidates)} {calls} in `{function}`"
