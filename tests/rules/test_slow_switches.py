"""TPF358 on whole files: what says that a program means it."""

from __future__ import annotations

from perflint.rules.precision.slow_switches import SlowSwitches
from tests.rules.harness import lint

FILE = """\
import os
import torch

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.enabled = False
"""


def found(text: str) -> list[tuple[int, str]]:
    return [(each.span.line, each.severity.value) for each in lint(text, [SlowSwitches], "default")]


def test_severity_goes_by_the_switch() -> None:
    assert found(FILE) == [(4, "error"), (5, "warning"), (6, "error")]


def test_what_cublas_needs_is_set_on_purpose() -> None:
    assert found(FILE + 'os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"\n') == [(6, "error")]


TRAINS = """
def train(model, loader, optimizer):
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()
"""


def test_float64_as_the_default_in_its_forms() -> None:
    for given in ("dtype(torch.float64)", "tensor_type(torch.cuda.DoubleTensor)", 'tensor_type("torch.DoubleTensor")'):
        assert found(f"import torch\n\ntorch.set_default_{given}\n{TRAINS}") == [(3, "error")]
    for given in ("dtype(torch.float32)", "tensor_type(torch.cuda.FloatTensor)"):
        assert not found(f"import torch\n\ntorch.set_default_{given}\n{TRAINS}")
