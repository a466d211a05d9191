import numpy as np
import torch
from torch import nn


class Normalize(nn.Module):
    def __init__(self, mean: list[float]):
        super().__init__()
        self.mean = mean
        self.register_buffer("std", torch.tensor([0.5, 0.5]))

    def forward(self, x: torch.Tensor, sizes: list[int]):
        mean = torch.tensor([0.485, 0.456, 0.406], device="cpu", pin_memory=x.is_cuda).to(
            x.device, non_blocking=x.is_cuda
        )
        kept = torch.tensor(self.mean, dtype=x.dtype, device=x.device)
        pairs = torch.tensor([[1, 2], [3, 4]], device="cpu", pin_memory=True).to("cuda", non_blocking=True)
        size = torch.tensor(x.shape, device="cpu", pin_memory=x.is_cuda).to(x.device, non_blocking=x.is_cuda)
        made = torch.tensor([float(s) for s in sizes], device="cpu", pin_memory=x.is_cuda).to(
            x.device, non_blocking=x.is_cuda
        )
        new = torch.tensor([1.0, 2.0], dtype=x.dtype, device="cpu", pin_memory=x.is_cuda).to(
            x.device, non_blocking=x.is_cuda
        )
        legacy = torch.tensor([1.0, 2.0], dtype=torch.float32, device="cpu", pin_memory=True).to(
            "cuda", non_blocking=True
        )
        moved = torch.tensor(sizes).to(x.device)
        old = torch.tensor([1, 2], dtype=torch.int64, device="cpu", pin_memory=True).cuda(non_blocking=True)
        shaped = torch.tensor([1.0, 2.0]).view(1, 2).to(x)
        return mean, kept, pairs, size, made, new, legacy, moved, old, shaped


def arrays(x: torch.Tensor, values: np.ndarray):
    first = torch.as_tensor(values, device=x.device)
    return first, torch.tensor(values, device=x.device)


def library(values, device: torch.device):
    return torch.tensor(values, device=device)


def perhaps_a_tensor(values, device: torch.device):
    return torch.as_tensor(values, device=device)


class Repeated(nn.Module):
    def __init__(self, sizes: list[int]):
        super().__init__()
        self.sizes = sizes

    def forward(self, x: torch.Tensor, step: int, noise):
        one = torch.full((1,), 0.5, device=x.device)
        pair = torch.full((1, 2), 0, dtype=torch.long, device=x.device)
        same = torch.full((4,), 1, device=x.device)
        rows = torch.tensor([step] * x.shape[0], device="cpu", pin_memory=x.is_cuda).to(
            x.device, non_blocking=x.is_cuda
        )
        ids = torch.full((x.shape[0],), 7, dtype=torch.long, device=x.device)
        new = x.new_full((1,), 0.0)
        moved = torch.full((1,), 2.0, device=x.device)
        mixed = torch.tensor([0, 0.0], device="cpu", pin_memory=x.is_cuda).to(x.device, non_blocking=x.is_cuda)
        unknown = torch.tensor([noise] * 2, device="cpu", pin_memory=x.is_cuda).to(x.device, non_blocking=x.is_cuda)
        laid_out = torch.tensor(
            [0, 1, step],
            dtype=torch.long,
            device="cpu",
            pin_memory=x.is_cuda,
        ).to(x.device, non_blocking=x.is_cuda)
        classes = torch.full((1,), 1, dtype=torch.float32, device="cuda"), torch.full(
            (1,), 2.5, dtype=torch.int64, device="cuda"
        )
        default = torch.tensor([1], dtype=torch.float32, device="cpu", pin_memory=x.is_cuda).to(
            x.device, non_blocking=x.is_cuda
        ), torch.full((1,), 3, device=x.device, dtype=x.dtype)
        of_floats = torch.full((1,), 0.0, device=x.device), torch.full((3,), 0.5, device="cuda")
        old = x.data.new_full((1,), 1).expand(4, 4), x.new([1.0, 2.0])
        shared = torch.as_tensor(self.sizes, device=x.device)
        print(classes, default, of_floats, old, shared)
        return one, pair, same, rows, ids, new, moved, mixed, unknown, laid_out


def compiled(x: torch.Tensor, sizes: list[int]):
    return x + torch.tensor([0.1, 0.2], device=x.device)


fast = torch.compile(compiled)


# Look-alikes.


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]))

    def forward(self, x: torch.Tensor):
        return x - self.mean[:, None, None]


class Nothing(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.tensor([], device=x.device), x.new_tensor([])


class Stacked(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.stack([x.sum(), x.mean()]), torch.full((3,), 2.0, device=x.device), x.new_zeros(3)


class There(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.as_tensor(x, device=x.device), torch.tensor(x, device=x.device), torch.cuda.FloatTensor(3)


class Uninitialized(nn.Module):
    def forward(self, x: torch.Tensor):
        size = torch.Size((1, x.size(1)))
        return torch.cuda.FloatTensor(size), torch.cuda.LongTensor(x.shape), x.data.new(x.size()), x.new(2, 3)


class SizesAsData(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.tensor(x.shape, dtype=x.dtype, device="cpu", pin_memory=x.is_cuda).to(
            x.device, non_blocking=x.is_cuda
        ), torch.tensor(list(x.shape), dtype=torch.int64, device="cpu", pin_memory=True).to("cuda", non_blocking=True)


def on_host(values: list[float]):
    return torch.tensor(values), torch.as_tensor(values, device="cpu"), torch.FloatTensor(values), torch.LongTensor(3)


def only_cast(values: list[float]):
    return torch.tensor(values).to(torch.float16), torch.tensor(values).long()


def without_waiting(values: list[float]):
    return torch.tensor(values).pin_memory().to("cuda", non_blocking=True)


def other_functions(values: list[float]):
    return np.array(values), list(values), torch.Size(values)


def configured(steps: list[float], state: np.ndarray, model, loader):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for x in loader:
        noise = torch.tensor(steps).to(device)
        seen = torch.FloatTensor(state.reshape(1, -1)).to(device)
        model(x, noise, seen).backward()


class Counted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        size = x.new_full((1,), x.shape[0], dtype=torch.long)
        return x * weight / size

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def count_of(x):
    return x.new_full((1,), x.shape[0], dtype=torch.long)


def as_it_is_spelled(x: torch.Tensor, frames: list):
    from torch import tensor

    kinds = torch.tensor([each.kind for each in frames], device="cpu", pin_memory=x.is_cuda).to(
        x.device, non_blocking=x.is_cuda
    )
    return kinds, tensor([each.kind for each in frames], device="cpu", pin_memory=x.is_cuda).to(
        x.device, non_blocking=x.is_cuda
    )


def counted(x: torch.Tensor, n: int, loader: list):
    rows = torch.arange(x.size(0), dtype=torch.long, device=x.device)
    named = torch.arange(n, device=x.device)
    legacy = torch.arange(x.size(0), dtype=torch.int64, device=x.device)
    floats = torch.arange(n, dtype=torch.float32, device=x.device)
    moved = torch.arange(len(loader), dtype=torch.int32, device=x.device)
    steps = torch.tensor(range(0, n, 2), device="cpu", pin_memory=x.is_cuda).to(x.device, non_blocking=x.is_cuda)
    cast = torch.tensor(range(n), dtype=torch.int64, device="cpu", pin_memory=x.is_cuda).to(x, non_blocking=x.is_cuda)
    plain = torch.arange(n, dtype=torch.float32, device=x.device)
    halves = torch.tensor(range(n), dtype=torch.float16, device="cpu", pin_memory=x.is_cuda).to(
        x.device, non_blocking=x.is_cuda
    )
    return rows, named, legacy, floats, moved, steps, cast, plain, halves


class Unknown(nn.Module):
    def forward(self, x: torch.Tensor, helper):
        found = helper(x)
        stays = torch.as_tensor(found, device=found.device, dtype=x.dtype)
        other = helper(x)
        moved = torch.as_tensor(other, device=x.device)
        return stays, moved


def table(path: str):
    """Reading the file takes longer than the copy."""
    rows = np.loadtxt(path)
    return torch.tensor(rows[:, 0]).cuda()
