import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader
from tqdm import tqdm


def train(model: nn.Module, dataset, optimizer):
    loader = DataLoader(dataset, batch_size=64, pin_memory=True)
    for images, targets in loader:
        images = images.to("cuda")  # error: TPF201
        targets = targets.cuda()  # error: TPF201
        loss = (model(images) - targets).mean()
        loss.backward()
        optimizer.step()


def train_with_a_bar(model: nn.Module, dataset, optimizer):
    loader = DataLoader(dataset, batch_size=64, pin_memory=True)
    for images, _ in tqdm(iter(loader)):
        model(images.to("cuda")).mean().backward()  # error: TPF201
    for _, (images, _) in enumerate(tqdm(loader, desc="epoch")):
        model(images.to("cuda")).mean().backward()  # error: TPF201
        optimizer.step()


def train_unpinned(model: nn.Module, dataset, optimizer, device: torch.device):
    for batch in DataLoader(dataset, batch_size=64):
        x = batch["x"].to(device)  # error: TPF201
        y = batch["y"].to(device, dtype=torch.long)  # error: TPF201
        loss = (model(x) - y).mean()
        loss.backward()
        optimizer.step()


def train_reusing(model: nn.Module, dataset, optimizer):
    for images in DataLoader(dataset, batch_size=64, pin_memory=True):
        on_device = images.to("cuda")  # error: TPF201
        images.add_(1)
        model(on_device).mean().backward()
        optimizer.step()


def train_detector(model: nn.Module, dataset, optimizer, pins: bool):
    for images, targets in DataLoader(dataset, batch_size=2, pin_memory=pins):
        images = [image.to("cuda") for image in images]  # error: TPF201
        targets = [{k: v.to("cuda") for k, v in t.items()} for t in targets]  # error: TPF201
        model(images, targets).backward()
        optimizer.step()


def epoch(model: nn.Module, loader, optimizer):
    for step, batch in enumerate(loader):
        batch = {name: value.to("cuda") for name, value in batch.items()}  # error: TPF201
        model(**batch).backward()
        optimizer.step()


def epochs(model: nn.Module, dataset, optimizer):
    loader = DataLoader(
        dataset,
        batch_size=64,
    )
    for _ in range(10):
        epoch(model, loader, optimizer)


def train_keeping(model: nn.Module, dataset, optimizer):
    kept = []
    for batch in DataLoader(dataset, batch_size=64):
        moved = {name: value.to("cuda") for name, value in batch.items()}  # error: TPF201
        kept.append(batch)
        model(**moved).backward()
        optimizer.step()
    return kept


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, values: np.ndarray):
        y = self.linear(x)
        loaded = torch.from_numpy(values).to(x.device)  # error: TPF201
        table = torch.rand(3, 3) * 2
        moved = table.to(y)  # error: TPF201
        y.copy_(table)  # error: TPF201
        y[:, 1:3] = table  # error: TPF201
        chosen = torch.where(y > 0, y, torch.tensor(0.0))  # error: TPF201
        return loaded, moved, y, chosen


class Embedded(nn.Module):
    def forward(self, steps: torch.Tensor, size: int, beams: int):
        half = size // 2
        table = torch.exp(torch.arange(half, dtype=torch.float32) * -0.1)
        table = table.to(steps.device)  # error: TPF201
        start = (torch.ones(beams) * 0.5).to(steps.device)  # error: TPF201
        offsets = (torch.arange(0, size) * beams).unsqueeze(1).type_as(steps)  # error: TPF201
        frequencies = torch.exp(  # error: TPF201
            -9.0 * torch.arange(start=0, end=half) / half,
        ).to(device=steps.device)
        chained = (
            (torch.arange(half) + 1)  # error: TPF201
            .to(steps.device)
            .unsqueeze(0)
        )
        print(chained)
        noise = (torch.rand(beams) * 2).to(steps.device)  # error: TPF201
        twice = torch.arange(half) * 2
        other = twice.sum().item() + twice.to(steps.device)  # error: TPF201
        place = steps.abs().device
        later = torch.arange(half) + 1
        later = later.to(place)  # error: TPF201
        wide = (torch.zeros(1, 3) + 1).expand(beams, -1).to(steps.device)  # error: TPF201
        return table[None] * steps[:, None], start, offsets, frequencies, noise, other, later, wide


class Sinusoids(nn.Module):
    def forward(self, steps: torch.Tensor, dim, top=10000, table=None):
        half = dim // 2
        scale = math.log(top) / (half - 1)
        waves = torch.exp(torch.arange(half, dtype=torch.float32) * -scale)
        waves = waves.to(device=steps.device)  # error: TPF201
        other = (torch.arange(half) * table).to(steps.device)  # error: TPF201
        return waves, other


class Acting(nn.Module):
    def forward(self, x: torch.Tensor, state: np.ndarray, values):
        one = torch.from_numpy(state).float().unsqueeze(0).to(x.device)  # error: TPF201
        two = torch.from_numpy(np.stack([state, state])).cuda()  # error: TPF201
        like = torch.from_numpy(state).to(x)  # error: TPF201
        print(like)
        cut = torch.from_numpy(state)[0].to(x.device)  # error: TPF201
        unknown = torch.from_numpy(values).to(x.device)  # error: TPF201
        summed = torch.from_numpy(state).sum(0).to(x.device)  # error: TPF201
        return one, two, cut, unknown, summed


def unknown_place(batches: list[torch.Tensor]):
    table = batches[0].numpy()
    return [torch.from_numpy(table).cuda() for _ in batches]  # error: TPF201


def prepared(inputs: dict[str, torch.Tensor], device: torch.device):
    for name, value in inputs.items():
        inputs[name] = value.to(device)  # error: TPF201
    return {name: value.to(device) for name, value in inputs.items()}  # error: TPF201


class Mask:
    """An object that `forward` makes, on the device that it passes."""

    def __init__(self, size, device="cpu"):
        self.mask = torch.ones(size, size).triu(1).to(device)  # error: TPF201


class Attention(nn.Module):
    def __init__(self, is_causal=True):
        super().__init__()
        self.is_causal = is_causal

    def forward(self, x: torch.Tensor):
        if self.is_causal:
            mask = Mask(x.shape[1], device=x.device)
            x = x.masked_fill(mask.mask, 0.0)
        return x


class Schedule:
    """A table that is computed with NumPy, on a device that callers may name."""

    def set_steps(self, count: int, device: str | torch.device | None = None):
        self.steps = torch.from_numpy(np.linspace(0, 999, count)).to(device)  # error: TPF201

    def set_more(self, count: int, device=None):
        table = torch.from_numpy(np.linspace(0, 999, count))
        self.more = table.to(device=device, dtype=torch.int64)  # error: TPF201


class OwnTable:
    """A table that the constructor leaves on the CPU is copied once."""

    def __init__(self):
        betas = torch.linspace(0, 1, 1000)
        self.alphas = torch.cumprod(1 - betas, dim=0)
        self.there = torch.zeros(3, device="cuda")
        self.given = None

    def add_noise(self, x: torch.Tensor):
        self.alphas = self.alphas.to(device=x.device)  # audit: TPF201
        self.there = self.there.to(device=x.device)
        self.given = self.given.to(device=x.device)
        return x * self.alphas.to(x.device)[0]

    def remove_noise(self, x: torch.Tensor):
        self.alphas = self.alphas.to(device=x.device)  # audit: TPF201
        return x / self.alphas[0]


# Look-alikes.


class BufferTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("alphas", torch.linspace(0, 1, 1000))

    def forward(self, x: torch.Tensor):
        self.alphas = self.alphas.to(x.device)
        return x * self.alphas


class Frequencies(nn.Module):
    """While a module is made, its tensors are on the CPU, and so is a device that is not named."""

    def __init__(self, config, device=None):
        super().__init__()
        compute = self.of_base
        self.register_buffer("inverse", compute(config, device))

    @staticmethod
    def of_base(config, device=None):
        inverse = 1.0 / torch.from_numpy(np.arange(0, config.size, 2))
        return inverse.to(device)


def named_or_not(x: torch.Tensor, y: torch.Tensor, device: torch.device | None = None):
    return x.to(device), (x + y).to(device), x.cpu().to(None)


def train_well(model: nn.Module, dataset, optimizer):
    for images, targets in DataLoader(dataset, batch_size=64, pin_memory=True):
        images = images.to("cuda", non_blocking=True)
        targets = targets.cuda(non_blocking=True)
        (model(images) - targets).mean().backward()
        optimizer.step()


class There(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4))

    def forward(self, x: torch.Tensor):
        y = self.weight * x
        return y.to(x.device), y.cuda(), x.to(self.weight.device), y.type_as(x), x.to(x.dtype)


class Stays(nn.Module):
    def forward(self, x: torch.Tensor):
        x[0] = x[1]
        x.copy_(x * 2)
        return torch.where(x > 0, x, 0.0), torch.where(x > 0, x, x.mean())


def on_host(values: np.ndarray):
    x = torch.from_numpy(values)
    x[0] = torch.zeros(3)
    return x.to("cpu"), x.to(torch.float16), x.to(torch.device("cpu"))


def modules(model: nn.Module, device: torch.device):
    return model.to(device).cuda()


def other_rules(x: torch.Tensor):
    return torch.zeros(3).to(x.device), torch.tensor(1.0).cuda(), torch.tensor([1.0]).to(x)


def given(inputs: list[torch.Tensor], weight: torch.Tensor, table: dict[str, torch.Tensor]):
    same = [value.to(weight.device) for value in inputs]
    table["a"] = table["a"].to(weight.device)
    return weight.to(inputs[0].device), same


def filled(x: torch.Tensor):
    y = x.cuda()
    y[1:3] = torch.tensor(0.0)
    y[:, 0] = torch.tensor(0.0)
    y[y > 0] = torch.tensor(0.0)
    return y


def callers(x: torch.Tensor, other: torch.Tensor):
    return x.to(other.device), x.to(other)


def as_types_of_tensors(dataset, cuda):
    kind = torch.cuda.FloatTensor if cuda else torch.FloatTensor
    named = "torch.cuda.LongTensor" if cuda else "torch.LongTensor"
    for images, labels in torch.utils.data.DataLoader(dataset, batch_size=8):
        moved = images.type(kind), labels.type(named)  # error: TPF201, TPF201
        cast = images.type(torch.float16), images.type(torch.FloatTensor), labels.type("torch.LongTensor")
        filled = kind(images.size(0), 1).fill_(1.0)
        print(moved, cast, filled)


class Table:
    """Made once and kept, on the device of the first input."""

    def __init__(self, size, device="cpu"):
        self.values = torch.ones(size, size).triu(1).to(device)  # audit: TPF201


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x: torch.Tensor):
        if self.table is None:
            self.table = Table(x.shape[1], device=x.device)
        return x + self.table.values


class Shape:
    """Made in each step, on the CPU."""

    def __init__(self, size, device="cpu"):
        self.mask = torch.ones(size, size).triu(1).to(device)  # audit: TPF201


class Sizes(nn.Module):
    def forward(self, x: torch.Tensor):
        return x * Shape(x.shape[1]).mask.shape[0]


def of_arrays(arrays, model: nn.Module):
    model.cuda()
    for array in arrays:
        x = torch.FloatTensor(np.asarray(array))
        model(x.cuda()).sum().backward()  # error: TPF201
        assert len(x)


def of_batches_and_tuples(model: nn.Module, loader: DataLoader, device: torch.device):
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch.to(device)).sum().backward()  # error: TPF201


def of_batches_that_may_be_there(model: nn.Module, loader: DataLoader, device: torch.device):
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = model(batch)
        model(batch.to(device)).sum().backward()  # audit: TPF201


def of_batches_that_are_there(model: nn.Module, loader: DataLoader):
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        batch = batch.to("cuda")  # error: TPF201
        model(batch.to("cuda")).sum().backward()


class WeightedLoss(nn.Module):
    """A loss keeps its weights as buffers, which move with it; a tensor that the object keeps does not."""

    def __init__(self, positive: float):
        super().__init__()
        self.loss = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(positive))
        self.plain = nn.BCEWithLogitsLoss()
        self.factor = torch.tensor(positive)

    def forward(self, logits: torch.Tensor):
        weight = self.loss.pos_weight
        if weight is not None:
            weight = weight.to(logits.device)
        if self.plain.pos_weight is not None:
            weight = self.plain.pos_weight.to(logits.device)
        return logits * weight * self.factor.to(logits.device)  # error: TPF201


def similarity(image: np.ndarray, other: torch.Tensor):
    """`torch.Tensor(…)` is on the CPU."""
    image = torch.Tensor(image).unsqueeze(0)
    window = torch.ones(11, 11)
    if image.is_cuda:
        window = window.cuda(image.get_device())  # audit: TPF201
    kernel = torch.ones(11, 11)
    if other.is_cuda:
        kernel = kernel.cuda()  # error: TPF201
    return image, window, kernel


def of_similarities(model: nn.Module, loader: DataLoader):
    for x, images in loader:
        model(x.cuda()).sum().backward()  # error: TPF201
        similarity(images.numpy(), model(x))
