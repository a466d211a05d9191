"""A method that only tensors have reads the tensor of a value that may be something else, too."""

from __future__ import annotations

import pytest

from perflint.rules.sync.scalar_read_in_loop import ScalarReadInLoop
from tests.rules.harness import lint

TEXT = """
import torch

def train(model, loss_fn, loader, scale, half):
    '''Train.

    Args:
        loss_fn (torch.nn.Module): the loss
    '''
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        {loss}
        if half:
            {other}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())

def main(model: torch.nn.Module, loader, scale, half):
    loss_fn = torch.jit.trace(torch.nn.MSELoss().forward, (torch.rand(8).cuda(), torch.rand(8).cuda()))
    train(model.cuda(), loss_fn, loader, scale, half)
"""


@pytest.mark.parametrize(
    ("loss", "other"),
    [
        ("loss = loss_fn(model(x.cuda()), y.cuda())", "loss *= scale"),
        ("loss = loss_fn(model(x.cuda()), y.cuda())", "loss = loss + scale"),
        ("loss = model(x.cuda())", "loss = loss.mean()"),
    ],
)
def test_the_tensor_among_batches_is_read(loss: str, other: str) -> None:
    assert len(lint(TEXT.format(loss=loss, other=other), [ScalarReadInLoop], "default")) == 1


@pytest.mark.parametrize(
    ("loss", "other"),
    [
        ("loss = (x, y)[0]", "loss = loss + 1"),
        ("loss = loss_fn(model(x.cuda()), y.cuda()).cpu()", "loss *= scale"),
    ],
)
def test_batches_on_the_cpu_are_not(loss: str, other: str) -> None:
    assert not lint(TEXT.format(loss=loss, other=other), [ScalarReadInLoop], "default")


MOVED = """
import torch

def read(model, helper, x, chunk):
    y = x.cpu()
    return {read}
"""


@pytest.mark.parametrize(
    "read",
    ["y.item()", "y[0].item()", "y.abs().max().item()", "model(chunk.cpu(), 3).item()", "model(chunk.cpu())[0].item()"],
)
def test_something_unknown_that_was_moved_to_the_cpu_is_there(read: str) -> None:
    """A model that the call gives a tensor on the CPU computes there."""
    assert not lint(MOVED.format(read=read), [ScalarReadInLoop], "audit")


@pytest.mark.parametrize(
    "read",
    ["x.item()", "model(y).sum().item()", "helper(x.cpu()).item()", "y.cuda().item()", "model(x, chunk.cpu()).item()"],
)
def test_unknown_code_may_move_it_back(read: str) -> None:
    assert len(lint(MOVED.format(read=read), [ScalarReadInLoop], "audit")) == 1
