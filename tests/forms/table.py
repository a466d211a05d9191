"""The table of rules and forms: the findings that each form of the examples keeps."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from tests.forms.catalogue import FORMS
from tests.forms.program import Difference, Example, Form
from tests.rules.harness import Case, parse_fixture, python_blocks, sections, source_cases

PAGE = Path(__file__).parents[2] / "docs" / "forms.md"
REASONS = Path(__file__).parent / "reasons.toml"
COMMAND = "python -m tests.forms --write"


class Kind(Enum):
    """Where examples come from."""

    PAGES = "pages"
    FIXTURES = "fixtures"

    def texts(self, case: Case) -> list[str]:
        """The examples of a rule."""
        if self is Kind.FIXTURES:
            return [parse_fixture(case.fixture.read_text(encoding="utf-8")).text]
        found = sections(case.rule)
        return [block for heading in ("Bad", "Good") for block in python_blocks(found[heading])]


@dataclass(frozen=True, slots=True)
class Cell:
    """The findings of the examples of one rule in one form, or none if no example can be written so."""

    asked: int = 0
    """The findings of the examples that can be written so."""
    lost: int = 0
    new: int = 0
    applies: bool = True

    def __str__(self) -> str:
        if not self.applies:
            return ""
        if not self.lost and not self.new:
            return "✓"
        return " ".join([*([f"−{self.lost}"] if self.lost else []), *([f"+{self.new}"] if self.new else [])])

    @property
    def held(self) -> bool:
        """True if the findings are the same."""
        return self.applies and not self.lost and not self.new


@cache
def examples(kind: Kind, case: Case) -> tuple[Example, ...]:
    """The examples of a rule with their findings."""
    return tuple(Example.of(text, case.rule) for text in kind.texts(case))


def differences(kind: Kind, case: Case, form: Form) -> Iterator[tuple[Example, Mapping[str, str], Difference]]:
    """The examples of a rule in a form, and how their findings differ."""
    for example in examples(kind, case):
        program = example.written(form)
        if program is not None:
            yield example, program.texts(), example.difference(program)


def cell(kind: Kind, case: Case, form: Form) -> Cell:
    """The entry of the table for a rule and a form."""
    found = list(differences(kind, case, form))
    return Cell(
        sum(len(example.findings) for example, _, _ in found),
        sum(len(difference.lost) for _, _, difference in found),
        sum(len(difference.new) for _, _, difference in found),
        bool(found),
    )


def title(form: Form) -> str:
    """The name of a form in words."""
    return form.__name__.replace("_", " ")  # type: ignore[attr-defined]


def column(form: Form, cases: Sequence[Case]) -> dict[str, str]:
    """The entries of a form in the table as it is now, by rule."""
    return {case.rule.code: str(cell(Kind.PAGES, case, form)) for case in cases}


Table = Mapping[tuple[str, str], str]
"""Entries by the code of the rule and the title of the form."""


def written_table(text: str) -> Table:
    """The table on the page."""
    part = text.partition("\n## Rules\n")[2].partition("\n## ")[0]
    rows = [[each.strip() for each in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    titles = [title(form) for form in FORMS]
    return {(row[0], title): entry for row in rows[2:] for title, entry in zip(titles, row[1:], strict=True)}


_HEAD = """\
# Forms of the same code

A rule must not depend on the way in which code is written. So the examples Bad and Good of each rule are written in
{count} other forms that mean the same, and the findings must stay: the same rule, at the line that the expression is
on now, in the same profile. {share} of the table hold. The rest is listed with reasons at the end. `{command}`
writes this page. `python -m tests.forms --rule TPF101 --form "tests with names"` prints differences, also of the
fixtures.

- ✓: all findings are the same.
- −2: two findings are lost.
- +1: there is one finding that the example does not have.
- Empty: no example of the rule can be written so.

## Forms

| no. | form | example | held |
|---|---|---|---|
"""


def page(table: Table) -> str:
    """The page with the table."""
    lines = [_HEAD.format(count=len(FORMS), command=COMMAND, share=_share(table, None)).rstrip("\n")]
    for number, form in enumerate(FORMS, 1):
        about = (form.__doc__ or "").strip().replace("|", "\\|")
        lines.append(f"| {number} | {title(form)} | {about} | {_share(table, title(form))} |")
    lines += ["", "## Rules", ""]
    lines.append("| rule | " + " | ".join(str(number) for number, _ in enumerate(FORMS, 1)) + " |")
    lines.append("|---" * (len(FORMS) + 1) + "|")
    for case in sorted(source_cases(), key=lambda case: case.rule.code):
        entries = [table[case.rule.code, title(form)] for form in FORMS]
        lines.append(f"| {case.rule.code} | " + " | ".join(entries) + " |")
    lines += ["", "## Reasons", ""]
    for reason in reasons():
        places = "; ".join(f"{form}: {', '.join(codes)}" for form, codes in reason.codes.items())
        lines.append(f"- {reason.text} ({places})")
    return "\n".join(lines) + "\n"


def _share(table: Table, form: str | None) -> str:
    entries = [entry for (_, each), entry in table.items() if entry and form in (None, each)]
    held = entries.count("✓")
    return f"{held} of {len(entries)}" + (f" entries ({held / len(entries):.1%})" if entries and form is None else "")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some entries of the table do not hold."""

    text: str
    codes: Mapping[str, Sequence[str]]
    """Codes of rules by the title of the form."""

    @property
    def places(self) -> list[tuple[str, str]]:
        """The entries: pairs of a rule and a form."""
        return [(code, form) for form, codes in self.codes.items() for code in codes]


def reasons() -> list[Reason]:
    """The reasons of `reasons.toml`."""
    data = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    return [Reason(" ".join(entry["text"].split()), entry["entries"]) for entry in data["reason"]]
