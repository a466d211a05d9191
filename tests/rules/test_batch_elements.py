"""Elements of a batch are on the CPU if the same function moves other elements of it to the GPU."""

from __future__ import annotations

import pytest

from perflint.rules.sync.device_to_host_copy_in_loop import DeviceToHostCopyInLoop
from tests.rules.harness import lint

STEP = """\
import torch

@torch.inference_mode()
def run(model, batches):
    for batch in batches:
        {moved}
        model(ids, positions(batch["grid"].tolist()))
"""


@pytest.mark.parametrize(
    ("moved", "is_shown"),
    [
        ("ids = batch['ids']", True),
        ("ids = batch['ids'].cuda(non_blocking=True)", False),
        ("ids = batch['ids'].to('cuda')", False),
        ("ids = batches[0]['ids'].cuda()", True),
        ("other = batch['ids'].cuda()", True),
    ],
)
def test_an_element_beside_one_that_moves(moved: str, is_shown: bool) -> None:
    assert bool(lint(STEP.format(moved=moved), [DeviceToHostCopyInLoop], "default")) is is_shown
