"""Unsafe fixes around the training step: what they keep, and what they change as their pages say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from perflint.findings import WRITABLE, Finding
from perflint.fixes.apply import apply_fixes
from perflint.rules.base import Rule
from perflint.rules.data.ragged_last_batch import RaggedLastBatch
from perflint.rules.optimizer.for_loop_optimizer import ForLoopOptimizer
from perflint.rules.optimizer.zero_grad_memset import ZeroGradMemset
from perflint.rules.sync.manual_gradient_norm import ManualGradientNorm
from perflint.rules.transfer.accidental_float64 import AccidentalFloat64
from perflint.rules.transfer.cat_growth import CatGrowth
from perflint.rules.transfer.graph_retaining_accumulate import GraphRetainingAccumulate
from perflint.rules.transfer.legacy_type import LegacyType
from tests.rules.harness import lint

torch = pytest.importorskip("torch")


def both(rule: type[Rule], text: str) -> tuple[Any, Any]:
    """What `run` of a text gives before and after the fixes of a rule."""

    def relint(now: str) -> list[Finding]:
        return lint(now, [rule], "audit")

    after = apply_fixes(text, relint(text), relint, WRITABLE).text
    assert after != text, "nothing was fixed"
    return run(text), run(after)


def run(text: str) -> Any:
    namespace: dict[str, Callable[[], Any]] = {}
    exec(compile(text, "example.py", "exec"), namespace)
    torch.manual_seed(0)
    return namespace["run"]()


def test_gathering_in_a_list_gives_the_same_values() -> None:
    text = """
import torch

def run():
    found = torch.empty(0, 3)
    for i in range(4):
        found = torch.cat([found, torch.full((2, 3), i)], dim=0)
    return found
"""
    before, after = both(CatGrowth, text)
    assert torch.equal(before, after) and before.dtype == after.dtype


def test_no_turn_leaves_the_start() -> None:
    text = """
import torch

def run(parts=()):
    found = torch.ones(2, 3)
    for part in parts:
        found = torch.cat([found, part])
    return found
"""
    before, after = both(CatGrowth, text)
    assert torch.equal(before, after)


def test_the_norm_becomes_a_tensor_of_the_same_value() -> None:
    text = """
import torch

def run():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    unused = torch.nn.Linear(2, 2)
    model.append(unused)
    model[:2](torch.ones(5, 3)).square().sum().backward()
    total = 0.0
    for p in model.parameters():
        if p.grad is not None:
            total += p.grad.norm(2).item() ** 2
    total = total ** 0.5
    return total
"""
    before, after = both(ManualGradientNorm, text)
    assert isinstance(before, float) and isinstance(after, torch.Tensor)
    assert after.item() == pytest.approx(before, rel=1e-5)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop"])
def test_the_other_form_of_an_optimizer_differs_in_the_last_bits_at_most(name: str) -> None:
    text = f"""
import torch

def run():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.{name}(model.parameters(), lr=0.1, foreach=False)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).square().sum().backward()
        optimizer.step()
    return model.weight, optimizer
"""
    (before, _), (after, optimizer) = both(ForLoopOptimizer, text)
    assert torch.allclose(before, after, rtol=1e-5, atol=1e-7)
    assert bool(optimizer.defaults.get("fused")) is name.startswith("Adam")


def test_a_sum_requires_no_gradient_any_more() -> None:
    text = """
import torch

def run():
    model, total = torch.nn.Linear(2, 1), 0.0
    for x in torch.arange(6.0).reshape(3, 2):
        loss = model(x).sum()
        loss.backward()
        total += loss
    return total, model.weight.grad
"""
    (before, first), (after, second) = both(GraphRetainingAccumulate, text)
    assert before.requires_grad and not after.requires_grad
    assert before.item() == after.item() and torch.equal(first, second)


def test_arrays_become_single_precision() -> None:
    pytest.importorskip("numpy")
    text = """
import numpy as np
import torch

def run():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.tensor(np.linspace(0, 1, 7), device=device)
"""
    before, after = both(AccidentalFloat64, text)
    assert before.dtype is torch.float64 and after.dtype is torch.float32
    assert torch.allclose(before.float(), after)


def test_a_cast_gives_the_same_numbers() -> None:
    text = """
import torch

def cast(y: torch.Tensor) -> torch.Tensor:
    return y.type(torch.LongTensor)

def run():
    return cast(torch.tensor([1.5, -2.5]))
"""
    before, after = both(LegacyType, text)
    assert torch.equal(before.cpu(), after.cpu()) and before.dtype is after.dtype is torch.int64


def test_items_of_the_last_batch_are_left_out() -> None:
    text = """
import torch
from torch.utils.data import DataLoader

MODE = "reduce-overhead"

def run():
    sizes = []
    for x in DataLoader(list(range(10)), batch_size=4, shuffle=True):
        sizes.append(len(x))
    return sizes
"""
    assert both(RaggedLastBatch, text) == ([4, 4, 2], [4, 4])


@pytest.mark.parametrize("adding", ["p.grad += g", "p.grad.add_(g)"])
def test_gradients_that_the_file_adds_to_must_be_there(adding: str) -> None:
    text = f"""
import torch

def update(model: torch.nn.Module, optimizer, gradients):
    for p, g in zip(model.parameters(), gradients):
        {adding}
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
"""
    assert not lint(text, [ZeroGradMemset], "default")
    assert len(lint(text, [ZeroGradMemset], "audit")) == 1
    assert len(lint(text.replace(adding, "g.sum()"), [ZeroGradMemset], "audit")) == 1
