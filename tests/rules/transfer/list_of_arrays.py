"""Lists of arrays, and lists of numbers."""

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset


def noise(count: int) -> torch.Tensor:
    found = [np.random.rand(512) for _ in range(count)]
    return torch.tensor(found)  # audit: TPF214


def states(env, count: int) -> torch.Tensor:
    seen = []
    for _ in range(count):
        seen.append(np.zeros(8, dtype=np.float32))
    return torch.as_tensor(seen, dtype=torch.float32, device="cuda")  # audit: TPF214


class Windows(Dataset):
    def __getitem__(self, index: int) -> torch.Tensor:
        left, right = np.ones(4), np.zeros(4)
        return torch.FloatTensor([left, right])  # error: TPF214


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        rows = [np.random.rand(512) for _ in range(256)]
        loss = model(torch.tensor(rows, dtype=torch.float32)).mean()  # error: TPF214
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def nested(rows: int) -> torch.Tensor:
    return torch.tensor([[np.arange(3), np.arange(3)] for _ in range(rows)])  # audit: TPF214


def images(paths: list[str]) -> torch.Tensor:
    rows = [np.asarray(Image.open(path).convert("RGB").resize((8, 8))) for path in paths]
    return torch.tensor(rows)  # audit: TPF214


def joined(paths: list[str]) -> torch.Tensor:
    found = [np.load(path) for path in paths]
    return torch.from_numpy(np.stack(found)), torch.tensor(np.array(found))


def numbers(x: np.ndarray, count: int) -> torch.Tensor:
    means = [np.ones(4).mean() for _ in range(count)]
    return torch.tensor(means), torch.tensor([1.0, 2.0]), torch.tensor([x.shape[0], len(x)]), torch.tensor(x)


def lists(rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor(rows), torch.tensor([np.ones(3).tolist(), np.zeros(3).tolist()])


def sizes(width: int) -> torch.Tensor:
    return torch.FloatTensor(width, 4)


def unknown(batch, examples) -> torch.Tensor:
    return torch.tensor([example.label for example in examples]), torch.tensor(batch)


def loaded(paths: list[str], scale) -> torch.Tensor:
    sizes = [scale * (np.arange(3) // 2).prod() for _ in paths]
    return torch.tensor([np.load(path) for path in paths]), torch.tensor(sizes)


def empty() -> torch.Tensor:
    return torch.tensor([])


def brightness(paths: list[str]) -> torch.Tensor:
    return torch.tensor([np.asarray(Image.open(path)).mean() for path in paths])
