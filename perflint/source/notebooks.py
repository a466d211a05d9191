"""Jupyter notebooks as Python text, and changed text as a notebook.

The code cells are joined to one text, with a line such as `# %% cell 3` between them. Magics and shell commands
become comments or `pass`, and so do the lines of a cell that does not parse: each line of a cell stays one line. A
changed text is taken apart at the same lines. Only the JSON strings of cells that changed are written anew; all other
bytes of the document stay as they are.
"""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

from perflint.frozen import dataclass
from perflint.source.magics import hidden, masked
from perflint.source.text import parse

_OLDEST = 4
"""The first version of the format that has its cells where they are today."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_BORDER = re.compile(r"# ~*%% cell \d+$")
"""The line before a cell, with a mark of `_unused`."""
_END = re.compile(r"\r\n|\r|\n")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


_NOT_IN_CODE = re.compile("[\0\ud800-\udfff]")
"""Characters that Python reads nowhere, not even in a comment."""


class NotebookError(ValueError):
    """A document that is not a notebook, or a text that cannot be one."""

    def __init__(self, message: str, help: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.line = line


@dataclass(frozen=True, slots=True)
class Token:
    """A JSON string of a document: its value, and where it stands with its quotes."""

    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell."""

    number: int
    """Its place among all cells, from 1."""
    start: int
    """The offset of its source in the document: a string, or a list of strings."""
    end: int
    tokens: tuple[Token, ...]
    is_list: bool

    @property
    def source(self) -> str:
        """Its code as it is shown in the notebook."""
        return "".join(token.value for token in self.tokens)


class Notebook:
    """A notebook: the text of its code, and the way back."""

    def __init__(self, document: str) -> None:
        """Raises NotebookError for a document that is not a notebook."""
        self.document = document
        self.cells: tuple[Cell, ...] = tuple(_code_cells(document))
        sources = [cell.source for cell in self.cells]
        self._mark = _unused("magic: ", sources)
        self._border = _unused("%% cell ", sources)
        self._masked = [masked(source, self._mark) for source in sources]
        self._borders = [f"# {self._border}{cell.number}\n" for cell in self.cells[1:]]
        found = _parsed_code("".join(self._bordered()))
        errors = self._hide_broken() if isinstance(found, SyntaxError) else []
        parts = self._bordered()
        self.text: str = "".join(parts)
        self.tree: ast.Module | None = found if isinstance(found, ast.Module) else None
        """The syntax tree of the text; None if a cell does not parse, or if the text cannot be parsed."""
        counts = [len(_LINE.findall(part)) for part in parts]
        self._firsts = [1 + before for before in accumulate(counts[:-1], initial=0)] if counts else []
        self.broken: tuple[tuple[int, SyntaxError], ...] = tuple(
            (self.line(number, error.lineno or 1), error) for number, error in errors
        )
        """The errors of cells that do not parse, each with its line in the text, which has these cells as comments."""

    def _bordered(self) -> list[str]:
        """The code of the cells, each with the line before it."""
        # The text begins with the code of its first cell, so that an inserted import is part of a cell.
        borders = ["", *self._borders][: len(self._masked)]
        return [f"{border}{_ended(text)}" for border, text in zip(borders, self._masked, strict=True)]

    def _hide_broken(self) -> list[tuple[int, SyntaxError]]:
        """The numbers of the cells that do not parse, with their errors. Their lines become comments."""
        found = []
        for index, cell in enumerate(self.cells):
            error = _parsed_code(self._masked[index])
            if isinstance(error, SyntaxError):
                found.append((cell.number, error))
                self._masked[index] = _NOT_IN_CODE.sub("?", hidden(cell.source, self._mark))
        return found

    def place(self, line: int) -> tuple[int, int]:
        """The index of the cell that a line of the text belongs to, and the line in it, both as they are counted.

        The index is that of `cells`, from 0; the line counts from 1.
        """
        index = max(bisect_right(self._firsts, line) - 1, 0)
        # All cells but the first have a border before them.
        return index, max(line - self._firsts[index] + (index == 0), 1)

    def line(self, number: int, within: int) -> int:
        """The line of the text that is a line of the cell with a number; 1 if there is no such cell."""
        for index, cell in enumerate(self.cells):
            if cell.number == number:
                return self._firsts[index] + within - (index == 0)
        return 1

    def document_line(self, line: int) -> int:
        """The line of the document that a line of the text stands in."""
        index, within = self.place(line)
        cell = self.cells[index]
        at, lines = cell.start, 0
        for token in cell.tokens:
            at = token.start
            lines += len(_LINE.findall(token.value))
            if lines >= within:
                break
        return len(_END.findall(self.document, 0, at)) + 1

    def written(self, text: str) -> str:
        """The document with a changed text. Raises NotebookError if it cannot be taken apart into the same cells."""
        parts = self._parts(text)
        pieces: list[str] = []
        done = 0
        for cell, old, new in zip(self.cells, self._masked, parts, strict=True):
            if not old.endswith(("\n", "\r")):
                new = new.removesuffix("\n")
            if new != old:
                pieces += (self.document[done : cell.start], self._encoded(cell, self._restored(old, new, cell.number)))
                done = cell.end
        return "".join([*pieces, self.document[done:]])

    def _parts(self, text: str) -> list[str]:
        """The texts of the cells."""
        found: list[list[str]] = [[]]
        borders = []
        for line in _LINE.findall(text):
            if line.startswith(f"# {self._border}"):
                borders.append(line)
                found.append([])
            else:
                found[-1].append(line)
        if borders != self._borders:
            raise NotebookError("the fixed code cannot be divided into the cells of the notebook")
        return ["".join(lines) for lines in found][: len(self.cells)]

    def _restored(self, old: str, new: str, number: int) -> str:
        """The code of a cell with its magics."""
        if any(_NOT_IN_CODE.search(cell.source) for cell in self.cells if cell.number == number):
            raise NotebookError(f"a fix would change cell {number}, which holds a null or half a character")
        marked = [line for line in _LINE.findall(old) if self._mark in line]
        lines = _LINE.findall(new)
        if [line.rstrip("\r\n") for line in lines if self._mark in line] != [line.rstrip("\r\n") for line in marked]:
            raise NotebookError(f"a fix would change a magic command of cell {number}")
        restored = "".join(self._unmasked(line) for line in lines)
        if self._unmasked(old).lstrip().startswith("%%") and not restored.lstrip().startswith("%%"):
            raise NotebookError(f"a fix would put code before the magic command of cell {number}")
        return restored

    def _unmasked(self, line: str) -> str:
        before, mark, after = line.partition(f"# {self._mark}")
        return f"{before.removesuffix('pass  ')}{after}" if mark else line

    def _encoded(self, cell: Cell, source: str) -> str:
        """The source of a cell as JSON, in the style of the document."""
        if not cell.is_list:
            return self._string(source)
        raw = self.document
        known = {token.value: raw[token.start : token.end] for token in cell.tokens}
        opening, joint, closing = self._style(cell)
        strings = [known.get(line) or self._string(line) for line in _LINE.findall(source)]
        return f"[{opening}{joint.join(strings)}{closing}]" if strings else "[]"

    def _style(self, cell: Cell) -> tuple[str, str, str]:
        """The text before, between and after the strings of a cell; that of another cell if it has none or one."""
        own = cell if cell.tokens else next((each for each in self.cells if each.is_list and each.tokens), None)
        if own is None:
            return "", ", ", ""
        raw, tokens = self.document, own.tokens
        opening, closing = raw[own.start + 1 : tokens[0].start], raw[tokens[-1].end : own.end - 1]
        joint = raw[tokens[0].end : tokens[1].start] if len(tokens) > 1 else f",{opening or ' '}"
        return opening, joint, closing

    @cached_property
    def _escapes(self) -> bool:
        """True if the document writes all characters outside of ASCII as escapes."""
        return self.document.isascii() and "\\u" in self.document

    def _string(self, value: str) -> str:
        return json.dumps(value, ensure_ascii=self._escapes)


def _parsed_code(text: str) -> ast.Module | SyntaxError:
    """The syntax tree of a text, or the reason why there is none."""
    try:
        return parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(f"cannot be parsed: {error or type(error).__name__}")


def _ended(text: str) -> str:
    return text if not text or text.endswith(("\n", "\r")) else f"{text}\n"


def borders_in(lines: Sequence[str]) -> list[int]:
    """The numbers of the lines of a notebook's text that stand between its cells."""
    return [number for number, line in enumerate(lines, 1) if _BORDER.match(line)]


def _unused(mark: str, sources: list[str]) -> str:
    """A mark that no source holds."""
    while any(mark in source for source in sources):
        mark = f"~{mark}"
    return mark


def _code_cells(document: str) -> Iterator[Cell]:
    """The code cells of a notebook in Python; none if its language is another. Raises NotebookError."""
    parsed = _parsed(document)
    if not isinstance(parsed, dict) or not isinstance(parsed.get("nbformat"), int):
        raise NotebookError("not a notebook: it has no `nbformat`")
    if parsed["nbformat"] < _OLDEST:
        help = "convert it: `jupyter nbconvert --to notebook NOTEBOOK`"
        raise NotebookError(f"version {parsed['nbformat']} of the notebook format is not read", help)
    if not isinstance(parsed.get("cells"), list):
        raise NotebookError("not a notebook: it has no list of cells")
    if not _is_python(parsed.get("metadata")):
        return
    start = dict(_members(document, _after_space(document, 0)))["cells"]
    for number, at in enumerate(_items(document, start), 1):
        value = parsed["cells"][number - 1]
        if not isinstance(value, dict):
            raise NotebookError(f"cell {number} is not an object")
        if value.get("cell_type") == "code":
            found = dict(_members(document, at)).get("source")
            if found is None:
                raise NotebookError(f"cell {number} has no source")
            yield _cell(document, number, found)


def _parsed(document: str) -> Any:
    try:
        return json.loads(document)
    except json.JSONDecodeError as error:
        raise NotebookError(f"not a notebook: not JSON: {error.msg}", line=error.lineno) from None
    except RecursionError:
        raise NotebookError("not a notebook: its JSON is nested too deeply") from None
    except ValueError:
        raise NotebookError("not a notebook: a number in it has thousands of digits") from None


def _is_python(metadata: object) -> bool:
    """True unless the notebook names another language."""
    values = metadata if isinstance(metadata, dict) else {}
    kernel, info = values.get("kernelspec"), values.get("language_info")
    named = (info or {}).get("name") if isinstance(info, dict) else None
    if named is None and isinstance(kernel, dict):
        named = kernel.get("language")
    return not isinstance(named, str) or named.lower() in ("python", "ipython")


def _cell(document: str, number: int, start: int) -> Cell:
    end = _end(document, start)
    if document[start] == '"':
        return Cell(number, start, end, (Token(json.loads(document[start:end]), start, end),), False)
    if document[start] != "[":
        raise NotebookError(f"the source of cell {number} is neither a text nor a list of texts")
    tokens = []
    for at in _items(document, start):
        if document[at] != '"':
            raise NotebookError(f"the source of cell {number} is not a list of texts")
        stop = _end(document, at)
        tokens.append(Token(json.loads(document[at:stop]), at, stop))
    return Cell(number, start, end, tuple(tokens), True)


# Places in a document that is known to be JSON.


def _after_space(document: str, at: int) -> int:
    found = _SPACE.match(document, at)
    return found.end() if found else at


def _end(document: str, at: int) -> int:
    """The end of the value that starts at a place."""
    return _DECODER.raw_decode(document, at)[1]


def _members(document: str, at: int) -> Iterator[tuple[str, int]]:
    """The keys of an object, and where their values start."""
    at = _after_space(document, at + 1)
    while document[at] != "}":
        key, end = _DECODER.raw_decode(document, at)
        # A colon, or a comma before the next key, and space around it.
        start = _after_space(document, _after_space(document, end) + 1)
        yield key, start
        at = _after_comma(document, _end(document, start))


def _items(document: str, at: int) -> Iterator[int]:
    """The offsets at which the items of a list start."""
    at = _after_space(document, at + 1)
    while document[at] != "]":
        yield at
        at = _after_comma(document, _end(document, at))


def _after_comma(document: str, at: int) -> int:
    at = _after_space(document, at)
    return _after_space(document, at + 1) if document[at] == "," else at
