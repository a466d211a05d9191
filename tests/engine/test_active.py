"""Which rules settings turn on."""

from __future__ import annotations

import pytest

from perflint.config.errors import ConfigurationError
from perflint.config.selection import Selection
from perflint.config.settings import Settings, Version
from perflint.engine.active import active_rules, holds
from perflint.rules.registry import all_rules, names
from tests.engine.toys import Zeros

VERSIONS: list[tuple[Version | None, Version | None, Version | None, bool]] = [
    (None, None, None, True),
    (None, None, (1, 0), True),
    ((2, 4), None, None, True),
    ((2, 4), None, (2, 3), False),
    ((2, 4), None, (2, 4), True),
    ((2, 4), None, (2, 10), True),
    (None, (2, 6), None, False),
    (None, (2, 6), (2, 5), True),
    (None, (2, 6), (2, 6), False),
    ((2, 1), (2, 6), (2, 3), True),
]


@pytest.mark.parametrize(("since", "until", "version", "expected"), VERSIONS)
def test_torch_versions(since: Version | None, until: Version | None, version: Version | None, expected: bool) -> None:
    class Bound(Zeros):
        """Has bounds."""

    Bound.since, Bound.until = since, until
    assert holds(Bound(), version) is expected


def test_by_default_every_rule_that_holds_is_on() -> None:
    on = {rule.code for rule in active_rules(Settings()).rules}
    assert on == {rule.code for rule in all_rules() if holds(rule, None)}


def test_selection() -> None:
    settings = Settings(selections=(Selection(select=("TPF5",)),))
    assert {rule.code[:4] for rule in active_rules(settings).rules} == {"TPF5"}
    code, name = next(iter(names().items()))
    assert [rule.code for rule in active_rules(Settings(selections=(Selection(select=(name,)),))).rules] == [code]


def test_unknown_rules_of_per_file_ignores_are_faults() -> None:
    with pytest.raises(ConfigurationError, match=r'unknown rule `TPF9999` in `per-file-ignores` for "tests/\*"'):
        active_rules(Settings(per_file_ignores=(("tests/*", ("TPF9999",)),)))
