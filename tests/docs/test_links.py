"""Links between the documents lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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


def _anchors(path: Path) -> set[str]:
    """The anchors that a Markdown file's headings get."""
    headings = re.findall(r"^#+ (.*)$", _FENCED.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links(document: Path) -> None:
    broken = []
    for link in _LINK.finditer(_FENCED.sub("", document.read_text(encoding="utf-8"))):
        target = (document.parent / link["path"]) if link["path"] else document
        if not target.exists() or (link["anchor"] and link["anchor"] not in _anchors(target)):
            broken.append(link[0])
    images = _IMAGE.finditer(document.read_text(encoding="utf-8"))
    broken += [image[0] for image in images if not (document.parent / image["path"]).is_file()]
    assert not broken


def test_links_are_found() -> None:
    found = [link["path"] for link in _LINK.finditer((ROOT / "README.md").read_text(encoding="utf-8"))]
    assert "CONTRIBUTING.md" in found and "docs/rules/README.md" in found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_installed_from_pypi_that_is_not_there(document: Path) -> None:
    """perflint is installed from a checkout; the only other form names an address."""
    commands = re.findall(r"pip install [^`\n]*", document.read_text(encoding="utf-8"))
    ours = [command for command in commands if "torch-perflint" in command and " @ " not in command]
    assert not ours or document == ROOT / "docs" / "benchmarks" / "speed.md"
