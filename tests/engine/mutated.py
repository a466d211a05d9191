"""Real code, changed at random: bytes, tokens and lines of the standard library and of the fixtures of rules."""

from __future__ import annotations

import ast
import json
import re
import sysconfig
from functools import cache
from keyword import iskeyword
from pathlib import Path
from random import Random

_MOST_LINES = 60
_FIXTURES = Path(__file__).parents[1] / "rules"
_TOKEN = re.compile(rb"\w+|[^\w\s]|\n[ \t]*|[^\S\n]+")
_NAME = re.compile(rb"[A-Za-z_]\w*")
_SIGNS = (b"+", b"-", b"*", b"/", b"%", b"<", b">", b"&", b"|", b"^", b"@")
_ODD = (
    *(
        b"\0",
        b"\r",
        b"\x0c",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b"\xc2\x85",
        b"\xf0\x9f\x98\x80",
        b"\xed\xa0\x80",
    ),
    *(b"\\\n", b"\t", b"\n", b"'", b'"""', b"#", b"\\", b"{", b"(", b"[", b":", b";", b"*", b"**", b"@", b":="),
    *(b"# coding: latin-1\n", b"# perflint: off\n", b"# noqa", b"f'{", b"9" * 5000, b"(" * 150, b"-" * 900),
)
_WORDS = (
    *(b"None", b"self", b"super()", b"torch", b"cuda", b"item", b"lambda", b"await", b"yield", b"global", b"nonlocal"),
    *(
        b"del",
        b"async",
        b"return",
        b"while",
        b"for",
        b"try",
        b"match",
        b"case",
        b"type",
        b"class",
        b"__class__",
        b"...",
    ),
    *(
        b"__init__",
        b"forward",
        b"1e999",
        b"1j",
        b"-1",
        b"True",
        b"0x" + b"f" * 300,
        b"T" * 3000,
        "ﬁ".encode(),
        b"__slots__",
    ),
)


@cache
def _files() -> tuple[list[Path], list[Path]]:
    """The files of the standard library without its tests, and the fixtures."""
    library = Path(sysconfig.get_path("stdlib"))
    left_out = {"site-packages", "test", "tests", "idlelib", "lib2to3"}
    return (
        sorted(path for path in library.rglob("*.py") if not left_out & set(path.relative_to(library).parts)),
        sorted(_FIXTURES.glob("*/*.py")),
    )


@cache
def _parts(path: Path) -> tuple[bytes, list[bytes]]:
    """The imports of a file, and its other statements but for long ones."""
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    imports, parts = b"", [b""]
    for node in ast.parse(data).body:
        part = b"".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports += part
        elif part.count(b"\n") <= _MOST_LINES:
            parts.append(part)
    return imports, parts


def _piece(random: Random) -> bytes:
    """Some of a file: its imports and a few lines."""
    imports, parts = _parts(random.choice(random.choice(_files())))
    at = random.randrange(len(parts))
    piece = imports
    for part in parts[at:]:
        if piece.count(b"\n") > _MOST_LINES // 2:
            break
        piece += part
    return piece


def _other_bytes(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data) + 1)
    end = min(start + random.choice((1, 1, 2, 9, 80)), len(data))
    cut = data[start:end]
    new = random.choice((b"", cut + cut, random.choice(_ODD), random.randbytes(1), cut[::-1], _piece(random)[:80]))
    return data[:start] + new + data[end:]


def _other_tokens(data: bytes, random: Random) -> bytes:
    tokens = _TOKEN.findall(data)
    if not tokens:
        return random.choice(_WORDS)
    here, there = random.randrange(len(tokens)), random.randrange(len(tokens))
    alike = [token for token in tokens if token[:1].isalnum() == tokens[here][:1].isalnum()]
    match random.randrange(7):
        case 0:
            tokens[here], tokens[there] = tokens[there], tokens[here]
        case 1:
            del tokens[here]
        case 2:
            tokens[here] = random.choice(_WORDS)
        case 3:
            tokens.insert(here, tokens[there])
        case _:
            # As much as possible of this is still Python.
            tokens[here] = random.choice(alike)
    return b"".join(tokens)


def _other_words(data: bytes, random: Random) -> bytes:
    """Words in place of others, and signs in place of signs: most of these files parse."""
    tokens = _TOKEN.findall(data)
    words = [at for at, token in enumerate(tokens) if _NAME.fullmatch(token) and not iskeyword(token.decode())]
    for at in random.sample(words, min(len(words), random.choice((1, 2, 5, 20)))):
        tokens[at] = random.choice((tokens[random.choice(words)], tokens[random.choice(words)], b"torch", b"self"))
    # Others are parts of longer signs, or stars of parameters.
    signs = [at for at, token in enumerate(tokens) if token in _SIGNS and tokens[at - 1].isspace()]
    for at in random.sample(signs, min(len(signs), random.choice((0, 1, 3)))):
        tokens[at] = random.choice(_SIGNS)
    return b"".join(tokens)


def _other_lines(data: bytes, random: Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    here, there = sorted((random.randrange(len(lines)), random.randrange(len(lines))))
    some = lines[here:there][:20]
    match random.randrange(4):
        case 0:
            some = [b"    " + line for line in some]
        case 1:
            some += some
        case 2:
            some = [line.removeprefix(b"    ") for line in some]
        case _:
            random.shuffle(some)
    return b"".join([*lines[:here], *some, *lines[here + len(some) :]])


def mutated(number: int) -> tuple[str, bytes]:
    """The name and the contents of a changed file or notebook; a number always gives the same."""
    random = Random(number)
    data = _piece(random)
    ways = (_other_words,) if number % 5 else (_other_bytes, _other_words, _other_tokens, _other_lines)
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        data = random.choice(ways)(data, random)
    if number % 10:
        return "mutated.py", data
    text = data.decode("utf-8", "replace")
    middle = random.randrange(len(text) + 1)
    cells = [{"cell_type": "code", "source": part, "metadata": {}} for part in (text[:middle], text[middle:])]
    document = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
    return "mutated.ipynb", _other_bytes(document, random) if random.random() < 0.5 else document
