"""Pages, messages and docstrings are in plain English (CONTRIBUTING.md, "Language")."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    DOCS / "benchmarks.md",
    *sorted((DOCS / "benchmarks").glob("*.md")),
    DOCS / "comparison.md",
    DOCS / "coverage.md",
    DOCS / "design.md",
    *sorted((DOCS / "guide").glob("*.md")),
    *sorted((DOCS / "agents").glob("*.md")),
]
RULES = sorted((DOCS / "rules").glob("*.md"))
CODE = sorted((ROOT / "perflint").rglob("*.py"))
WORDS = sorted((ROOT / "tests" / "rules").rglob("*.words.txt"))
"""The messages of the findings in the fixtures of rules."""
PHRASES = {
    r"\b(?:nobody|somebody|someone)\b": "name who acts, or say `is not called`, `is unknown`",
    r"\bseldom\b": "say `rarely`",
    r"\b(?:dear|dearest|dearer)\b": "say `expensive`",
    r"\b(?:hands?|handed) on\b": "say `passes` or `forwards`",
    r"\btold (?:by|apart)\b": "say `recognized by`, `distinguished by`",
    r"\bat hand\b": "say `available`",
    r"\bfor good\b": "say `permanently`",
    r"\bof which nothing\b": "say `unknown`",
    r"\bgo(?:es)? by\b": "say `depends on`, `is named`",
    r"\bwhere (?:there (?:is|are) none|none is|it is none)\b": "say `if there are none`, `without any`",
    r"\b(?:its|their) kin\b": "say `similar functions`",
    r"\bspeaks? of\b": "say `mentions` or `is about`",
    r"\b(?:knows?|says?) nothing\b": "say `is unknown`, `does not mention`",
    r"(?<!there )\b(?:is|are) no (?!longer|slower|faster|more|less|fix)": "say `is not a …`, `has no …`",
    r"\bin lines? \d": "say `on line`",
    r"\d[ \u00a0]%(?!\w)": "write `3%`",
    r"\breplaces? (?:it|them|this|that|…) by\b": "say `replace it with`",
    r"(?:each|next|every) turn of\b": "say `iteration`",
    r"\bloop goes over\b": "say `iterates over`",
    r"\b(?:hundredth|thousandth) (?:step|iteration)\b": "say `every 100 steps`",
    r"\bwhat (?:[\w'-]+ ){1,4}(?:gives|makes)\b": "say `the result of …`",
    r"(?-i:(?:^|[.:;] )What (?!else|it does)(?:[\w'-]+ ){1,6}(?:is|are|has|have|does|needs?|depends)\b)": "use a noun",
}
HARDWARE = {
    r"(?<![\w-])host(?![\w-])": "say `CPU`",
    r"\bdevice tensors?\b": "say `GPU tensor`",
    r"\bthe device (?:waits?|computes?|copies|idles|has|runs)\b": "say `the GPU`",
}
"""Words for hardware on the pages of rules. `device` is the name for an argument of torch."""
_HIDDEN = re.compile(r"^```.*?^```|`[^`]*`|\]\([^)]*\)|\"[^\"]*\"", re.MULTILINE | re.DOTALL)
"""Code, links and quotations, which keep their words."""
_DOCSTRING = re.compile(r"^ *\"{3}(.+?)\"{3}$", re.MULTILINE | re.DOTALL)


def _prose(text: str) -> list[str]:
    """The lines of a text without code, links and quotations."""
    return _HIDDEN.sub(lambda found: "…" + "\n" * found[0].count("\n"), text).splitlines()


def _found_in(paths: list[Path], phrases: dict[str, str]) -> list[str]:
    """The phrases in some files, with their places; a rule's page is the docstring of its class."""
    return [f"{path.relative_to(ROOT)}, {each}" for path in paths for each in _found(path.read_text("utf-8"), phrases)]


def _found(text: str, phrases: dict[str, str]) -> list[str]:
    lines = list(enumerate(_prose(text), 1))
    return [
        f"line {number}: `{match[0].strip()}`: {advice}"
        for pattern, advice in phrases.items()
        for number, line in lines
        for match in re.finditer(pattern, line, re.IGNORECASE)
    ]


@pytest.mark.parametrize("paths", [PAGES, RULES, WORDS], ids=["pages", "rules", "messages"])
def test_plain_phrases(paths: list[Path]) -> None:
    found = _found_in(paths, PHRASES)
    assert paths and not found, "\n".join(found)


def test_docstrings_are_plain() -> None:
    found = [
        f"{path.relative_to(ROOT)}, docstring {number}, {phrase}"
        for path in CODE
        for number, text in enumerate(_DOCSTRING.findall(path.read_text(encoding="utf-8")), 1)
        for phrase in _found(text, PHRASES)
    ]
    assert not found, "\n".join(found)


def test_words_for_hardware() -> None:
    found = _found_in(RULES, HARDWARE)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "A function that nobody calls.",
        "Where it runs seldom.",
        "An object that is no tensor.",
        "Attribute names are told apart by type.",
        "The heat goes by the loops around.",
        "The last place; None where there is none.",
        "It uses what the call makes of them.",
        "What a layer holds depends on sizes.",
        "The code\n`x` is fine, and\nthe rest is dear.",
        "The tensor of `x` in line 3 costs 12 %.",
        "Replace it by the sum, every hundredth step.",
        "The loop goes over batches.",
    ],
)
def test_phrases_are_found(text: str) -> None:
    assert _found(text, PHRASES)


@pytest.mark.parametrize(
    "text",
    [
        "There is no fix, and it is no slower.",
        '`nobody` is code, "somebody" is a quotation, and [this](https://dear.org/told-by) is a link.',
        "```python\nnobody = 1\n```\nIt rarely runs.",
        "## What it does",
    ],
)
def test_plain_text_passes(text: str) -> None:
    assert not _found(text, PHRASES)


def test_lines_are_counted_through_code() -> None:
    assert _found("```\na\n```\nhost", HARDWARE) == ["line 4: `host`: say `CPU`"]
