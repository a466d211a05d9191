import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Trim(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        longest = lengths.max()
        trimmed = x[:, :longest]  # error: TPF119
        middle = x[lengths[0] : lengths[1]]  # error: TPF119
        for _ in range(longest):  # error: TPF119
            x = x + 1
        steps = torch.arange(longest, device=x.device)  # error: TPF119
        zeros = torch.zeros(longest, 4, device=x.device)  # error: TPF119
        shaped = x.view(longest, -1)  # error: TPF119
        parts = x.split(longest)  # error: TPF119
        best = x.topk(longest)  # error: TPF119
        root = math.sqrt(x.sum())  # error: TPF119
        total = x.sum() if root > 1 else 0.0
        bad = math.isfinite(total)  # error: TPF119
        padded = F.pad(x, (0, longest))  # error: TPF119
        return trimmed, middle, steps, zeros, shaped, parts, best, root, padded


class Schedule(nn.Module):
    def __init__(self):
        super().__init__()
        self.names = ["a", "b", "c"]
        self.alphas = [0.1, 0.2, 0.3]

    def forward(self, x: torch.Tensor):
        step = x.argmax()
        table = torch.linspace(0, 1, 100)
        return x[step], self.alphas[step], table[step]  # error: TPF119, TPF119, TPF119


class Times:
    def __init__(self, count: int, device: torch.device):
        self.table = torch.linspace(0, 1, count, device=device)
        times = np.linspace(0, count - 1, 20).round()[::-1].copy().astype(np.int64)
        self.times = torch.from_numpy(times).to(device)

    def step(self, out: torch.Tensor, t, x: torch.Tensor):
        before = t - 10
        return x + self.table[t] * out - self.table[before]  # error: TPF119, TPF119


def sample(model: nn.Module, times: Times, x: torch.Tensor):
    for t in times.times:
        x = times.step(model(x, t), t, x)
    return x


class Annotated(nn.Module):
    def __init__(self, steps: int):
        super().__init__()
        self.register_buffer("table", torch.linspace(0, 1, steps))

    def shift(self, x: torch.Tensor, t: torch.Tensor):
        return x * self.table[t]  # error: TPF119

    def weigh(self, x: torch.Tensor, t: torch.Tensor):
        return x * self.table[t]

    @torch.no_grad()
    def sample(self, x: torch.Tensor):
        for t in torch.arange(10, device=x.device).flip(0):
            x = self.weigh(self.shift(x, t), t)
        return x

    def forward(self, x: torch.Tensor):
        return self.weigh(x, torch.randint(0, 10, (x.shape[0],), device=x.device))


class Suppression(nn.Module):
    """An element that is also read by `.item()` has no dimensions."""

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor):
        order = scores.argsort(descending=True)
        keep = []
        while order.numel() > 0:
            i = order[0]
            keep.append(i.item())
            overlap = (boxes[i] - boxes[order[1:]]).sum(-1)  # error: TPF119
            order = order[1:][overlap <= 0.5]
        last = order[-1]
        return boxes[last], last.item(), keep  # error: TPF119


# Look-alikes.


class Shapes(nn.Module):
    def forward(self, x: torch.Tensor):
        n = x.shape[0]
        return x[:n], torch.arange(n), x.view(n, -1), torch.zeros(x.size(1)), x.split(len(x)), range(x.numel())


class Positions(nn.Module):
    def forward(self, x: torch.Tensor):
        order = x.argsort(dim=0)
        return x[order], x[order[:, 0]], x.index_select(0, order[:, 0])


def on_host():
    lengths = torch.tensor([3, 4, 5])
    longest = lengths.max()
    table = torch.zeros(10, 10)
    return table[:longest], torch.zeros(longest), range(longest)


def numbers(x: torch.Tensor, k: int, size: tuple[int, int]):
    return x.topk(k), x[:k], torch.zeros(size, device=x.device), F.pad(x, (0, k)), math.sqrt(k)


def read_before(x: torch.Tensor):
    longest = int(x.max())
    return x[:longest], torch.arange(longest)


def tensors_of_several_dimensions(x: torch.Tensor):
    parts = x.split([1, 2])
    return torch.full((3,), 1.0, device=x.device), parts, torch.linspace(0, 1, 5, device=x.device)


def maybe(x, n=None):
    n = x.shape[0] if n is None else n
    return torch.randint(0, n, (3,))


class HostTimes:
    def __init__(self, count: int, device: torch.device):
        self.table = torch.linspace(0, 1, count, device=device)
        self.times = torch.from_numpy(np.arange(0, count)[::-1].copy())
        self.chosen = torch.from_numpy(np.arange(0, count).reshape(-1, 2)).to(device)

    def sample(self, model: nn.Module, x: torch.Tensor):
        for t in self.times:
            x = x - self.table[t] * model(x, t)
        for t in np.arange(10):
            x = x - self.table[t] * model(x, t)
        for pair in self.chosen:
            x = x - self.table[pair].sum() * model(x, pair)
        return x


def tables_of_the_host(edges: torch.LongTensor, count: int, weights):
    connected = torch.eye(count)
    for graph in range(3):
        pairs = edges[graph]
        connected[pairs[:, 0], pairs[:, 1]] = 1
    moments = torch.zeros(3, device="cpu")
    moments[weights.grad.coalesce().indices()] = 1
    return connected, moments


class Rows(nn.Module):
    """An element that is not read may be a row, and so may the elements of a loop."""

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor):
        order = scores.argsort(dim=0)
        row, part = order[0], order[:1]
        for rank in order[0]:
            boxes = boxes + boxes[rank]
        for level in range(3):
            chosen = order[level]
            boxes = boxes + boxes[chosen]
        return boxes[row], boxes[part], part.item()


class TimeTable:
    """Its callers iterate over `timesteps`, whatever the annotations say."""

    def __init__(self):
        self.alphas = torch.linspace(0, 1, 1000)
        self.timesteps = torch.arange(1000)

    def set_timesteps(self, count: int, device=None):
        self.timesteps = torch.linspace(0, 999, count, dtype=torch.int64).to(device)

    def step(self, noise: torch.Tensor, timestep: int, sample: torch.Tensor):
        alpha = self.alphas[timestep]  # error: TPF119
        previous = timestep - 20
        before = self.alphas[previous]  # error: TPF119
        return sample - alpha * noise - before

    def at(self, step: int):
        return self.alphas[step]

    def weighted(self, timestep: str):
        return self.alphas[timestep == "last"]


class TimeTableOnCpu:
    def __init__(self):
        self.alphas = torch.linspace(0, 1, 1000)
        self.timesteps = torch.arange(1000)

    def step(self, noise: torch.Tensor, timestep: int, sample: torch.Tensor):
        return sample - self.alphas[timestep] * noise


class Steps:
    """Its time steps are a number."""

    def __init__(self):
        self.alphas = torch.linspace(0, 1, 1000)
        self.timesteps = 1000

    def step(self, noise: torch.Tensor, timestep: int, sample: torch.Tensor):
        return sample - self.alphas[timestep] * noise


class Diffusion(torch.nn.Module):
    """Its `forward` gets one time step for each sample."""

    def __init__(self):
        super().__init__()
        self.register_buffer("timesteps", torch.arange(1000))
        self.register_buffer("alphas", torch.linspace(0, 1, 1000))

    def forward(self, x: torch.Tensor, t):
        return x * self.alphas[t]


def split(model: nn.Module, batch: dict):
    output = model(batch)
    rows = [output["logits"][i] for i in range(output["batch_size"])]
    rows += [output["logits"][i] for i in range(output.count)]
    return rows


class Entries(nn.Module):
    def forward(self, batch: dict[str, torch.Tensor]):
        return torch.arange(batch["longest"])  # error: TPF119


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])
        self.chain = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(4)])
        self.by_name = nn.ModuleDict({"first": nn.Linear(3, 3)})

    def forward(self, x: torch.Tensor, name: str, place: int):
        best = x.argmax()
        y = self.experts[best](x)  # error: TPF119
        y = self.chain[best](y)  # error: TPF119
        y = y * self.scales[best]  # error: TPF119
        for each in x.argmax(1):
            y = y + self.experts[each](x)  # error: TPF119
        for i, expert in enumerate(self.experts):
            y = y + expert(x) * self.scales[i]
        first = torch.zeros((), dtype=torch.long)
        return y, self.experts[place], self.experts[-1], self.experts[:2], self.by_name[name], self.experts[first]


class Factors(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, weights: torch.Tensor):
        t = weights.mean()
        k = weights.argmax()
        x = x.add(y, alpha=t)  # error: TPF119
        x.addcmul_(y, y, value=-t)  # error: TPF119
        x = F.leaky_relu(F.dropout(x, p=t), t)  # error: TPF119, TPF119
        x = torch.nan_to_num(x, nan=t).renorm(2, 0, t)  # error: TPF119, TPF119
        noise = torch.empty_like(x).uniform_(-1, t)  # error: TPF119
        upper = torch.triu(x, k) + x.diagonal(offset=k)  # error: TPF119, TPF119
        hot = F.one_hot(y.argmax(-1), k)  # error: TPF119
        drawn = torch.multinomial(y.softmax(-1), num_samples=k)  # error: TPF119
        loss = F.smooth_l1_loss(x, y, beta=t)  # error: TPF119
        placed = x.scatter(0, k[None, None], value=t)  # error: TPF119
        torch._foreach_add_([x, y], [y, x], alpha=t)  # error: TPF119
        row = x.narrow(0, k, 1)  # error: TPF119
        nn.utils.clip_grad_norm_(self.parameters(), t)  # error: TPF119
        x = x.clamp(0, t)  # error: TPF119
        x = torch.clamp(x, min=t, max=1.0).clip_(-1, weights.shape[0])  # error: TPF119
        return row, noise, upper, hot, drawn, loss, placed

    def operands(self, x: torch.Tensor, y: torch.Tensor, weights: torch.Tensor):
        t = weights.mean()
        x = x.add(t).lerp(y, t).clamp(max=t).pow(t).clamp(t - 1, t)
        x = torch.where(x > t, t, x.mul(t))
        x = x.scatter(0, y.argmax(0, keepdim=True), y).fill_(t).narrow(0, 0, 2)
        nn.utils.clip_grad_norm_(self.parameters(), 1.0)
        return torch.normal(x, 0.5), F.gumbel_softmax(x, tau=t), x.quantile(t)


def joined_positions(model: nn.Module, parts: list[torch.Tensor], names: list[str]):
    table = torch.zeros(100, 3)
    chosen = [model(part.cuda()).argmax() for part in parts]
    at = torch.cat([part.cuda().long() for part in parts])
    if model.training:
        at = torch.cat([at, at])
    first = torch.stack(chosen)
    last = chosen[-1]
    return table[at], table[torch.cat(parts)], table[first], table[last]  # error: TPF119
