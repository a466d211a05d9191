"""The site: its menu lists all pages, and links out of it are resolved. `--slow` builds it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from perflint.rules.registry import all_rules
from tests.browser import browser, executable
from tests.tools.loading import load_tool

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
site_hooks = load_tool("site_hooks")


def test_menu_lists_all_pages() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"[\w/-]+\.md", menu)
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.parent.name != "rules"]
    assert sorted(listed) == sorted(pages), "list each page under nav in mkdocs.yml"


def test_menu_of_rules() -> None:
    config = site_hooks.on_config({"nav": [{"Home": "README.md"}, {"Rules": []}]})
    families = [entry for entry in config["nav"][1]["Rules"] if isinstance(entry, dict)]
    names = [path for family in families for pages in family.values() if isinstance(pages, list) for path in pages]
    assert {f"{rule.code} {rule.name}": f"rules/{rule.name}.md" for rule in all_rules()} == {
        title: path for page in names for title, path in page.items()
    }


@pytest.mark.parametrize(
    ("repo_url", "text"),
    [
        (
            None,
            "the action, [a page](faq.md#terms), [x](https://e.org), ![i](a.png)\n```\n[a](../../action.yml)\n```\n",
        ),
        (
            "https://e.org/r",
            "[the action](https://e.org/r/blob/main/action.yml), [a page](faq.md#terms), [x](https://e.org), "
            "![i](a.png)\n```\n[a](../../action.yml)\n```\n",
        ),
    ],
)
def test_links_out_of_the_site(repo_url: str | None, text: str) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="guide/ci.md"))
    files = [SimpleNamespace(src_uri="guide/faq.md", inclusion=SimpleNamespace(is_included=lambda: True))]
    before = (
        "[the action](../../action.yml), [a page](faq.md#terms), [x](https://e.org), ![i](a.png)\n"
        "```\n[a](../../action.yml)\n```\n"
    )
    assert site_hooks.on_page_markdown(before, page, {"repo_url": repo_url}, files) == text


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason='needs pip install -e ".[docs]"')
def test_site_in_a_browser(tmp_path: Path) -> None:
    """The build is strict; its pages fit the window and load nothing from the network."""
    command = [sys.executable, str(ROOT / "tools" / "build_site.py"), "--output", str(tmp_path)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert len(list((tmp_path / "rules").glob("*.html"))) == len(all_rules()) + 2
    program = executable()
    if program is None:
        pytest.skip("there is no Chromium (apt-get install chromium)")
    with browser(program) as page:
        assert page is not None
        for name in ("index", "guide/start", "guide/commands", "rules/scalar-read-in-loop", "benchmarks"):
            for width in (400, 1280):
                page.resize(width, 800)
                page.open(tmp_path / f"{name}.html")
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
                assert [url for url in page.requests() if not url.startswith("file:")] == []
