"""Fixes within f-strings."""

from __future__ import annotations

import pytest

from perflint.rules.transfer.create_then_move import CreateThenMove
from tests.rules.harness import lint


def offers(text: str) -> bool:
    """True if the finding in a statement has a fix."""
    (finding,) = lint(f"import torch\n\n{text}\n", [CreateThenMove], "audit")
    return finding.fix is not None


def test_code_beside_an_f_string_is_fixed() -> None:
    assert offers("print(f'{1}', torch.zeros(3).cuda())")


@pytest.mark.parametrize(
    "field", ["{torch.zeros(3).to('cuda')=}", "{torch.zeros(3).to('cuda') = :>9}", "{(torch.zeros(3).to('cuda'))=!r}"]
)
def test_code_that_is_printed_stays(field: str) -> None:
    assert not offers(f'print(f"{field}")')


def test_a_comparison_in_an_f_string_is_not_printed() -> None:
    assert offers("print(f\"{torch.zeros(3).to('cuda') == 1:}\")")


def test_a_fix_adds_no_quotes_to_an_f_string() -> None:
    assert not offers("print(f'{torch.zeros(3).cuda()}')")
    assert offers("print(f'{torch.zeros(3).to(torch.device(0))}')")


def test_the_text_of_a_format_counts_too() -> None:
    assert not offers("print(f'{1:{torch.zeros(3).cuda()}}')")
