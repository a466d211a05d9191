"""TPF353 on whole files: what the rest of a file says of formats and lengths."""

from __future__ import annotations

import pytest

from perflint.rules.precision.unpadded_tokens import UnpaddedTokens
from tests.rules.harness import lint

FILE = """\
from transformers import DataCollatorWithPadding, TrainingArguments

arguments = TrainingArguments("out", bf16=True)
collate = DataCollatorWithPadding(tokenizer)
"""


def found(text: str) -> list[int]:
    return [finding.span.line for finding in lint(text, [UnpaddedTokens], "audit")]


def test_half_precision() -> None:
    assert found(FILE) == [4] and found(FILE.replace("bf16", "fp16")) == [4]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (", bf16=True", ""),
        ("collate =", 'encoded = tokenizer(texts, padding="max_length")\ncollate ='),
        ("collate =", "data = data.map(group_texts)\ncollate ="),
    ],
)
def test_other_files_are_silent(old: str, new: str) -> None:
    changed = FILE.replace(old, new)
    assert changed != FILE and not found(changed)
