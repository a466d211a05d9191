"""Sorts of which few are kept, and sorts that are used."""

import numpy as np
import torch
from torch import nn


class Best(nn.Module):
    def forward(self, queries: torch.Tensor, corpus: torch.Tensor, k: int):
        scores = queries @ corpus.T
        return scores.argsort(dim=-1, descending=True)[:, :k]  # error: TPF309


def precision(preds: torch.Tensor, target: torch.Tensor, k: int) -> torch.Tensor:
    return target[torch.argsort(preds, dim=-1, descending=True)][:k].sum() / k  # audit: TPF309


def filtered(logits: torch.Tensor, k: int) -> torch.Tensor:
    ordered, _ = torch.sort(logits, dim=-1, descending=True)  # audit: TPF309
    return logits.masked_fill(logits < ordered[..., :k].amin(-1, keepdim=True), -torch.inf)


def hardest(losses: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    order = losses.argsort()  # audit: TPF309
    return losses[order[-count:]], order[:10]


def greatest(scores: torch.Tensor) -> torch.Tensor:
    return scores.sort(descending=True).values[:100]  # audit: TPF309


def first(scores: torch.Tensor, k: int) -> torch.Tensor:
    return torch.sort(scores, 1)[0][:, : min(k, 5)]  # audit: TPF309


def under_the_same_names(logits: torch.Tensor, k: int) -> torch.Tensor:
    values, indices = torch.sort(logits, descending=True)  # audit: TPF309
    values, indices = values[:, :k], indices[:, :k]
    return indices.gather(1, torch.multinomial(values.softmax(-1), 1))


def by_topk(scores: torch.Tensor, k: int) -> torch.Tensor:
    return scores.topk(k, dim=-1).indices


def whole_order(scores: torch.Tensor) -> torch.Tensor:
    return scores.argsort(dim=-1, descending=True)


def both(scores: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    order = scores.argsort()
    return order[:k], order.argsort()


def a_quarter(x: torch.Tensor) -> torch.Tensor:
    kept = x.shape[1] // 4
    return torch.rand(x.shape[:2], device=x.device).argsort(dim=1)[:, :kept]


def all_but_one(x: torch.Tensor) -> torch.Tensor:
    return x.sort().values[:-1]


def stable(x: torch.Tensor, k: int) -> torch.Tensor:
    return torch.argsort(x, stable=True)[:k]


def on_another_dimension(x: torch.Tensor, k: int) -> torch.Tensor:
    return x.view(8, 16).sort(dim=0).values[:, :k]


def of_numpy(x: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(x)[:k]


def median(x: torch.Tensor) -> torch.Tensor:
    values, indices = x.sort()
    return values[len(values) // 2]


def used_before_the_cut(logits: torch.Tensor, k: int) -> torch.Tensor:
    values, indices = torch.sort(logits, descending=True)
    spread = values.std()
    values, indices = values[:, :k], indices[:, :k]
    return spread * values.sum() + indices.sum()


def filtered(logits: torch.Tensor, k: int) -> torch.Tensor:
    ranked = logits.cuda().sort(dim=-1, descending=True)  # audit: TPF309
    return logits.masked_fill(logits < ranked.values[..., k - 1].unsqueeze(-1), float("-inf"))


def quantile(logits: torch.Tensor) -> torch.Tensor:
    k = int(0.9 * logits.shape[-1])
    ranked = logits.cuda().sort(dim=-1)
    return ranked.values[..., k - 1]


def positions(logits: torch.Tensor, at: int) -> torch.Tensor:
    ranked = logits.cuda().sort(dim=-1)
    return ranked.values[..., at]
