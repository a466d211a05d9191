"""Advice that follows from the code at its place: what a test decides on, and what uses a number."""

from __future__ import annotations

import pytest

from perflint.config.settings import Profile
from tests.engine.test_places import found

DECODE = """
import torch

def decode(model: torch.nn.Module, tokens: torch.Tensor, end: int):
    done = torch.zeros(8, dtype=torch.bool, device="cuda")
    for _ in range(100):
        tokens = model(tokens.cuda()).argmax(dim=-1)
        done = done | (tokens == end)
        if done.all():
            break
    return tokens
"""
CHECK = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader):
    for x, y in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        if loss > 1e4:
            raise ValueError("diverged")
"""
COUNT = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader, batches: list):
    for x, y in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        if loss > 1:
            batches.append(x)
"""
CHOICE = """
import torch

class Clamp(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.max() > 1:
            x = x / x.max()
        return x
"""
AGAIN = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader, bar):
    for x, y in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        bar.set_postfix(loss=0 if loss == 0 else float(loss.item()))
"""
ANSWER = """
import torch

def inside(x: torch.Tensor):
    top = x.cuda().max()
    return 0 <= top <= 1
"""


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (DECODE, "Test every 10 iterations, if a few more do no harm"),
        (CHECK, "Check every 100 steps"),
        (COUNT, "Only the CPU can branch"),
        (CHOICE, "Compute both and choose on the GPU"),
        (AGAIN, "Read the number first"),
        (ANSWER, "Join the comparisons with `&`"),
    ],
)
def test_advice_for_a_test_fits_the_code_that_it_decides_on(program: str, words: str) -> None:
    finding = found(program, "TPF105", Profile.AUDIT)[0]
    assert (finding.help or "").startswith(words)


READ = """
import math
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader, optimizer: torch.optim.Optimizer, log):
    total, seen = 0.0, []
    for x, y in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        {}
    return total
"""


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "print(loss.detach().float().mean().item())",
            "Log every 100 steps, or keep `loss.detach().float().mean()` and read many at once.",
        ),
        (
            "total += loss.mean().item()",
            "Add up on the GPU, with `loss.mean().detach()` in place of the number, and read the sum after the loop.",
        ),
        (
            "rate = 0.5 * (1 + math.cos(loss.item())); optimizer.param_groups[0]['lr'] = rate; print(rate)",
            "The optimizer needs the number in this step: compute it on the CPU, from values that are there.",
        ),
        (
            "for group in optimizer.param_groups: group['lr'] = loss.item()",
            "The optimizer needs the number in this step: compute it on the CPU, from values that are there.",
        ),
        (
            "n = loss.item(); print(n); total += n",
            "Keep `loss.detach()`, and read it when the number is needed.",
        ),
        (
            "n = loss.item(); print(n); log.unknown(n)",
            "Keep the number on the GPU, or read it together with others: several numbers need one wait.",
        ),
        (
            "n = (y.cuda() > 0).sum().item(); print(n)",
            "Log every 100 steps, or keep `(y.cuda() > 0).sum()` and read many at once.",
        ),
    ],
)
def test_advice_for_a_read_fits_all_uses_of_the_number(statement: str, words: str) -> None:
    (finding,) = found(READ.format(statement), "TPF101", Profile.AUDIT)
    assert finding.help == words


def test_a_number_that_is_copied_and_read_is_advised_as_a_read() -> None:
    program = """
import torch

class Trainer:
    def train_step(self, model: torch.nn.Module, x):
        loss = model(x.cuda()).sum()
        loss.backward()
        return loss.detach().cpu().item()
"""
    (finding,) = found(program, "TPF109", Profile.AUDIT)
    assert finding.help == "Return the tensor, so that the caller decides when to read it."
