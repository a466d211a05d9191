"""Links between the documents lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks").rglob("*.md"),
        *(ROOT / "editors").glob("*/*.md"),
    ]
)
_LINK = re.compile(r"\]\((?!https?:|mailto:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
_IMAGE = re.compile(r'<img [^>]*src="(?P<path>[^":]+)"')
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@cache
def _anchors(path: Path) -> set[str]:
    """The anchors that a Markdown file's headings get."""
    headings = re.findall(r"^#+ (.*)$", _FENCED.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _broken(document: Path) -> Iterator[str]:
    text = document.read_text(encoding="utf-8")
    for link in _LINK.finditer(_FENCED.sub("", text)):
        target = (document.parent / link["path"]) if link["path"] else document
        if not target.exists() or (link["anchor"] and link["anchor"] not in _anchors(target)):
            yield link[0]
    yield from (image[0] for image in _IMAGE.finditer(text) if not (document.parent / image["path"]).is_file())


def test_links() -> None:
    assert not [(str(document.relative_to(ROOT)), link) for document in DOCUMENTS for link in _broken(document)]


def test_links_are_found() -> None:
    found = [link["path"] for link in _LINK.finditer((ROOT / "README.md").read_text(encoding="utf-8"))]
    assert "CONTRIBUTING.md" in found and "docs/rules/README.md" in found


def test_nothing_is_installed_from_pypi_that_is_not_there() -> None:
    """perflint is installed from a checkout; the only other form names an address."""
    commands = [
        (document.relative_to(ROOT).as_posix(), command)
        for document in DOCUMENTS
        for command in re.findall(r"pip install [^`\n]*", document.read_text(encoding="utf-8"))
    ]
    ours = {path for path, command in commands if "torch-perflint" in command and " @ " not in command}
    assert ours <= {"docs/benchmarks/speed.md"}
