import settings
import torch
import torch as th
from torch import nn
from torch.utils.data import Dataset


class Shift(nn.Module):
    def forward(self, x: torch.Tensor, steps: int):
        offset = torch.arange(x.shape[1], device=x.device)
        zeros = torch.zeros(x.shape[0], 4, device="cuda")
        ones = torch.ones(4, dtype=torch.long, device="cuda")
        eye = th.eye(3, device=x.device, dtype=torch.float16)
        filled = torch.full((3,), 2.5, device=x.device)
        typed = torch.zeros(3, device=x.device, dtype=x.dtype)
        like = torch.empty(3, device=x.device, dtype=x.dtype)
        shaped = torch.arange(0, steps, 2, device=x.device).float().view(1, -1)
        viewed = torch.arange(4, device=x.device)[None, :]
        long = torch.zeros(
            x.shape[0],
            4,
            device=x.device,
        )
        return offset, zeros, ones, eye, filled, typed, like, shaped, viewed, long


class OtherNumbers(nn.Module):
    def forward(self, x: torch.Tensor):
        noise = torch.randn(3, device=x.device)
        order = torch.randperm(x.shape[0], device="cuda")
        grid = torch.linspace(0, 1, 10, device=x.device)
        half = torch.arange(0.0, 1.0, 0.1, device=x.device)
        leaf = torch.zeros(3, requires_grad=True, device=x.device)
        written = torch.zeros(3, requires_grad=True).to(x.device)
        written[0] = x[0]
        also = torch.zeros(3).requires_grad_().to(x.device)
        also.add_(x)
        window = torch.hann_window(400, device=x.device)
        legacy = torch.FloatTensor(3).cuda()
        return noise, order, grid, half, leaf, window, legacy


def library(x: torch.Tensor, device: torch.device):
    return x + torch.zeros(3, device=device)


def of_a_package(count: int):
    return torch.zeros(count, device=settings.device), torch.ones(count).to(settings.dtype)


def on_some_gpu(x: torch.Tensor, gpu, known: int, other: int | None = None):
    zeros = torch.zeros(3, device=x.device)
    here = torch.zeros(3).cuda(gpu), torch.zeros(3, device=known)
    return zeros, here, torch.zeros(3).cuda(other), torch.zeros(3, device="cuda")


# Look-alikes.


class Direct(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.zeros(3, device=x.device), x.new_zeros(3), torch.zeros_like(x).to(x.device)


class Cast(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.zeros(3).to(torch.float16), torch.zeros(3).to(dtype=x.dtype), torch.ones(3).half()


class Moved(nn.Module):
    def forward(self, x: torch.Tensor):
        return x.to("cuda"), x.cuda(), x.type_as(x)


def on_host():
    return torch.zeros(3).to("cpu"), torch.zeros(3).cpu(), torch.zeros(3, device="cpu").to(torch.device("cpu"))


def without_waiting():
    return torch.zeros(3).pin_memory().to("cuda", non_blocking=True)


class Data(Dataset):
    def __getitem__(self, index):
        return torch.zeros(3), torch.arange(4).float()


def numbers_and_lists(x: torch.Tensor, values: list[float]):
    return torch.tensor(1.0).to(x.device), torch.tensor(values).to(x.device), torch.from_numpy(x.numpy()).cuda()


def of_a_dtype(dtype):
    return torch.zeros(3).to(dtype)


def without_elements(x: torch.Tensor):
    first = torch.empty(0).to(x.device), torch.zeros(0, 4, dtype=torch.long).cuda(), torch.ones((2, 0)).to(x)
    second = torch.LongTensor(4, 0).to(x.device), torch.FloatTensor(x.shape[0], 2, 0).cuda()
    return first, second, torch.full([0], 1.0).to(x.device), torch.rand(size=(0, 3)).to(x.device)


def a_zero_that_is_no_size(x: torch.Tensor):
    numbers = torch.LongTensor(2, 10).to(x.device)
    return numbers, torch.full((2, 2), 0, device=x.device), torch.zeros(2, 10, device=x.device)


def like_one_that_is_there(x: torch.Tensor, some: list[torch.Tensor]):
    rows = torch.cat([each.reshape(-1) for each in some]) if some else torch.tensor([])
    there = torch.zeros_like(rows).to(rows), torch.ones_like(rows).to(rows.device)
    other = torch.zeros(3)
    return there, torch.zeros_like(other, device=x.device)


def moved_and_cast(x: torch.Tensor):
    again = torch.ones(3, device=x.device, dtype=x.dtype)
    cast = torch.zeros(3, device=x.device, dtype=x.dtype)
    half = torch.ones(3, device=x.device, dtype=torch.float16)
    longer = torch.full((3,), 0.1, device=x.device).to(torch.float64)
    twice = torch.zeros(3, dtype=torch.float16, device=x.device).to(torch.float32)
    return again, cast, half, longer, twice
