"""The schema of the options of rules."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from perflint.engine import rulebook
from perflint.rules.base import Option
from tests.engine.toys import Zeros


class Optional(Zeros):
    """A rule with an option of each kind."""

    options = (
        Option("count", 3, "A number.", 2),
        Option("strict", True, "A switch."),
        Option("word", "x", "A text."),
        Option("words", ("x",), "Texts."),
    )


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({"count": 2, "strict": False, "word": "", "words": []}, True),
        ({"count": 1}, False),
        ({"count": "2"}, False),
        ({"strict": 0}, False),
        ({"word": ["x"]}, False),
        ({"words": "x"}, False),
        ({"words": [1]}, False),
        ({"other": 1}, False),
    ],
)
def test_each_kind_of_option_has_a_schema(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], fits: bool) -> None:
    monkeypatch.setattr(rulebook.registry, "all_rules", lambda: (Optional(), Zeros()))
    schema = rulebook.settings_schema()["properties"]["rule"]["properties"]
    assert schema.keys() == {"TPF101", "zeros"}
    assert jsonschema.Draft202012Validator(schema["zeros"]).is_valid(given) is fits
