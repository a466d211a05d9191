"""The commands of IPython in a cell: magics, shell commands and help, which are not Python."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_COMMAND = re.compile(
    r"""[ \t]*(?:
        [%!?]                                          # %magic, !command, ?name
        | [\w.,()\[\]* \t]+ = [ \t]* (?:!|%(?=[A-Za-z]))   # files = !ls
        | [^\#"']* [\w*\]] \?{1,2} [ \t;]* (?:\#.*)? $     # name?, x = name?
    )""",
    re.VERBOSE,
)
"""The start of a statement that is a command."""
_WORDS = (
    "cat cd conda config cp env less load load_ext ls mamba man matplotlib micromamba mkdir more mv pip prun pylab "
    "reload_ext rm rmdir run set_env time timeit uv who whos"
)
_ALONE = re.compile(rf"(?:{'|'.join(_WORDS.split())})[ \t]+[\w./~$-]")
"""The start of a magic without its `%`, which a cell of one line may have."""
_OPENING = re.compile(r"\"\"\"|'''|[\"'#()\[\]{}]")
_CLOSING = {quotes: re.compile(rf"(?:[^\\]|\\.)*?{quotes}", re.DOTALL) for quotes in ('"""', "'''", '"', "'")}
_BLANK = " \t\f\r\n"
"""What Python takes for space; it takes none of the other spaces of Unicode."""
_OF_PYTHON = frozenset("%%time %%timeit %%capture %%prun %%memit %%python %%python3 %%debug %%snakeviz %%mprun".split())
"""Cell magics whose cell is Python code of the notebook."""


def masked(source: str, mark: str) -> str:
    """The code of a cell as Python: each command becomes a comment, or `pass` with a comment, that holds `mark`."""
    lines = _LINE.findall(source)
    first = next((line.split()[0] for line in lines if line.strip()), "")
    if first.startswith("%%") and first not in _OF_PYTHON:
        return hidden(source, mark)
    if len(lines) == 1 and _ALONE.match(source):
        return _hidden(source, mark, is_statement=False)
    return "".join(_masked_lines(lines, mark))


def hidden(source: str, mark: str) -> str:
    """A cell whose lines are all comments that hold `mark`."""
    return "".join(
        _hidden(line, mark, is_statement=False) if line.strip(_BLANK) else line for line in _LINE.findall(source)
    )


def _masked_lines(lines: list[str], mark: str) -> Iterator[str]:
    open_text, depth, is_continued, in_command = "", 0, False, False
    for line in lines:
        ends_open = line.rstrip("\r\n").endswith("\\")
        if in_command:
            # The shell command goes on.
            yield _hidden(line, mark, is_statement=False)
            in_command = ends_open
        elif not open_text and not depth and not is_continued and _COMMAND.match(line.rstrip("\r\n")):
            yield _hidden(line, mark, is_statement=line[:1] in " \t")
            in_command = ends_open
        else:
            yield line
            open_text, depth = _after(line, open_text, depth)
            is_continued = ends_open


def _hidden(line: str, mark: str, is_statement: bool) -> str:
    """A line as a comment; an indented command may be all that its block holds."""
    text = line.lstrip(" \t") if is_statement else line
    indent = line[: len(line) - len(text)]
    return f"{indent}{'pass  ' if is_statement else ''}# {mark}{text}"


def _after(line: str, open_text: str, depth: int) -> tuple[str, int]:
    """The triple quotes that are open behind a line, and the number of open brackets."""
    at = 0
    while True:
        if open_text:
            closing = _CLOSING[open_text].match(line, at)
            if closing is None:
                # A text in single quotes ends with its line.
                return (open_text if len(open_text) == 3 else ""), depth
            at, open_text = closing.end(), ""
        found = _OPENING.search(line, at)
        if found is None or found[0] == "#":
            return "", depth
        token, at = found[0], found.end()
        if token[0] in "\"'":
            open_text = token
        else:
            depth = depth + 1 if token in "([{" else max(depth - 1, 0)
