"""Pages and the table of rules."""

from __future__ import annotations

import re

import pytest

from perflint.findings import Safety
from perflint.output.pages import facts, fix_safeties, page, table
from perflint.output.terminal import Style
from perflint.rules.base import Rule
from perflint.rules.registry import all_rules
from tests.engine.toys import Zeros


def documented(section: str) -> Rule:
    """A rule whose section on fixes says something."""

    class Documented(Zeros):
        pass

    Documented.__doc__ = f"""Short.

    ## What it does
    Counts.

    ## Fix safety
    {section}

    ## References
    None.
    """
    return Documented()


SECTIONS = [
    ("Safe: the same values.", (Safety.SAFE,)),
    ("Unsafe. It changes keys.", (Safety.UNSAFE,)),
    ("`a` becomes `b`, which is\n    unsafe.", (Safety.UNSAFE,)),
    ("Safe here, unsafe there.", (Safety.SAFE, Safety.UNSAFE)),
    ("Risky: it changes keys.", (Safety.RISKY,)),
    ("Display only: shown.", (Safety.DISPLAY,)),
    ("Display-only: shown.", (Safety.DISPLAY,)),
    ("No fix: none would be safe.", ()),
]


@pytest.mark.parametrize(("section", "expected"), SECTIONS)
def test_the_safety_of_fixes_is_read_off_the_page(section: str, expected: tuple[Safety, ...]) -> None:
    assert fix_safeties(documented(section)) == expected


def test_every_page_says_how_safe_its_fix_is() -> None:
    for rule in all_rules():
        section = (type(rule).__doc__ or "").partition("## Fix safety\n")[2].lstrip()
        assert section.startswith("No fix") or fix_safeties(rule), (
            f"{rule.code}: it must begin with No fix, or name safe, unsafe or risky"
        )


def test_pages() -> None:
    for rule in all_rules():
        text = page(rule)
        assert text.startswith(
            f"# {rule.name} ({rule.code})\n\nSeverity {rule.severity.value}, effect {rule.effect.value}, "
        )
        assert text.endswith("\n") and not text.endswith("\n\n")
        assert "\n## What it does\n" in text and "\n## References\n" in text
        assert not re.search(r"^    ## ", text, re.MULTILINE)


def test_a_page_without_docstrings() -> None:
    class Bare(Zeros):
        pass

    Bare.__doc__ = None
    assert "without docstrings" in page(Bare())


def test_a_page_names_the_rules_that_its_rule_replaces() -> None:
    class Precise(Zeros):
        replaces = ("TPF103", "TPF105")

    Precise.__doc__ = Zeros.__doc__
    sentence = " At a place that several rules report, it replaces the findings of TPF103, TPF105."
    assert page(Precise()) == page(Zeros()).replace(".\n", f".{sentence}\n", 1)
    assert facts(Precise())["replaces"] == ["TPF103", "TPF105"]


def test_facts() -> None:
    class Bound(Zeros):
        since, until = (2, 1), (2, 10)

    Bound.__doc__ = documented("Unsafe.").__doc__
    assert facts(Bound()) == {
        "code": "TPF101",
        "name": "zeros",
        "family": "output",
        "severity": "warning",
        "effect": "sync",
        "fixes": ["unsafe"],
        "replaces": [],
        "since": "2.1",
        "until": "2.10",
        "options": {},
    }


def test_table() -> None:
    lines = table(all_rules(), Style(False)).splitlines()
    assert lines[0].split() == ["CODE", "NAME", "AT", "MOST", "EFFECT", "FIXES", "NOTES"]
    assert [line.split()[:2] for line in lines[1:]] == [[rule.code, rule.name] for rule in all_rules()]
    assert len({line.index(rule.effect.value, 20) for line, rule in zip(lines[1:], all_rules(), strict=True)}) == 1
    assert table(all_rules(), Style(True)).startswith("\x1b[1mCODE")


def test_the_table_names_bounds() -> None:
    class Bound(Zeros):
        since, until = (2, 1), (2, 10)

    assert table([Bound()], Style(False)).splitlines()[1].endswith("since torch 2.1 and before torch 2.10")
