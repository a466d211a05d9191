"""TPF314 for weights of the attention that a program asks for and does not read, and for kernels that it forbids."""

from __future__ import annotations

import pytest

from perflint.rules.model.slow_attention import SlowAttention
from tests.rules.harness import lint

LOADED = (
    "from transformers import AutoModel\n\n\ndef embed(name, batch):\n    model = AutoModel.from_pretrained(name{})\n"
)
PLAIN = LOADED.format("")


def found(text: str, profile: str = "default") -> list[int]:
    return [finding.span.line for finding in lint(text, [SlowAttention], profile)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (LOADED.format(", output_attentions=True") + "    return model(**batch).last_hidden_state\n", 5),
        (PLAIN + "    model.config.output_attentions = True\n    return model(**batch).last_hidden_state\n", 6),
        (PLAIN + "    out = model(**batch, output_attentions=True)\n    return out.last_hidden_state\n", 6),
    ],
    ids=["loaded", "set", "called"],
)
def test_weights_that_nobody_reads(text: str, line: int) -> None:
    assert found(text) == [line]


@pytest.mark.parametrize(
    "text",
    [
        LOADED.format(", output_attentions=True") + "    return model(**batch).attentions[-1]\n",
        LOADED.format(", output_attentions=True") + '    return model(**batch)["cross_attentions"]\n',
        LOADED.format(", output_attentions=False") + "    return model(**batch).last_hidden_state\n",
        PLAIN + "    return model(**batch, output_attentions=True)\n",
        PLAIN + "    if name:\n        model.config.output_attentions = True\n    return model(**batch).logits\n",
    ],
    ids=["read", "by key", "off", "returned", "flag"],
)
def test_weights_that_may_be_read(text: str) -> None:
    assert not found(text)


FLASH, EFFICIENT = (f"torch.backends.cuda.enable_{name}_sdp" for name in ("flash", "mem_efficient"))


@pytest.mark.parametrize(
    ("text", "default", "pedantic"),
    [
        (f"import torch\n\n{FLASH}(False)\n", [], [3]),
        (f"import torch\n\n{FLASH}(False)\n{EFFICIENT}(False)\n", [4], [4]),
        (f"import torch\n\n{EFFICIENT}(False)\n", [], []),
        (f"import torch\n\nON = False\n{FLASH}(True)\nif ON:\n    {FLASH}(False)\n", [], []),
    ],
    ids=["flash", "both", "the other", "flag"],
)
def test_a_kernel_that_is_forbidden(text: str, default: list[int], pedantic: list[int]) -> None:
    assert (found(text), found(text, "pedantic")) == (default, pedantic)
