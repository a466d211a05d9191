"""TPF931 for models whose layers are those of torch."""

from __future__ import annotations

import pytest

from perflint.rules.distributed.one_sharded_unit import OneShardedUnit
from tests.rules.harness import lint

STACK = """\
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(512, 8) for _ in range(6)])
        self.head = nn.Linear(512, 512)


def build(mesh):
    stack = Stack()
    {}
    return fully_shard(stack, mesh=mesh)
"""


@pytest.mark.parametrize(
    ("before", "lines"),
    [
        ("for layer in stack.layers:\n        fully_shard(layer, mesh=mesh)", []),
        ("fully_shard(stack.layers[0], mesh=mesh)", [16]),
        ("stack.cuda()", [16]),
    ],
    ids=["each", "first", "none"],
)
def test_layers(before: str, lines: list[int]) -> None:
    assert [each.span.line for each in lint(STACK.format(before), [OneShardedUnit], "pedantic")] == lines
