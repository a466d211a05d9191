"""TorchScript in files that save something."""

from __future__ import annotations

import pytest

from perflint.findings import Confidence
from perflint.rules.legacy.torchscript import Torchscript
from tests.rules.harness import lint

DECORATED = "@torch.jit.script\ndef gelu(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n"
SCRIPTED = "class Net(torch.jit.ScriptModule):\n    pass\n"
SAVES = "\ndef save(state, path):\n    torch.save(state, path)\n"


@pytest.mark.parametrize(
    ("code", "confidence"),
    [
        (DECORATED, Confidence.HIGH),
        (DECORATED + SAVES, Confidence.HIGH),
        (SCRIPTED, Confidence.HIGH),
        (SCRIPTED + SAVES, Confidence.LOW),
    ],
)
def test_functions_are_not_saved_by_themselves(code: str, confidence: Confidence) -> None:
    (found,) = lint("import torch\n\n\n" + code, [Torchscript], "audit")
    assert found.confidence is confidence
