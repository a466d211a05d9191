"""The building blocks of several sections: tables, notes and headings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perflint.output.report.markup import Content, Markup, join, tag


@dataclass(frozen=True, slots=True)
class Names:
    """Keeps the ids of several traces on a page apart."""

    prefix: str

    def id(self, name: str) -> str:
        """An id that is the page's only one."""
        return f"{self.prefix}{name}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    is_number: bool = False
    name: str = ""
    """The text for screen readers, if the title is too short for it."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with a heading of its own."""

    id: str
    title: str
    content: Markup
    short: str = ""
    """The title in the navigation, if it differs."""

    def shown(self, level: int) -> Markup:
        """The section with a heading of a level."""
        heading = tag(f"h{level}", self.title, id=f"{self.id}-title")
        # Sections within others are not landmarks: several traces have the same.
        name = f"{self.id}-title" if level == 2 else None
        return tag("section", heading, self.content, id=self.id, aria_labelledby=name)


def section(names: Names, name: str, title: str, *content: Content, short: str = "") -> Section:
    """A section of a trace."""
    return Section(names.id(name), title, join(*content), short)


def folded(names: Names, sections: Sequence[Section]) -> Section | None:
    """One section with others that are shown on demand; None without any."""
    if not sections:
        return None
    return section(names, "details", "Details", [details(each.title, each.content, id=each.id) for each in sections])


def table(
    caption: Content,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Content]],
    *,
    is_caption_hidden: bool = False,
    class_: str = "",
) -> Markup:
    """A table whose rows are headed by their first cells, in a box in which it scrolls where it is too wide."""
    body = tag("tbody", [_row(columns, row) for row in rows])
    return scrolling(
        tag("table", tag("caption", caption, class_="hidden" if is_caption_hidden else None), head(columns), body),
        caption if isinstance(caption, str) else join(caption),
        class_,
    )


def scrolling(content: Markup, label: str, class_: str = "") -> Markup:
    """A box that a keyboard can scroll. The label is plain text."""
    classes = f"scroll {class_}".strip()
    return tag("div", content, class_=classes, role="group", aria_label=label, tabindex=0)


def head(columns: Sequence[Column]) -> Markup:
    """The heads of a table's columns."""
    return tag("thead", tag("tr", [_head(column) for column in columns]))


def _head(column: Column) -> Markup:
    said = tag("span", column.name, class_="hidden") if column.name else ""
    seen = tag("span", column.title, aria_hidden="true") if column.name else column.title
    return tag("th", seen, said, scope="col", class_=_class(column))


def _row(columns: Sequence[Column], cells: Sequence[Content]) -> Markup:
    first, *rest = zip(columns, cells, strict=True)
    head = tag("th", first[1], scope="row", class_=_class(first[0]))
    return tag("tr", head, [tag("td", content, class_=_class(column)) for column, content in rest])


def _class(column: Column) -> str | None:
    return "number" if column.is_number else None


def details(
    summary: Content, *content: Content, is_open: bool = False, class_: str | None = None, id: str | None = None
) -> Markup:
    """Content that is shown on demand."""
    return tag("details", tag("summary", summary), *content, open=is_open, class_=class_, id=id)


def left_out(number: int, what: str) -> Markup:
    """Says that a list goes on; nothing where it does not."""
    return tag("p", f"{number:,} more {what}.", class_="aside") if number > 0 else Markup()


def note(content: Content, kind: str = "Note") -> Markup:
    """A remark that must not be missed; the kind is said in words."""
    return tag("p", tag("strong", f"{kind}: "), content, class_="note")
