"""The modules, classes and functions of a text as blocks of words: enough to see which names each may use."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from perflint.semantics.structure import walk
from perflint.source.text import parse

_COMMENT = re.compile(
    r"(\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')|#[^\n]*", re.DOTALL
)
"""A string, which may hold `#`, or a comment."""
_WORD = re.compile(r"[^\W\d]\w*\b(?!\s*=[^=])")
"""A word that is not assigned: neither `name = …` nor `f(name=…)`."""
_FINDS_MODULES = re.compile(
    r"\b(?:import_module|__import__)\((?!\s*[\"'][\w.]+[\"']\s*\))"
    r"|\b(?:walk_packages|iter_modules|spec_from_file_location|__subclasses__|__init_subclass__)\b"
)
_FINDS_OWN = re.compile(r"(?<![\w.])(?:globals|eval|exec|vars)\(|\bsys\.modules\b|\bgetmembers\(")
_FINDS_METHODS = re.compile(r"\bgetattr\(\s*(?:self|cls)\s*,\s*(?![\"'])")
_FINDS_IN = re.compile(r"\bgetattr\(\s*(?:\w+\.)*(\w+)\s*,\s*(?![\"'])")
_STAR = re.compile(r"^[ \t]*from[ \t]+[\w.]*?(\w+)[ \t]+import[ \t]+\*", re.MULTILINE)
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^)]*\)|(?:[^\n;\\]|\\\n)*)|import[ \t]+(?:[^\n;\\]|\\\n)*)"
    r"|^__all__[ \t]*\+?=[ \t]*[\[(][^\])]*[\])]",
    re.MULTILINE,
)
"""An import, or the list of what a module offers: neither uses anything."""
_ALIAS = re.compile(r"(\w+)[ \t]+as[ \t]+(\w+)")
_MAY_NEVER_RUN = re.compile(r"\b(?:if|while)[ (]+(?:False|True|None|\d)|\brange\(-?\d+, *-?\d+\)")
"""Text of a block that never runs."""
_SET_UP = frozenset("append insert extend filterwarnings simplefilter basicConfig use setLevel".split())
"""Calls that prepare something when a module is imported: the module may still be no program."""
_PLAIN_DECORATORS = frozenset(
    """abstractmethod autocast cache cached_property classmethod compile contextmanager custom_bwd custom_fwd dataclass
    enable_grad final getter inference_mode jit lru_cache njit no_grad overload override property script setter
    staticmethod total_ordering typechecked wraps""".split()
)
"""Decorators that do not give a definition to other code."""


class Block(NamedTuple):
    """The code of a module, a class or a function, without that of the blocks in it."""

    name: str
    """As in `Class.method`; empty for the module."""
    line: int
    """Where its definition begins; 0 for the module."""
    words: frozenset[str]
    """The words that it may use, also those in strings; none of comments, docstrings, imports and `__all__`."""
    bases: tuple[str, ...] | None
    """The last words of the bases of a class; None for other blocks."""
    is_registered: bool
    """True if a decorator may give it to other code."""
    finds_modules: bool
    """True if it imports modules, or looks for classes, whose names it computes."""
    finds_own: bool
    """True if it looks for definitions of its own module by names that it computes."""
    finds_methods: bool
    """True if it looks for methods of its object by names that it computes."""
    finds_in: frozenset[str]
    """The modules or objects in which it looks for attributes by names that it computes."""


class Blocks(NamedTuple):
    """The blocks of a text."""

    blocks: tuple[Block, ...]
    """The module first."""
    is_program: bool
    """True if the module does something when it is run, or if it does not parse."""
    named: frozenset[str]
    """The words in its imports, in `__all__` and in strings: the modules that it uses are among them."""

    @property
    def holds_tests(self) -> bool:
        """True if the text asks for a library of tests, or has a `test_…` and asserts something."""
        has_test = any(block.name.rpartition(".")[2].startswith("test_") for block in self.blocks)
        return not self.named.isdisjoint(("pytest", "unittest")) or (has_test and "assert" in self.words)

    @property
    def words(self) -> frozenset[str]:
        """The words that any of its blocks may use."""
        return frozenset().union(*(block.words for block in self.blocks))


def blocks_of(text: str) -> Blocks:
    """The blocks of a text. One that does not parse, such as a notebook, is a program of one block."""
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        words = words_of(text)
        return Blocks((_block("", 0, text, [text], None, False)._replace(words=words),), True, words)
    lines = text.splitlines(keepends=True)
    found: list[Block] = []
    waiting: list[tuple[str, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]] = [("", tree)]
    idle = tuple(_never_run(tree)) if _MAY_NEVER_RUN.search(text) else ()
    for name, node in waiting:
        inner = () if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else tuple(_definitions(node.body))
        waiting += [(f"{name}.{each.name}" if name else each.name, each) for each in inner]
        start, end = (0, len(lines)) if isinstance(node, ast.Module) else (node.lineno - 1, node.end_lineno or 0)
        holes = [*_notes(node), *((each.lineno - 1, each.end_lineno or 0) for each in inner)]
        own = list(_without(start, end, [*holes, *(hole for hole in idle if start <= hole[0] and hole[1] <= end)]))
        bases = tuple(_last_word(base) for base in node.bases) if isinstance(node, ast.ClassDef) else None
        decorators = [] if isinstance(node, ast.Module) else node.decorator_list
        registered = any(_last_word(each) not in _PLAIN_DECORATORS for each in decorators)
        parts = ["".join(lines[one:two]) for one, two in own]
        found.append(_block(name, getattr(node, "lineno", 0), text, parts, bases, registered))
    return Blocks(tuple(found), any(_is_work(statement) for statement in tree.body), _named(text))


def words_of(text: str) -> frozenset[str]:
    """All words of a text that may be names."""
    return frozenset(map(sys.intern, _WORD.findall(text)))


def _named(text: str) -> frozenset[str]:
    return words_of(" ".join([*_IMPORT.findall(text), *filter(None, _COMMENT.findall(text))]))


def _block(
    name: str, line: int, text: str, parts: list[str], bases: tuple[str, ...] | None, is_registered: bool
) -> Block:
    code = _COMMENT.sub(r"\1", "".join(parts))
    imports = " ".join(_IMPORT.findall(code))
    return Block(
        name,
        line,
        # A name that is imported under another one is used by that.
        words_of(_IMPORT.sub("", code)) | {name for name, _ in _ALIAS.findall(imports)},
        bases,
        is_registered,
        finds_modules=_FINDS_MODULES.search(code) is not None,
        finds_own=(finds_own := _FINDS_OWN.search(code) is not None),
        finds_methods=_FINDS_METHODS.search(code) is not None,
        finds_in=frozenset(_unaliased(text, {*_FINDS_IN.findall(code), *(_STAR.findall(text) if finds_own else ())})),
    )


def _unaliased(text: str, names: set[str]) -> set[str]:
    """The names, and those for which they stand by `import name as alias`."""
    return names and names | {name for name, alias in _ALIAS.findall(text) if alias in names}


def _definitions(body: list[ast.stmt]) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for statement in body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield statement
        elif isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            for part in ("body", "orelse", "finalbody"):
                yield from _definitions(getattr(statement, part, []))
            for handler in getattr(statement, "handlers", []):
                yield from _definitions(handler.body)


def _notes(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, int]]:
    """The ranges of lines of the docstring and of other strings that stand for comments."""
    lines = [(each.lineno, each.end_lineno or each.lineno) for each in node.body]
    for index, each in enumerate(node.body):
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            first, last = lines[index]
            # A string in a line of other code has no lines of its own.
            before = lines[index - 1][1] if index else 0 if isinstance(node, ast.Module) else node.lineno
            after = lines[index + 1][0] if index + 1 < len(lines) else last + 1
            if before < first and last < after:
                yield first - 1, last


def _never_run(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """The ranges of lines of blocks that never run: below `if False:`, and below `for i in range(1, 1):`."""
    for each in walk(tree):
        if isinstance(each, (ast.If, ast.While)) and isinstance(each.test, ast.Constant):
            block = each.orelse if each.test.value else each.body
        elif isinstance(each, ast.For) and _is_empty_range(each.iter):
            block = each.body
        else:
            continue
        if block and block[0].lineno > each.lineno:
            yield block[0].lineno - 1, block[-1].end_lineno or 0


def _is_empty_range(node: ast.expr) -> bool:
    """True for `range(21, 21)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "range":
        return False
    given = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, int)]
    return bool(given) and len(given) == len(node.args) < 3 and not range(*given)


def _without(start: int, end: int, holes: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The ranges of lines that are left of one."""
    for one, two in sorted(holes):
        if one > start:
            yield start, one
        start = max(start, two)
    if end > start:
        yield start, end


def _last_word(node: ast.expr) -> str:
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_work(statement: ast.stmt) -> bool:
    """True for a statement of a module that does more than to define, to import and to prepare."""
    if isinstance(statement, ast.If):
        names = (node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name))
        return "__name__" in names
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _last_word(statement.value.func) not in _SET_UP
    return isinstance(statement, (ast.For, ast.While, ast.With))
