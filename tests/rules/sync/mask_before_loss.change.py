"""Losses of the rows that a mask selects, and losses that ignore the others."""

import torch
import torch.nn.functional as F


def score(logits: torch.Tensor, labels: torch.Tensor):
    kept = labels != -100
    return F.cross_entropy(logits[kept], labels[kept])


def scored(logits, labels):
    logits = logits.cuda().requires_grad_()
    loss = score(logits, labels.cuda())
    loss.backward()
    return loss.detach(), logits.grad


def labels(rows):
    made = torch.randint(0, 33, (rows, 50))
    made[:, ::3] = -100
    return made


def case_sums():
    # One sum may round to the same number by chance: which one depends on the processor.
    losses, gradients = zip(*(scored(torch.randn(40, 50, 33), labels(40)) for _ in range(12)))
    return {
        "loss": torch.stack(losses),
        "gradient": torch.stack(gradients),
        "ignored": sum(gradient[:, ::3].count_nonzero().item() for gradient in gradients),
    }


def change_sums(loss, waits):
    """sums may round in another order"""
    torch.testing.assert_close(*loss)


def case_not_finite():
    logits = torch.zeros(1, 4, 3)
    logits[0, 0] = torch.inf
    _, gradient = scored(logits, torch.tensor([[-100, 0, 1, 2]]))
    return {"ignored": gradient[0, 0].tolist().__repr__(), "others": gradient[0, 1:].tolist()}


def change_not_finite(ignored, waits):
    """Ignored rows get gradients of zero as before, but of NaN if their logits are not finite."""
    assert ignored == ("[0.0, 0.0, 0.0]", "[nan, nan, nan]")


def case_none():
    loss, gradient = scored(torch.zeros(1, 2, 3), torch.full((1, 2), -100))
    return {"nan": loss.isnan().item()}
