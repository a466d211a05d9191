"""Fixes leave the text that a person would write."""

from __future__ import annotations

import pytest

from perflint.findings import WRITABLE, Finding
from perflint.fixes.apply import apply_fixes
from perflint.rules.base import Rule
from perflint.rules.data.pin_memory_off import PinMemoryOff
from perflint.rules.legacy.pin_memory_device import PinMemoryDevice
from perflint.rules.sync.empty_cache_in_loop import EmptyCacheInLoop
from perflint.rules.sync.manual_gradient_norm import ManualGradientNorm
from perflint.rules.sync.redundant_any_guard import RedundantAnyGuard
from perflint.rules.sync.scalar_read_in_loop import ScalarReadInLoop
from perflint.rules.sync.scalar_to_cuda import ScalarToCuda
from perflint.rules.sync.truth_of_tensor import TruthOfTensor
from perflint.rules.transfer.copy_of_fresh_tensor import CopyOfFreshTensor
from perflint.rules.transfer.create_then_move import CreateThenMove
from tests.rules.harness import lint

HEAD = "import torch\n\n\n"
CASES: dict[str, tuple[type[Rule], str, str]] = {
    "a backslash before a dot": (
        CopyOfFreshTensor,
        """
def joined(x: torch.Tensor) -> torch.Tensor:
    both = torch.cat([x, x]) \\
        .clone()
    return both
""",
        """
def joined(x: torch.Tensor) -> torch.Tensor:
    both = torch.cat([x, x])
    return both
""",
    ),
    "a comment before a dot": (
        CopyOfFreshTensor,
        """
def joined(x: torch.Tensor) -> torch.Tensor:
    return (
        torch.cat([x, x])  # twice
        .clone()
    )
""",
        """
def joined(x: torch.Tensor) -> torch.Tensor:
    return (
        torch.cat([x, x])  # twice
    )
""",
    ),
    "the last lines of a file": (
        EmptyCacheInLoop,
        """
def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
""",
        """
def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
""",
    ),
    "arguments on lines of their own": (
        ScalarToCuda,
        """
def zero(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor(
        0.0,
        dtype=x.dtype,
        device=x.device,
    )
""",
        """
def zero(x: torch.Tensor) -> torch.Tensor:
    return torch.full(
        (),
        0.0,
        dtype=x.dtype,
        device=x.device,
    )
""",
    ),
    "an assert of several lines": (
        TruthOfTensor,
        """
def check(x: torch.Tensor, y: torch.Tensor) -> None:
    assert (
        x == y
    ).all()
    assert (x == y).all()
""",
        """
def check(x: torch.Tensor, y: torch.Tensor) -> None:
    assert (
        x == y
    ).all()
    torch._assert_async((x == y).all())
""",
    ),
    "a detached tensor in a sum": (
        ScalarReadInLoop,
        """
def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total += loss.detach().item()
    return total
""",
        """
def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total += loss.detach().double()
    total = float(total)
    return total
""",
    ),
    "a detached tensor in double precision in a sum": (
        ScalarReadInLoop,
        """
def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total += loss.detach().double().item()
    return total
""",
        """
def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total += loss.detach().double()
    total = float(total)
    return total
""",
    ),
    "a tensor in double precision in a sum": (
        ScalarReadInLoop,
        """
def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total += loss.double().item()
    return total
""",
        """
def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total += loss.double().detach()
    total = float(total)
    return total
""",
    ),
    "a tensor that is multiplied after it was detached": (
        ScalarReadInLoop,
        """
def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total += loss.detach().mul(weight).item()
    return total
""",
        """
def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total += loss.detach().mul(weight).detach().double()
    total = float(total)
    return total
""",
    ),
    "a backslash behind a colon": (
        RedundantAnyGuard,
        """
def ignore(count: int, device: torch.device):
    labels = torch.randint(0, 4, (count,), device=device)
    bad = labels == 2
    if bad.any(): \\
          labels[bad] = 0  # ignored
    return labels
""",
        """
def ignore(count: int, device: torch.device):
    labels = torch.randint(0, 4, (count,), device=device)
    bad = labels == 2
    labels[bad] = 0  # ignored
    return labels
""",
    ),
    "a bracket right behind a keyword": (
        CopyOfFreshTensor,
        """
def added(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return(a + b).clone()
""",
        """
def added(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return(a + b)
""",
    ),
    "a count of what is not known to be whole": (
        ScalarReadInLoop,
        """
def evaluate(model: torch.nn.Module, loader, other):
    same = 0
    model.eval()
    with torch.no_grad():
        for x in loader:
            same += (other(model(x)) == other(x)).sum().item()
    return same
""",
        """
def evaluate(model: torch.nn.Module, loader, other):
    same = 0
    model.eval()
    with torch.no_grad():
        for x in loader:
            same += (other(model(x)) == other(x)).sum().item()
    return same
""",
    ),
    "the start of a norm": (
        ManualGradientNorm,
        """
def norm(model: torch.nn.Module) -> float:
    total = 0.0
    for p in model.parameters():
        total += p.grad.data.norm(2).item() ** 2
    total = total ** 0.5
    return total
""",
        """
def norm(model: torch.nn.Module) -> float:
    total = torch.nn.utils.get_total_norm(
        [p.grad for p in model.parameters() if p.grad is not None]
    )
    return total
""",
    ),
    "the start of a norm with a comment": (
        ManualGradientNorm,
        """
def norm(model: torch.nn.Module) -> float:
    total = 0.0  # of all gradients
    for p in model.parameters():
        total += p.grad.data.norm(2).item() ** 2
    total = total ** 0.5
    return total
""",
        """
def norm(model: torch.nn.Module) -> float:
    total = 0.0  # of all gradients
    total = torch.nn.utils.get_total_norm(
        [p.grad for p in model.parameters() if p.grad is not None]
    )
    return total
""",
    ),
    "brackets that a move does not need": (
        CreateThenMove,
        """
def zeros(device: torch.device):
    a = (torch.zeros(3)).to(device)
    b = (
        torch.zeros(3)
        .unsqueeze(0)
        .to(device)
    )
    return(torch.ones(3)).to(device), a, b
""",
        """
def zeros(device: torch.device):
    a = torch.zeros(3, device=device)
    b = (
        torch.zeros(3, device=device)
        .unsqueeze(0)
    )
    return(torch.ones(3, device=device)), a, b
""",
    ),
    "comments of arguments": (
        PinMemoryDevice,
        """
from torch.utils.data import DataLoader


def loader(data):
    return DataLoader(
        data,
        pin_memory=True,  # faster
        pin_memory_device="cuda",  # the device
        batch_size=3,  # small
    )


def last(data):
    return DataLoader(
        data,
        pin_memory=True,  # faster
        pin_memory_device="cuda"  # the device
    )
""",
        """
from torch.utils.data import DataLoader


def loader(data):
    # the device
    return DataLoader(
        data,
        pin_memory=True,  # faster
        batch_size=3,  # small
    )


def last(data):
    # the device
    return DataLoader(
        data,
        pin_memory=True,  # faster
    )
""",
    ),
    "another name for torch": (
        PinMemoryOff,
        """
import torch as th
from torch.utils.data import DataLoader


def train(data, model):
    for x in DataLoader(data, num_workers=2):
        model(x.to("cuda"))
""",
        """
import torch as th
from torch.utils.data import DataLoader


def train(data, model):
    for x in DataLoader(data, num_workers=2, pin_memory=th.cuda.is_available()):
        model(x.to("cuda"))
""",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_text(name: str) -> None:
    rule, before, after = CASES[name]

    def relint(now: str) -> list[Finding]:
        return lint(now, [rule], "audit")

    head = "" if "import torch" in before or "from torch" in before else HEAD
    text = head + before.lstrip("\n")
    assert apply_fixes(text, relint(text), relint, WRITABLE).text == head + after.lstrip("\n")
