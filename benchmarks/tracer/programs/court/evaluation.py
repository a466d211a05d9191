"""Makes each fact about evaluation and autograd graphs happen, on a GPU or a simulated one.

`perflint trace --warmup 0 --steps 0 evaluation.py` records them.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """Some layers with modes."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The scores of images."""
        scores: torch.Tensor = self.head(self.body(x).mean((2, 3)))
        return scores


def main() -> None:
    model, other = Block().cuda(), Block().cuda()
    plain, frozen = nn.Linear(8, 8).cuda(), nn.Linear(8, 8).cuda().requires_grad_(False)
    frozen.weight.requires_grads = False  # type: ignore[attr-defined]  # fact: gradient.misspelt-frozen
    model.head.bias.require_grad = False  # type: ignore[attr-defined]  # fact: gradient.misspelt
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    few = torch.randn(2, 3, 32, 32, device="cuda")
    torch.save(model.state_dict(), "weights.pt")
    kept = []
    for step in range(8):
        loss = model(few).mean()  # fact: forward.graph-reached forward.training-used
        target = other(few)  # fact: forward.graph-unread
        loss = loss + (target - plain(target)).mean() + frozen(target).mean()  # fact: forward.modeless
        loss.backward()  # fact: backward.graph-kept gradient.unused
        kept.append(loss)
        loss = model(few).sum()
        loss.backward(retain_graph=True)  # fact: backward.graph-used-again backward.graph-freed
        loss.backward()
        loss = model(few).sum()
        loss.backward(retain_graph=True)  # fact: backward.graph-not-used-again
        given = few.clone().requires_grad_()
        checkpoint(model, given)  # fact: checkpoint.reentrant
        checkpoint(model, few)  # fact: checkpoint.without-gradient
        checkpoint(frozen, target.detach())  # fact: checkpoint.nothing
        checkpoint(model, given, use_reentrant=False)  # fact: checkpoint.other-form
        with torch.autocast("cuda", torch.bfloat16):
            checkpoint(model, given)  # fact: checkpoint.reentrant-autocast
        model.to("cuda")  # fact: module.in-place
        plain.to(torch.float64 if step % 2 else torch.float32)  # fact: module.moved
        plain.float()
        torch.load("weights.pt")  # fact: load.first load.again
        optimizer.step()
    model(few)  # fact: forward.graph-dropped forward.training-unused
    model.eval()
    model(few)  # fact: forward.eval
    frozen(few[0, 0, :8, :8])  # fact: forward.no-graph
    torch.cuda.synchronize()
    with torch.no_grad():
        torch.cuda.synchronize()
        small = model(few)  # fact: forward.no-grad forward.result-recorded
        torch.cuda._sleep(100_000_000)
        model(few)  # fact: forward.gpu-busy
        torch.cuda.synchronize()
        frozen(few[0, 0, :8, :8]).sum().item()  # fact: forward.gpu-done
    with torch.inference_mode():
        model(few)  # fact: forward.inference
    plain(small)
    held = model(few)  # fact: forward.graph-held
    globals()["held"] = held


main()
