import numpy as np
import torch
from torch import nn


class Normalize(nn.Module):
    def __init__(self, mean: list[float]):
        super().__init__()
        self.mean = mean
        self.register_buffer("std", torch.tensor([0.5, 0.5]))

    def forward(self, x: torch.Tensor, sizes: list[int]):
        mean = torch.tensor([0.485, 0.456, 0.406], device=x.device)  # error: TPF117
        kept = torch.tensor(self.mean, dtype=x.dtype, device=x.device)  # error: TPF117
        pairs = torch.as_tensor([[1, 2], [3, 4]], device="cuda")  # error: TPF117
        size = torch.tensor(x.shape, device=x.device)  # error: TPF117
        made = torch.tensor([float(s) for s in sizes], device=x.device)  # error: TPF117
        new = x.new_tensor([1.0, 2.0])  # error: TPF117
        legacy = torch.cuda.FloatTensor([1.0, 2.0])  # error: TPF117
        moved = torch.tensor(sizes).to(x.device)  # error: TPF117
        old = torch.LongTensor([1, 2]).cuda()  # error: TPF117
        shaped = torch.tensor([1.0, 2.0]).view(1, 2).to(x)  # error: TPF117
        return mean, kept, pairs, size, made, new, legacy, moved, old, shaped


def arrays(x: torch.Tensor, values: np.ndarray):
    first = torch.as_tensor(values, device=x.device)  # error: TPF117
    return first, torch.tensor(values, device=x.device)  # error: TPF117


def library(values, device: torch.device):
    return torch.tensor(values, device=device)  # error: TPF117


def perhaps_a_tensor(values, device: torch.device):
    return torch.as_tensor(values, device=device)  # audit: TPF117


class Repeated(nn.Module):
    def __init__(self, sizes: list[int]):
        super().__init__()
        self.sizes = sizes

    def forward(self, x: torch.Tensor, step: int, noise):
        one = torch.tensor([0.5], device=x.device)  # error: TPF117
        pair = torch.tensor([[0, 0]], dtype=torch.long, device=x.device)  # error: TPF117
        same = torch.tensor([1] * 4, device=x.device)  # error: TPF117
        rows = torch.tensor([step] * x.shape[0], device=x.device)  # error: TPF117
        ids = torch.as_tensor(x.shape[0] * [7], dtype=torch.long, device=x.device)  # error: TPF117
        new = x.new_tensor([0.0])  # error: TPF117
        moved = torch.tensor([2.0]).to(x.device)  # error: TPF117
        mixed = torch.tensor([0, 0.0], device=x.device)  # error: TPF117
        unknown = torch.tensor([noise] * 2, device=x.device)  # error: TPF117
        laid_out = torch.tensor(  # error: TPF117
            [0, 1, step],
            dtype=torch.long,
            device=x.device,
        )
        classes = torch.cuda.FloatTensor([1]), torch.LongTensor([2.5]).cuda()  # error: TPF117, TPF117
        default = torch.Tensor([1]).to(x.device), torch.FloatTensor([3]).to(x)  # error: TPF117, TPF117
        of_floats = torch.Tensor([0.0]).to(x.device), torch.Tensor([0.5] * 3).cuda()  # error: TPF117, TPF117
        old = x.data.new([1]).expand(4, 4), x.new([1.0, 2.0])  # error: TPF117, TPF117
        shared = torch.as_tensor(self.sizes, device=x.device)  # error: TPF117
        print(classes, default, of_floats, old, shared)
        return one, pair, same, rows, ids, new, moved, mixed, unknown, laid_out


def compiled(x: torch.Tensor, sizes: list[int]):
    return x + torch.tensor([0.1, 0.2], device=x.device)  # error: TPF117


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
        return torch.cuda.FloatTensor(size), torch.cuda.LongTensor(x.shape), x.data.new(x.size()), x.new(2, 3), x.new(size, 3)


class SizesAsData(nn.Module):
    def forward(self, x: torch.Tensor):
        return x.new_tensor(x.shape), torch.cuda.LongTensor(list(x.shape))  # error: TPF117, TPF117


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
        noise = torch.tensor(steps).to(device)  # error: TPF117
        seen = torch.FloatTensor(state.reshape(1, -1)).to(device)  # error: TPF117
        model(x, noise, seen).backward()


class Counted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        size = x.new_tensor([x.shape[0]], dtype=torch.long)  # error: TPF117
        return x * weight / size

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def count_of(x):
    return x.new_tensor([x.shape[0]], dtype=torch.long)  # audit: TPF117


def as_it_is_spelled(x: torch.Tensor, frames: list):
    from torch import tensor

    kinds = torch.tensor([each.kind for each in frames], device=x.device)  # error: TPF117
    return kinds, tensor([each.kind for each in frames]).to(x.device)  # error: TPF117


def counted(x: torch.Tensor, n: int, loader: list):
    rows = torch.tensor(range(x.size(0)), dtype=torch.long, device=x.device)  # error: TPF117
    named = torch.tensor(list(range(n)), device=x.device)  # error: TPF117
    legacy = torch.LongTensor(range(x.size(0))).to(x.device)  # error: TPF117
    floats = torch.tensor(range(n), dtype=torch.float32, device=x.device)  # error: TPF117
    moved = torch.tensor(range(len(loader)), dtype=torch.int32).to(x.device)  # error: TPF117
    steps = torch.tensor(range(0, n, 2), device=x.device)  # error: TPF117
    cast = torch.LongTensor(range(n)).to(x)  # error: TPF117
    plain = torch.Tensor(list(range(n))).to(x.device)  # error: TPF117
    halves = torch.tensor(range(n), dtype=torch.float16, device=x.device)  # error: TPF117
    return rows, named, legacy, floats, moved, steps, cast, plain, halves


class Unknown(nn.Module):
    def forward(self, x: torch.Tensor, helper):
        found = helper(x)
        stays = torch.as_tensor(found, device=found.device, dtype=x.dtype)
        other = helper(x)
        moved = torch.as_tensor(other, device=x.device)  # error: TPF117
        return stays, moved


def table(path: str):
    """Reading the file takes longer than the copy."""
    rows = np.loadtxt(path)
    return torch.tensor(rows[:, 0]).cuda()  # audit: TPF117


def rolled(policy, env, optimizer, count):
    state = env.reset()
    for _ in range(count):
        for _ in range(count):
            state = env.step(policy(state))
        state = torch.FloatTensor(state).cuda()  # error: TPF117
        policy(state).sum().backward()
        optimizer.step()


def rolled_on_either(policy, env, optimizer, count):
    state = env.reset()
    for _ in range(count):
        for _ in range(count):
            state = env.step(policy(state))
        state = torch.Tensor(state).cuda()  # audit: TPF117
        policy(state).sum().backward()
        optimizer.step()
