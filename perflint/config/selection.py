"""Which rules are on: selectors and how they combine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from perflint.config.errors import ConfigurationError, Faults, did_you_mean, known_code
from perflint.config.lines import placed
from perflint.frozen import dataclass

_PREFIX = re.compile(r"[A-Z]{2,4}\d{0,3}")
"""The code of a rule, or its beginning. `TPF` is perflint's own; house rules have letters of their own."""
_DIGITS = 3
"""Of a code."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The rules that one place selects: codes, prefixes of codes, names or ALL.

    `select` is None where the place does not say. `origin` names the place in error messages.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    origin: str = "the settings"


def choose(selections: Sequence[Selection], rules: Mapping[str, str]) -> frozenset[str]:
    """The codes that are on.

    `rules` maps codes to names. A later selection wins over an earlier one: its `select`
    starts afresh, but for earlier ignores that are more specific. Within one selection
    the more specific selector wins, and `ignore` over the others at equal specificity.
    Raises ConfigurationError for a selector that names nothing.
    """
    chosen = set(rules)
    ignored: list[_Step] = []
    faults = Faults()
    for selection in selections:
        steps = [
            *_steps(selection.select or (), True, rules, selection, "select", faults),
            *_steps(selection.extend_select, True, rules, selection, "extend-select", faults),
        ]
        ignores = _steps(selection.ignore, False, rules, selection, "ignore", faults)
        if selection.select is not None:
            chosen = set()
            steps = [*ignored, *steps]
        for step in sorted([*steps, *ignores], key=lambda step: step.specificity):
            (chosen.update if step.on else chosen.difference_update)(step.codes)
        ignored += ignores
    faults.check()
    return frozenset(chosen)


@dataclass(frozen=True, slots=True)
class _Step:
    specificity: int
    on: bool
    codes: frozenset[str]


def _steps(
    selectors: Iterable[str], on: bool, rules: Mapping[str, str], selection: Selection, key: str, faults: Faults
) -> list[_Step]:
    steps = []
    for selector in selectors:
        with faults.caught():
            steps.append(_Step(specificity(selector), on, expand(selector, rules, named(key, selection.origin))))
    return steps


def named(key: str, origin: str) -> str:
    """A setting of a place, in words."""
    return f"`{key}` of {placed(origin, key)}"


def named_in(key: str, selections: Sequence[Selection]) -> str:
    """A setting that one of some places has, in words: with the last file that has it."""
    places = (placed(each.origin, key) for each in reversed(selections))
    found = next((place for place in places if place.rpartition(":")[2].isdigit()), None)
    return f"`{key}`" if found is None else f"`{key}` of {found}"


def specificity(selector: str) -> int:
    """How narrow a selector is: 0 for ALL, more for each digit of a code; a name is as narrow as a whole code."""
    selector = canonical(selector)
    if selector == "ALL":
        return 0
    return 1 + (sum(map(str.isdigit, selector)) if _PREFIX.fullmatch(selector) else _DIGITS)


def selects(selector: str, code: str, name: str) -> bool:
    """True if a selector stands for a rule."""
    selector = canonical(selector)
    if selector == "ALL" or not _PREFIX.fullmatch(selector):
        return selector in ("ALL", name)
    return code.startswith(selector) and letters(selector) == letters(code)


def letters(code: str) -> str:
    """The letters with which a code begins."""
    return code.rstrip("0123456789")


def canonical(selector: str) -> str:
    """A selector as rules are written: codes and ALL in capitals, names in lower case."""
    upper = selector.upper()
    return upper if upper == "ALL" or _PREFIX.fullmatch(upper) else selector.lower()


def expand(selector: str, rules: Mapping[str, str], where: str) -> frozenset[str]:
    """The codes that a selector stands for; ConfigurationError, which says where, if there are none."""
    given, selector = selector, canonical(selector)
    codes = frozenset(code for code, name in rules.items() if selects(selector, code, name))
    if not codes:
        suggestion = known_code(given, rules) or did_you_mean(selector, [*rules.values(), "ALL"])
        kinds = "a code (TPF101), the beginning of codes (TPF1), a rule's name or ALL; `perflint rules` lists them"
        raise ConfigurationError(f"unknown rule `{given}` in {where}", suggestion or kinds)
    return codes
