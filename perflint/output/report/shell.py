"""The frame of a page: its head, its policy, its contents and its footer."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from perflint.output.report.markup import Markup, join, tag
from perflint.output.report.parts import Section


def whole_page(title: str, masthead: Markup, sections: Sequence[Section], version: str) -> str:
    """A page with some sections. HTML that is well-formed XML, too, and holds only characters that can be encoded."""
    body = join(
        tag("a", "Skip to the content", href="#content", class_="skip"),
        _patterns(),
        tag("header", masthead, _contents(sections)),
        tag("main", [each.shown(2) for each in sections], id="content"),
        tag("footer", _footer(version)),
    )
    html = tag("html", tag("head", _head(title)), tag("body", body), lang="en")
    return f"<!DOCTYPE html>\n{html}\n"


def _style() -> str:
    return (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


def _head(title: str) -> Markup:
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    # Nothing may be loaded, run or sent, should an escape ever fail.
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    return join(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=Markup(policy)),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="referrer", content="no-referrer"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(_style())),
    )


def _patterns() -> Markup:
    """The patterns that fill shapes, so that they differ by more than colour."""
    patterns = (
        tag("pattern", _ground("collective"), tag("path", d="M2 0V6"), **_tile("collective", 6)),
        tag("pattern", _ground("sync"), tag("path", d="M-1 7L7 -1M2 10L10 2"), **_tile("sync", 8)),
        tag("pattern", _ground("loader"), tag("rect", x=1, y=1, width=2, height=2), **_tile("loader", 5)),
        tag("pattern", _ground("host"), tag("path", d="M0 2H4"), **_tile("host", 4)),
    )
    return tag("svg", tag("defs", patterns), width=0, height=0, class_="patterns", aria_hidden="true")


def _ground(kind: str) -> Markup:
    return tag("rect", width="100%", height="100%", class_=f"ground-{kind}")


def _tile(kind: str, width: int) -> dict[str, str | int]:
    names = {"id": f"fill-{kind}", "class_": f"tile-{kind}", "patternUnits": "userSpaceOnUse"}
    return {**names, "width": width, "height": width}


def _contents(sections: Sequence[Section]) -> Markup:
    links = [tag("li", tag("a", each.short or each.title, href=f"#{each.id}")) for each in sections]
    return tag("nav", tag("ul", links), aria_label="Contents")


def _footer(version: str) -> Markup:
    return tag("p", f"Made by perflint {version}. This page loads nothing from anywhere and runs no script.")
