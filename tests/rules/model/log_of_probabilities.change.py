"""Logarithms of probabilities, in two steps and in one."""

import torch
import torch.nn.functional as F


def losses(logits: torch.Tensor, y: torch.Tensor):
    return F.nll_loss(torch.log(F.softmax(logits, dim=1)), y), logits.softmax(-1).log()


def bits(logits: torch.Tensor, y: torch.Tensor):
    return F.binary_cross_entropy(torch.sigmoid(logits), y)


def case_values():
    logits = torch.randn(7, 33, device="cuda", requires_grad=True)
    loss, logs = losses(logits, torch.arange(7, device="cuda"))
    bit = bits(logits, torch.rand(7, 33, device="cuda"))
    (loss + bit).backward()
    return {"values": [loss.detach(), logs.detach(), bit.detach()], "gradient": logits.grad}


def change_values(values, gradient):
    """results differ by rounding"""
    for old, new in zip(*values):
        torch.testing.assert_close(old, new)
    torch.testing.assert_close(*gradient)


def case_far():
    logits = torch.tensor([[0.0, 200.0]], device="cuda")
    loss, _ = losses(logits, torch.tensor([0], device="cuda"))
    bit = bits(logits[0, 1], torch.zeros((), device="cuda"))
    return {"loss": loss.item(), "bit": bit.item()}


def change_far(loss, bit):
    """where the old form gave an infinity (or, in `binary_cross_entropy`, its limit of -100 for a logarithm) the new one gives the true number"""
    assert loss == (float("inf"), 200.0) and bit == (100.0, 200.0)
