"""Unsafe fixes of what a step reads on the host: what they keep, and what they change as their pages say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from perflint.findings import WRITABLE, Finding
from perflint.fixes.apply import apply_fixes
from perflint.rules.base import Rule
from perflint.rules.sync.mask_before_loss import MaskBeforeLoss
from perflint.rules.sync.multinomial_on_cpu import MultinomialOnCpu
from perflint.rules.sync.transformer_causal_detect import TransformerCausalDetect
from tests.rules.harness import lint

torch = pytest.importorskip("torch")


def both(rule: type[Rule], text: str, *given: object) -> tuple[Any, Any]:
    """What `run` of a text gives before and after the fixes of a rule."""

    def relint(now: str) -> list[Finding]:
        return lint(now, [rule], "audit")

    after = apply_fixes(text, relint(text), relint, WRITABLE).text
    assert after != text, "nothing was fixed"
    return run(text, *given), run(after, *given)


def run(text: str, *given: object) -> Any:
    namespace: dict[str, Callable[..., Any]] = {}
    exec(compile(text, "example.py", "exec"), namespace)
    torch.manual_seed(0)
    return namespace["run"](*given)


LOSS = """
import torch
import torch.nn.functional as F

def run(logits: torch.Tensor, labels: torch.Tensor):
    kept = labels != {left_out}
    loss = F.cross_entropy(logits[kept], labels[kept], {settings})
    return loss
"""


@pytest.mark.parametrize(
    "settings", ["", "reduction='sum'", "label_smoothing=0.1", "weight=torch.arange(1.0, 8.0).double()"]
)
@pytest.mark.parametrize("shape", [(6,), (2, 3), (2, 2, 3)])
def test_ignored_rows_leave_loss_and_gradients_as_they_were(settings: str, shape: tuple[int, ...]) -> None:
    logits = torch.randn(*shape, 7, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, 7, shape)
    labels.view(-1)[1] = 3
    before, after = both(MaskBeforeLoss, LOSS.format(left_out=3, settings=settings), logits, labels)
    assert after.item() == pytest.approx(before.item(), rel=1e-12)
    (old,), (new,) = torch.autograd.grad(before, logits), torch.autograd.grad(after, logits)
    torch.testing.assert_close(new, old, rtol=1e-12, atol=1e-12)


def test_the_loss_of_no_rows_stays_not_a_number() -> None:
    logits, labels = torch.randn(4, 7), torch.full((4,), 3)
    before, after = both(MaskBeforeLoss, LOSS.format(left_out=3, settings=""), logits, labels)
    assert before.isnan() and after.isnan()


def test_ignored_rows_that_are_not_finite_now_have_gradients_that_are_not() -> None:
    logits = torch.randn(4, 7)
    logits[1] = torch.inf
    logits.requires_grad_()
    labels = torch.tensor([0, 3, 1, 2])
    before, after = both(MaskBeforeLoss, LOSS.format(left_out=3, settings=""), logits, labels)
    assert before.item() == pytest.approx(after.item())
    (old,), (new,) = torch.autograd.grad(before, logits), torch.autograd.grad(after, logits)
    assert old.isfinite().all() and new[1].isnan().all() and new[[0, 2, 3]].isfinite().all()


def test_told_that_its_mask_is_causal_an_encoder_gives_the_same() -> None:
    text = """
import torch
from torch import nn

def run():
    layer = nn.TransformerEncoderLayer(16, 2, batch_first=True, dropout=0.0)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x = torch.randn(2, 5, 16).to("cuda" if torch.cuda.is_available() else "cpu")
    encoder.to(x.device)
    mask = nn.Transformer.generate_square_subsequent_mask(5, device=x.device)
    return encoder(x, mask=mask)
"""
    before, after = both(TransformerCausalDetect, text)
    assert torch.equal(before, after)


def test_an_encoder_without_the_hint_reads_its_mask() -> None:
    """What the rule is about, as torch does it: a truth of a tensor in each forward pass."""
    read = []

    class Counting(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            read.extend([func] if "_local_scalar_dense" in str(func) else [])
            return func(*args, **(kwargs or {}))

    layer = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    encoder, x = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.randn(2, 5, 16)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    for told, masks, expected in ((None, mask, 1), (True, mask, 0), (None, mask.expand(4, 5, 5), 0)):
        read.clear()
        with Counting():
            encoder(x, mask=masks, is_causal=told)
        assert len(read) == expected, (told, masks.shape)


def test_the_device_draws_from_the_same_probabilities() -> None:
    text = """
import torch

def run():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    p = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).to(device)
    return torch.multinomial(p.cpu(), 1).to(device)
"""
    before, after = both(MultinomialOnCpu, text)
    assert torch.equal(before, after) and before.device == after.device
