"""Builds HTML and SVG that are also well-formed XML. All text is escaped here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from perflint.output.terminal import printable

LIMIT = 400
"""Characters of a text; names, reasons and code of a trace may be of any length."""
_VOID = frozenset({"br", "line", "link", "meta", "path", "rect", "wbr"})
_FIXED = "\u00a0"
"""A space at which no line breaks. It hides nothing, so it may stay."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Content = str | Iterable["Content"]
Attribute = str | int | float | bool | None


def text(content: str, limit: int = LIMIT) -> Markup:
    """Text of unknown origin: escaped, cut, and without characters that hide or reorder others."""
    if isinstance(content, Markup):
        return content
    kept = content if len(content) <= limit else content[: limit - 1] + "…"
    return Markup(escape(_FIXED.join(map(printable, kept.split(_FIXED)))))


def with_code(content: str, limit: int = 600) -> Markup:
    """A message, in which what stands between backticks is code."""
    parts = (content if len(content) <= limit else f"{content[: limit - 1]}…").split("`")
    if len(parts) % 2 == 0:
        return text(content, limit)
    return join([tag("code", part) if number % 2 else text(part, limit) for number, part in enumerate(parts)])


def tag(name: str, /, *content: Content, **attributes: Attribute) -> Markup:
    """An element. `class_` is the attribute `class`, `aria_label` is `aria-label`; None and False leave one out."""
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID and not content:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{join(*content)}</{name}>")


def join(*content: Content) -> Markup:
    """One after the other."""
    return Markup("".join(text(part) if isinstance(part, str) else join(*part) for part in content))


def breakable(name: str) -> Markup:
    """A name that may break after slashes and underscores."""
    parts = re.split(r"(?<=[/_])", name if len(name) <= LIMIT else f"{name[: LIMIT - 1]}…")
    return join([join(tag("wbr") if number else "", part) for number, part in enumerate(parts)])


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f' {name}=""'
    written = value if isinstance(value, str) else f"{value:.6g}"
    return f' {name}="{text(written)}"'
