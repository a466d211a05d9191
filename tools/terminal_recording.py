"""An animated picture of a terminal, from real runs of perflint (`python tools/generate_docs.py` writes it).

The commands run in a pseudo-terminal, so that colours and line breaks are those that users see. The picture is an
SVG with CSS alone. A viewer without animation shows the first command.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from html import escape
from pathlib import Path

COLUMNS = 96
COMMANDS = (
    "perflint check train.py --select TPF201",
    "perflint fix train.py --select TPF201",
    "perflint check tracing/slow.py --trace tracing/slow.jsonl.gz --select TPF125",
)
_SECONDS = 6.0
"""The time of one command."""
_ANSWER = 0.9
"""The time until its output appears."""
_LINE, _CHARACTER, _MARGIN = 18.0, 8.0, 16.0
_SGR = re.compile(r"\x1b\[([\d;]*)m")
_COLOURS = {"31": "#f47067", "32": "#6bc46d", "33": "#e0b04a", "34": "#6cb6ff", "36": "#56d4dd", "2": "#8b949e"}


@dataclass(frozen=True)
class Piece:
    """Text of one style."""

    text: str
    style: str


def picture(folder: Path) -> str:
    """The SVG of the commands in a folder."""
    screens = [(command, terminal_output(command, folder)) for command in COMMANDS]
    height = _LINE * (1 + max(len(lines) for _, lines in screens)) + 2 * _MARGIN
    width = COLUMNS * _CHARACTER + 2 * _MARGIN
    groups = [_screen(number, command, lines) for number, (command, lines) in enumerate(screens)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
            f"<title>{escape('; '.join(COMMANDS))}</title>",
            f"<style>{_css(len(screens))}</style>",
            '<rect width="100%" height="100%" rx="8" fill="#1c2128"/>',
            *groups,
            "</svg>\n",
        ]
    )


def terminal_output(command: str, folder: Path) -> list[list[Piece]]:
    """The lines that a command prints in a terminal."""
    arguments = [sys.executable, "-m", *shlex.split(command)]
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    unwanted = {"NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "CI", "FORCE_HYPERLINK"}
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment |= {"TERM": "xterm-256color"}
    with subprocess.Popen(
        arguments, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        printed = _read(ours)
    os.close(ours)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{command}:\n{printed}")
    # A slow machine shows the line of progress.
    printed = re.sub(r"\r\x1b\[K[^\r\x1b\n]*", "", printed.replace("\r\n", "\n"))
    return [_pieces(line) for line in printed.rstrip("\n").split("\n")]


def _read(terminal: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            # Linux reports the end of a pseudo-terminal as an error.
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode("utf-8")


def _pieces(line: str) -> list[Piece]:
    """A line, cut where its style changes. Raises ValueError at controls other than styles."""
    pieces, style = [], ""
    for number, part in enumerate(_SGR.split(line)):
        if number % 2:
            style = _style(part)
        elif "\x1b" in part or "\r" in part:
            raise ValueError(f"a control sequence in {part!r}")
        elif part:
            pieces.append(Piece(part, style))
    return pieces


def _style(codes: str) -> str:
    """The CSS classes of a style."""
    return " ".join(f"c{code}" for code in codes.split(";") if code in {*_COLOURS, "1"})


def _screen(number: int, command: str, lines: list[list[Piece]]) -> str:
    prompt = [Piece("$ ", "c32"), Piece(command, "c1")]
    shown = "".join(_text(row, line) for row, line in enumerate(lines, 1))
    return f'<g class="s s{number}">{_text(0, prompt)}<g class="o o{number}">{shown}</g></g>'


def _text(row: int, pieces: list[Piece]) -> str:
    """A line. Each piece has its own place, so that a font of another width keeps the columns."""
    column, parts = 0, []
    for piece in pieces:
        start = _MARGIN + column * _CHARACTER
        length = len(piece.text) * _CHARACTER
        style = f' class="{piece.style}"' if piece.style else ""
        if piece.text.strip():
            parts.append(
                f'<tspan x="{start:g}" textLength="{length:g}"{style}>{escape(piece.text, quote=False)}</tspan>'
            )
        column += len(piece.text)
    return f'<text y="{_MARGIN + _LINE * (row + 0.75):g}">{"".join(parts)}</text>' if parts else ""


def _css(count: int) -> str:
    whole = count * _SECONDS
    rules = [
        "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        "fill:#d0d7de;white-space:pre}",
        *(f".c{code}{{fill:{colour}}}" for code, colour in _COLOURS.items()),
        ".c1{font-weight:bold}",
        ".s{visibility:hidden}.s0{visibility:visible}",
    ]
    moving = [
        f".s,.o{{animation-duration:{whole:g}s;animation-iteration-count:infinite;animation-timing-function:step-end}}"
    ]
    for number in range(count):
        for name, delay in (("s", 0.0), ("o", _ANSWER)):
            start, end = (100 * seconds / whole for seconds in (number * _SECONDS + delay, (number + 1) * _SECONDS))
            frames = [f"0%{{visibility:{'hidden' if start else 'visible'}}}", f"{start:.2f}%{{visibility:visible}}"]
            frames += [f"{end:.2f}%{{visibility:hidden}}"] if end < 100 else []
            moving.append(f".{name}{number}{{animation-name:{name}{number}}}")
            moving.append(f"@keyframes {name}{number}{{{''.join(frames)}100%{{visibility:hidden}}}}")
    return "".join([*rules, "@media (prefers-reduced-motion:no-preference){", *moving, "}"])
