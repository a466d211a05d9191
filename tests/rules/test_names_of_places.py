"""A read of an unknown value in a training loop: its name may say that it is on the CPU."""

from __future__ import annotations

import pytest

from perflint.rules.sync.device_to_host_copy_in_loop import DeviceToHostCopyInLoop
from perflint.rules.sync.scalar_read_in_loop import ScalarReadInLoop
from tests.rules.harness import lint

TEXT = """
import torch

def train(model: torch.nn.Module, loader, fetch):
    for x, y in loader:
        out = model(x)
        {code}
"""


@pytest.mark.parametrize(
    "code",
    [
        "cpu_x = fetch(out); cpu_x.sum().item()",
        "_, loss_cpu = fetch(out); loss_cpu.mean().item()",
    ],
)
def test_names_that_say_cpu(code: str) -> None:
    assert not lint(TEXT.format(code=code), [ScalarReadInLoop], "default")


def test_a_copy_to_the_cpu_is_no_name() -> None:
    code = "z = fetch(out); keep(z.cpu().numpy())"
    found = lint(TEXT.format(code=code), [DeviceToHostCopyInLoop], "default")
    assert [finding.confidence.value for finding in found] == ["medium"]


@pytest.mark.parametrize("name", ["x", "use_cpu", "cpus", "to_cpu"])
def test_other_names(name: str) -> None:
    code = f"{name} = fetch(out); {name}.sum().item()"
    assert len(lint(TEXT.format(code=code), [ScalarReadInLoop], "default")) == 1
