"""Accumulation under wrappers other than DistributedDataParallel."""

from __future__ import annotations

import pytest

from perflint.rules.optimizer.accum_without_no_sync import AccumWithoutNoSync
from tests.rules.harness import lint

BY_HAND = """\
from accelerate import Accelerator

def train(model, optimizer, loader, window):
    accelerator = Accelerator({options})
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for step, batch in enumerate(loader):
        with {context}:
            accelerator.backward(model(**batch).loss / window)
        if (step + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
SHARDED = """\
from torch.distributed.fsdp import fully_shard

def train(model, loader, optimizer, window):
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    for i, x in enumerate(loader):
        {before}
        model(x.cuda(non_blocking=True)).mean().backward()
        if (i + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("options", "context", "expected"),
    [
        ("", "timer()", [8]),
        ("mixed_precision='bf16'", "timer()", [8]),
        ("", "accelerator.accumulate(model)", []),
        ("", "accelerator.no_sync(model)", []),
        ("gradient_accumulation_steps=4", "timer()", []),
    ],
)
def test_an_accelerator_reduces_in_each_backward_pass(options: str, context: str, expected: list[int]) -> None:
    text = BY_HAND.format(options=options, context=context)
    assert [each.span.line for each in lint(text, [AccumWithoutNoSync], "default")] == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [("pass", [9]), ("model.set_requires_gradient_sync((i + 1) % window == 0)", [])],
)
def test_shards_reduce_in_each_backward_pass(before: str, expected: list[int]) -> None:
    assert [each.span.line for each in lint(SHARDED.format(before=before), [AccumWithoutNoSync], "default")] == expected
