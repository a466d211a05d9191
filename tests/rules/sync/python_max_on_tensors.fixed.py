import torch
from torch import nn


class Mean(nn.Module):
    def forward(self, losses: torch.Tensor, mask: torch.Tensor):
        total = mask.sum()
        mean = losses.sum() / torch.clamp(total, min=1)
        other = losses.sum() / torch.clamp(mask.sum(), min=1.0)
        low = torch.minimum(losses.min(), total)
        high = max(losses.sum(), losses.mean(), total)
        best = max([losses.sum(), losses.mean()])
        most = max(losses)
        order = sorted([losses.sum(), losses.mean()])
        return mean, other, low, high, best, most, order


# Look-alikes.


class OnDevice(nn.Module):
    def forward(self, losses: torch.Tensor, mask: torch.Tensor):
        return losses.max(), torch.maximum(losses, mask), losses.clamp(min=1), sum([losses.sum(), losses.mean()])


class Shapes(nn.Module):
    def forward(self, x: torch.Tensor):
        return max(x.shape), min(x.size(0), 4), sorted(x.shape), max(1, len(x)), max(x.ndim, 2)


def on_host():
    lengths = torch.tensor([1, 2, 3])
    return max(lengths), min(lengths[0], lengths[1])


def numbers(values: list[float], limit: int):
    return max(values), min(limit, 3), sorted(values)


def read_before(x: torch.Tensor):
    return max(x.sum().item(), 1.0), min(float(x.mean()), 0.0)


def by_key(tensors: list[torch.Tensor]):
    return max(tensors, key=len), sorted(tensors, key=lambda t: t.shape[0])


def single(x: torch.Tensor):
    return max([x.sum()])


def padded(splits) -> torch.Tensor:
    longest = max(splits)
    return splits.unsqueeze(-1) < longest


def of_either_kind(x: torch.Tensor, margin: int, is_array: bool):
    low = x.cuda()[0] - margin
    low = max(low, 0)
    return low.item() if isinstance(low, torch.Tensor) else low


class Running(nn.Module):
    def __init__(self, most: float):
        super().__init__()
        self.most, self.scale = most, 1.0
        self.register_buffer("decay", torch.tensor(0.9))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x: torch.Tensor):
        self.scale = x.abs().mean()
        self.scale = torch.clamp(self.scale, max=self.most)
        decay = torch.minimum(self.decay, (1 + self.steps) / (10 + self.steps))
        count = torch.minimum((x > 0).sum(), (x < 0).sum())
        return x * self.scale * decay, x.flatten().topk(int(count))


def total_norm(parameters: list[nn.Parameter], order: float = 2.0):
    if order == float("inf"):
        return max(p.grad.abs().max() for p in parameters)
    return torch.stack([p.grad.norm(order) for p in parameters]).norm(order)


class Detector(nn.Module):
    def forward(self, x: torch.Tensor, names: list[str]):
        scores, labels = torch.max(x.softmax(dim=1), dim=1)
        best = sorted(zip(scores, labels), key=lambda pair: pair[0], reverse=True)
        first = max(zip(scores, names), key=lambda pair: pair[0])
        pairs = sorted(zip(scores, labels))
        return best, first, pairs


class Named(nn.Module):
    def forward(self, x: torch.Tensor, names: list[str]):
        scores = x.softmax(dim=1)
        by_name = sorted(zip(scores, names), key=lambda pair: pair[1])
        by_number = sorted(enumerate(scores), key=lambda pair: pair[0])
        by_length = sorted(zip(scores, names), key=lambda pair: len(pair[1]))
        one = max([(scores.sum(), names)], key=lambda pair: pair[0])
        in_order = sorted(enumerate(scores))
        on_cpu = sorted(zip(scores.cpu(), names), key=lambda pair: pair[0])
        return by_name, by_number, by_length, one, in_order, on_cpu


def clipped_loss(loss, grads, limit: int):
    flat = torch.cat(grads)
    scale = torch.clamp(limit / flat.abs().sum(), max=1.0)
    return loss * scale * max(limit, loss.weight)


def clipped(grads, limit: int):
    flat = torch.cat(grads)
    return min(1.0, limit / flat.abs().sum())


class Sizes(nn.Module):
    def forward(self, index: torch.Tensor, count: int, names: dict):
        hot = nn.functional.one_hot(index, max(index.max() + 1, count))
        table = torch.zeros(max(index.max(), 4), device=index.device)
        bound = torch.clamp(index.max(), min=4)
        return hot, table, names[max(index.min(), 0)], index / bound
