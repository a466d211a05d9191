"""Waiting for the whole device in functions of which nothing says how often they run."""

from __future__ import annotations

import pytest

from perflint.findings import Confidence
from perflint.rules.sync.explicit_synchronize import ExplicitSynchronize
from tests.rules.harness import lint

HELPER = """\
import time
import torch

def send(buffers, ready):
    for buffer in buffers:
        buffer.send()
    {wait}
    return buffers
{more}
"""


@pytest.mark.parametrize("profile", ["audit", "default"])
@pytest.mark.parametrize(
    ("wait", "more"),
    [
        ("torch.cuda.synchronize()", ""),
        # Clocks and copies that need no wait.
        ("torch.cuda.synchronize()", "def timed():\n    return time.perf_counter()"),
        ("buffers[0] = buffers[0].to('cuda', non_blocking=True)\n    torch.cuda.synchronize()", ""),
    ],
)
def test_audit_alone_shows_what_may_run_each_step(wait: str, more: str, profile: str) -> None:
    found = lint(HELPER.format(wait=wait, more=more), [ExplicitSynchronize], profile)
    assert [finding.confidence for finding in found] == ([Confidence.LOW] if profile == "audit" else [])


@pytest.mark.parametrize(
    ("wait", "more"),
    [
        ("ready.synchronize()", ""),
        ("torch.cuda.current_stream().synchronize()", ""),
        ("torch.cuda.Event().synchronize()", ""),
        # A helper for times that are taken elsewhere in the file.
        ("torch.cuda.synchronize()", "def timed():\n    return time.perf_counter(), send([], None)"),
        ("buffers[0] = buffers[0].to('cpu', non_blocking=True)\n    torch.cuda.synchronize()", ""),
    ],
)
def test_other_waits_there_are_fine(wait: str, more: str) -> None:
    assert not lint(HELPER.format(wait=wait, more=more), [ExplicitSynchronize], "audit")


def test_what_seldom_runs_may_wait() -> None:
    code = "import torch\n\ndef save_checkpoint(model):\n    torch.cuda.synchronize()\n"
    assert not lint(code, [ExplicitSynchronize], "audit")


@pytest.mark.parametrize(
    "code",
    [
        "def sync():\n    if torch.cuda.is_initialized():\n        torch.cuda.synchronize()\n\n"
        "def train(model, loader, optimizer):\n    for x in loader:\n        model(x).sum().backward()\n"
        "        optimizer.step()\n        sync()\n",
        "class HostAdam(torch.optim.Optimizer):\n    def step(self, closure=None):\n        torch.cuda.synchronize()\n"
        "        for group in self.param_groups:\n            step_on_host(group)\n",
    ],
)
def test_whose_purpose_it_is_to_wait_is_shown_in_audit_alone(code: str) -> None:
    assert lint("import torch\n\n" + code, [ExplicitSynchronize], "audit")
    assert not lint("import torch\n\n" + code, [ExplicitSynchronize], "default")


BEFORE_WORK = """
def attend(x: torch.Tensor, weight: torch.Tensor, send) -> torch.Tensor:
    torch.cuda.synchronize()
    {first}
    x = torch.mm(x, weight)
    return x.view({size}, -1)
"""


def test_a_wait_before_work_of_the_same_function_is_shown() -> None:
    code = "import torch\n" + BEFORE_WORK.format(first="count = x.size(0)", size="count")
    assert len(lint(code, [ExplicitSynchronize], "default")) == 1


@pytest.mark.parametrize(
    "first",
    [
        "count = int(x.sum().item())",
        "count = len(x.cpu())",
        "send(x)",
        "torch.cuda.empty_cache()",
        "if len(x) > 2: send(x)",
    ],
    ids=["a read", "a copy to the CPU", "unknown code", "the cache of the allocator", "a branch"],
)
def test_a_wait_before_other_code_is_for_audit(first: str) -> None:
    code = "import torch\n" + BEFORE_WORK.format(first=first, size="len(x)")
    assert lint(code, [ExplicitSynchronize], "audit")
    assert not lint(code, [ExplicitSynchronize], "default")
