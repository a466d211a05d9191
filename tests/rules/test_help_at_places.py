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
NUMBERS_OF_LOOP = """
import torch

def sample(model: torch.nn.Module, x: torch.Tensor, least: float):
    steps = torch.linspace(1, 0, 50, device="cuda")
    for i, (now, following) in enumerate(zip(steps[:-1], steps[1:])):
        x = model(x.cuda())
        if now > least:
            x = x + torch.randn_like(x)
    return x
"""


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (NUMBERS_OF_LOOP, "Read all of `steps[:-1]` once, before the loop, with `.tolist()`."),
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


PINNED = """
import torch
from torch.utils.data import DataLoader

class PinningDataLoader(DataLoader):
    def __init__(self, data):
        super().__init__(data, pin_memory=True)

def train(model: torch.nn.Module, data):
    loader = PinningDataLoader(data)
    for _ in range(1000):
        x = next(iter(loader))
        model(x["x"].cuda()).sum().backward()
"""
UNPINNED = """
import torch
from torch.utils.data import DataLoader

def train(model: torch.nn.Module, data):
    loader = DataLoader(data, num_workers=4)
    for x in loader:
        model(x.cuda()).sum().backward()
"""
BACK = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader, seen: list):
    for x, y in loader:
        labels = y.cuda().float()
        seen.append((model(x), labels.cpu().numpy()))
"""
STORED = """
import torch

def fill(y: torch.Tensor):
    y = y.cuda()
    y[:, 1:3] = torch.rand(8, 2)
    return y
"""


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (PINNED, "Pass `non_blocking=True`, with `pin_memory=True` in `loader` if that is not there yet."),
        (UNPINNED, "Let `loader` pin its batches (`pin_memory=True`) and pass `non_blocking=True`."),
        (BACK, "Keep it on the CPU: line 7 only copies it back."),
        (STORED, "Make the tensor on the GPU, or copy it there before, from pinned memory with `non_blocking=True`."),
    ],
)
def test_advice_for_a_copy_fits_what_is_known_of_the_loader_and_the_uses(program: str, words: str) -> None:
    (finding,) = found(program, "TPF201", Profile.AUDIT)
    assert finding.help == words


NUMBERS = """
import torch

class Trainer:
    def __init__(self):
        self.mean = [0.5, 0.25]

    def train_step(self, model: torch.nn.Module, x: torch.Tensor, rows: list, number: float, n: int):
        sizes = []
        for row in rows:
            sizes.append(row.size)
        model(x.cuda(), {}).sum().backward()
"""


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("torch.tensor([row.size for row in rows], device='cuda')", "If the numbers rarely change, make the tensor"),
        ("torch.tensor(sizes, device='cuda')", "If the numbers rarely change, make the tensor once and keep it."),
        ("torch.tensor([i * i for i in range(n)], device='cuda')", "Compute it on the GPU (`torch.arange`), or"),
        ("torch.tensor([number], device='cuda')", "Fill the tensor on the GPU: `torch.full(size, number, device=…)`."),
        ("torch.tensor(self.mean, device='cuda')", "If `self.mean` rarely changes, make the tensor where it is set"),
        ("torch.tensor([0.5, 0.25], device='cuda')", "Make it once and keep it on the GPU"),
    ],
)
def test_advice_for_numbers_fits_their_source(made: str, words: str) -> None:
    (finding,) = found(NUMBERS.format(made), "TPF117", Profile.AUDIT)
    assert (finding.help or "").startswith(words)


def test_a_batch_that_is_a_tensor_needs_no_constructor() -> None:
    program = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader):
    for x, labels in loader:
        model(x.cuda(), torch.LongTensor(labels).cuda()).sum().backward()
"""
    (finding,) = found(program, "TPF117", Profile.AUDIT)
    assert (finding.help or "").startswith("Copy `labels` itself")


PARTS = """
import torch

def read(x: torch.Tensor, lengths: list, model: torch.nn.Module):
    parts = {}
    return [part.tolist() for part in parts]
"""


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ("torch.split(x.cuda(), lengths)", "Copy the tensor to the CPU once, before `torch.split(x.cuda(), lengths)`."),
        ("[model(x.cuda()).flatten(), x.cuda().flatten()]", "Copy all of `parts` at once, before the loop: joined by"),
    ],
)
def test_parts_of_unequal_length_are_not_stacked(parts: str, words: str) -> None:
    (finding,) = found(PARTS.format(parts), "TPF103", Profile.AUDIT)
    assert (finding.help or "").startswith(words)


def test_branches_that_exclude_each_other_search_a_mask_once_each() -> None:
    program = """
import torch

def loss(x: torch.Tensor, y: torch.Tensor, kind: str):
    mask = x.cuda() > 0
    if kind == "both":
        return x.cuda()[mask] - y.cuda()[mask]
    else:
        return y.cuda()[mask]
"""
    first, second, third = sorted(found(program, "TPF110", Profile.AUDIT), key=lambda each: each.span.line)
    assert (first.help or "").startswith("Search `mask` once, not 2 times")
    assert (second.help or "").startswith("Search `mask` once, not 2 times")
    assert (third.help or "").startswith("Keep the size")


def test_a_wait_beside_collectives_is_not_advised_by_the_order_of_one_stream() -> None:
    program = """
import torch
import torch.distributed as dist

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader):
    for x, y in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        handle = dist.all_reduce(loss, async_op=True)
        handle.wait()
        torch.cuda.synchronize()
"""
    (finding,) = found(program, "TPF122", Profile.AUDIT)
    assert (finding.help or "").startswith("Remove it: the GPU waits for collectives by itself")


def test_rows_of_python_numbers_are_filled_on_the_cpu() -> None:
    program = """
import torch

def padded(rows: list[list[int]], count: int):
    tokens = torch.zeros((len(rows) * count, 64), dtype=torch.long, device="cuda")
    for k, row in enumerate(rows):
        for i in range(count):
            tokens[k * count + i, : len(row)] = torch.tensor(row, dtype=torch.long, device="cuda")
    return tokens
"""
    findings = found(program, "TPF208", Profile.AUDIT)
    assert [finding.help for finding in findings] == [
        "Fill the rows on the CPU, and copy all of them to the GPU at once."
    ]


TEXT = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader, cache: dict):
    for x, y in loader:
        loss = model(x.cuda()).sum()
        top = model(x.cuda()).topk(1).values.flatten()
        loss.backward()
        {}
"""


@pytest.mark.parametrize(
    ("statement", "message", "help"),
    [
        ("print(loss)", "`loss` is printed: the CPU waits for the GPU", "Write it every 100 steps"),
        ("found = cache[str(loss)]", "`loss` is turned into text: the CPU waits", "The CPU needs this text"),
        ("print('%.2f' % top)", "`top` is formatted by `%`: the CPU waits for the GPU (", "Write it every 100 steps"),
        (
            "print('%s' % top)",
            "`top` is formatted by `%`: the CPU waits for the GPU several",
            "Write it every 100 steps",
        ),
    ],
)
def test_advice_for_a_text_fits_its_use(statement: str, message: str, help: str) -> None:
    finding = found(TEXT.format(statement), "TPF108", Profile.AUDIT)[0]
    assert finding.message.startswith(message)
    assert (finding.help or "").startswith(help)
