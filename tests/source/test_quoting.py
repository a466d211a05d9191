"""Code in sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflint.source.quoting import LONGEST, quoted
from tests.growth import calls, is_linear

QUOTES = [
    ("model(x)", "model(x)"),
    ("torch.zeros(\n    3,  # three\n    4,\n)", "torch.zeros(3, 4)"),
    ('f(  # note\n    "# no note",\n)', 'f("# no note")'),
    (
        'F.cross_entropy(scores.view(-1, classes), labels.view(-1), reduction="none").mean().item()',
        "F.cross_entropy(…).mean().item()",
    ),
    (
        "torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0], device=device)",
        "torch.tensor([…], device=device)",
    ),
    (
        "self.pos_embed.reshape(1, self.patches, self.hidden).expand(b, -1, -1).contiguous().cpu().numpy()",
        "….pos_embed.reshape(…).expand(…).contiguous().cpu().numpy()",
    ),
    ("x == " + "y" * 80, "x == " + "y" * (LONGEST - 6) + "…"),
    ("größe_" * 4 + "(" + "ä, " * 20 + "ö)", "größe_" * 4 + "(…)"),
]


@pytest.mark.parametrize(("text", "expected"), QUOTES)
def test_quotes(text: str, expected: str) -> None:
    assert quoted(text) == f"`{expected}`"


@given(st.text(alphabet='ab.([{}])," #\n\\…é', max_size=200))
def test_any_text_is_quoted_on_one_short_line(text: str) -> None:
    found = quoted(text)
    assert "\n" not in found and len(found) <= LONGEST + 2


def test_each_part_of_a_long_sum_is_quoted_in_linear_time() -> None:
    texts = ["+".join(f"f_{index}(argument)" for index in range(size)) for size in (25, 50, 100)]
    assert is_linear([calls(lambda text=text: quoted(text)) for text in texts])


def test_very_long_code_takes_no_time() -> None:
    text = "+".join(f"function_{index}(argument)" for index in range(100_000))
    assert quoted(text).endswith("…`")
