"""Lines of source with carets below the places of findings."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.findings import Span
from perflint.output.terminal import Style, printable, width
from perflint.source.text import Source

_WIDEST_LINE = 200
_MOST_LINES = 3


class Excerpt:
    """The source lines of some places of one file, and what marks them."""

    def __init__(self, source: Source, spans: Sequence[Span]) -> None:
        self._source = source
        by_line: dict[int, list[Span]] = {}
        for span in spans:
            by_line.setdefault(span.line, []).append(span)
        self._shown = sorted(by_line.items())[:_MOST_LINES]
        self.left_out = [line for line, _ in sorted(by_line.items())[_MOST_LINES:]]
        """The lines that are not shown, since there are too many."""
        self.gutter = len(str(self._shown[-1][0]))

    def lines(self, style: Style, colour: str, label: str) -> list[str]:
        """The lines as a terminal shows them; the label stands behind the first carets."""
        bar = style("|", "bold", "blue")
        blank = " " * self.gutter
        found = [f"{blank} {bar}"]
        before: int | None = None
        for line, spans in self._shown:
            if before is not None and line > before + 1:
                found.append(style("...", "bold", "blue"))
            code, carets = self._marked(line, spans)
            number = style(str(line).rjust(self.gutter), "bold", "blue")
            name = f" {label}" if before is None else ""
            marks = carets.lstrip(" ")
            found += [
                f"{number} {bar} {code}".rstrip(),
                f"{blank} {bar} {' ' * (len(carets) - len(marks))}{style(marks, 'bold', colour)}{name}",
            ]
            before = line
        return found

    def _marked(self, number: int, spans: list[Span]) -> tuple[str, str]:
        """A line, and the carets below it."""
        lines = self._source.lines
        line = lines[number - 1].rstrip("\r\n") if number <= len(lines) else ""
        first = spans[0]
        start = first.column - 1
        end = first.end_column - 1 if first.end_line == number else len(line)
        before, marked, after = _clip(line[:start], line[start:end], line[end:])
        is_whole = before + marked + after == line
        before, marked, after = visible(before), visible(marked), visible(after)
        carets = " " * width(before) + "^" * max(width(marked), 1) + ("..." if first.end_line > number else "")
        if is_whole and first.end_line == number:
            for span in spans[1:]:
                left = width(visible(line[: span.column - 1]))
                stop = span.end_column - 1 if span.end_line == number else len(line)
                if left >= len(carets):
                    carets = carets.ljust(left) + "^" * max(width(visible(line[span.column - 1 : stop])), 1)
        return before + marked + after, carets


def _clip(before: str, marked: str, after: str) -> tuple[str, str, str]:
    """A window around the marked part of a long line."""
    if len(before) + len(marked) + len(after) <= _WIDEST_LINE:
        return before, marked, after
    if len(before) > _WIDEST_LINE // 2:
        before = "..." + before[len(before) - _WIDEST_LINE // 4 :]
    left = max(_WIDEST_LINE - len(before), _WIDEST_LINE // 4)
    if len(marked) > left:
        return before, marked[:left], "..."
    left -= len(marked)
    return before, marked, after if len(after) <= left else after[:left] + "..."


def visible(text: str) -> str:
    """A text as the columns of a terminal show it."""
    return printable(text.replace("\t", "    ").replace("\f", ""))
