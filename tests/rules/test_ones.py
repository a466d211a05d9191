"""Dimensions of size 1: what is told of an expression holds for the tensor that it gives."""

from __future__ import annotations

import ast
from pathlib import Path
from random import Random

import pytest
import torch

from perflint.rules.transfer._ones import shape
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source

Made = tuple[str, tuple[int, ...]]
"""An expression, and the size of what it gives."""


def indexed(random: Random, rank: int) -> str:
    """Some of the dimensions taken, given or cut, with and without an ellipsis."""
    choices = ["None", ":", "0", ":1", "-1:", "1:", "0:1"]
    parts = [random.choice(choices) for _ in range(random.randint(1, rank + 1))]
    if random.random() < 0.4:
        parts.insert(random.randint(0, len(parts)), "...")
    return f"[{', '.join(parts)}]"


def step(random: Random, rank: int) -> str:
    """One operation that changes a shape, or keeps it."""
    dim = random.randint(-rank - 1, rank)
    return random.choice(
        [
            f".unsqueeze({dim})",
            f".{random.choice(['mean', 'sum', 'amax'])}({random.choice(['', 'dim='])}{dim}, keepdim=True)",
            ".reshape(1, -1, 1)",
            ".float().detach()",
            *[indexed(random, rank)] * 4,
        ]
    )


def expressions(random: Random, count: int) -> list[Made]:
    """Expressions that torch evaluates; half of them begin with a tensor of which nothing is known."""
    found = []
    while len(found) < count:
        sizes = [random.choice([1, 2, 3]) for _ in range(random.randint(1, 4))]
        begin = f"torch.zeros({', '.join(map(str, sizes))})"
        given, text = torch.zeros(*sizes), random.choice([begin, f"hidden({begin})"])
        for _ in range(random.randint(1, 4)):
            after = step(random, given.dim())
            try:
                given = eval(f"given{after}", {"given": given})
            except (IndexError, RuntimeError):
                break
            text += after
        found.append((text, tuple(given.shape)))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_what_is_told_of_shapes_is_true(seed: int) -> None:
    made = expressions(Random(seed), 200)
    text = "import torch\n" + "".join(f"{expression}\n" for expression, _ in made)
    source = Source("example.py", text)
    model = Model(source, Project([Path(source.path)]))
    told = 0
    for statement, (expression, size) in zip(source.tree.body[1:], made, strict=True):
        assert isinstance(statement, ast.Expr)
        found = shape(model, statement.value)
        assert found.rank in (None, len(size)), expression
        # An empty slice is told apart by `sliced`.
        allowed = (0, 1) if found.sliced else (1,)
        for index in found.ones:
            assert -len(size) <= index < len(size) and size[index] in allowed, expression
        told += bool(found.ones)
    assert told > len(made) // 3
