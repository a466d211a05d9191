import settings
import torch
import torch as th
from torch import nn
from torch.utils.data import Dataset


class Shift(nn.Module):
    def forward(self, x: torch.Tensor, steps: int):
        offset = torch.arange(x.shape[1]).to(x.device)  # error: TPF204
        zeros = torch.zeros(x.shape[0], 4).cuda()  # error: TPF204
        ones = torch.ones(4, dtype=torch.long).to("cuda")  # error: TPF204
        eye = th.eye(3).to(device=x.device, dtype=torch.float16)  # error: TPF204
        filled = torch.full((3,), 2.5).to(x.device, non_blocking=False)  # error: TPF204
        typed = torch.zeros(3).type_as(x)  # error: TPF204
        like = torch.empty(3).to(x)  # error: TPF204
        shaped = torch.arange(0, steps, 2).float().view(1, -1).to(x.device)  # error: TPF204
        viewed = torch.arange(4)[None, :].to(x.device)  # error: TPF204
        long = torch.zeros(  # error: TPF204
            x.shape[0],
            4,
        ).to(x.device)
        return offset, zeros, ones, eye, filled, typed, like, shaped, viewed, long


class OtherNumbers(nn.Module):
    def forward(self, x: torch.Tensor):
        noise = torch.randn(3).to(x.device)  # error: TPF204
        order = torch.randperm(x.shape[0]).cuda()  # error: TPF204
        grid = torch.linspace(0, 1, 10).to(x.device)  # error: TPF204
        half = torch.arange(0.0, 1.0, 0.1).to(x.device)  # error: TPF204
        leaf = torch.zeros(3, requires_grad=True).to(x.device)  # error: TPF204
        written = torch.zeros(3, requires_grad=True).to(x.device)  # error: TPF204
        written[0] = x[0]
        also = torch.zeros(3).requires_grad_().to(x.device)  # error: TPF204
        also.add_(x)
        window = torch.hann_window(400).to(x.device)  # error: TPF204
        legacy = torch.FloatTensor(3).cuda()  # error: TPF204
        return noise, order, grid, half, leaf, window, legacy


def library(x: torch.Tensor, device: torch.device):
    return x + torch.zeros(3).to(device)  # error: TPF204


def of_a_package(count: int):
    return torch.zeros(count).to(settings.device), torch.ones(count).to(settings.dtype)  # error: TPF204


def on_some_gpu(x: torch.Tensor, gpu, known: int, other: int | None = None):
    zeros = torch.zeros(3).cuda(x.device)  # error: TPF204
    here = torch.zeros(3).cuda(gpu), torch.zeros(3).cuda(known)  # error: TPF204, TPF204
    return zeros, here, torch.zeros(3).cuda(other), torch.zeros(3).cuda(None)  # error: TPF204, TPF204


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
    numbers = torch.LongTensor(2, 10).to(x.device)  # error: TPF204
    return numbers, torch.full((2, 2), 0).to(x.device), torch.zeros(2, 10).to(x.device)  # error: TPF204, TPF204


def like_one_that_is_there(x: torch.Tensor, some: list[torch.Tensor]):
    rows = torch.cat([each.reshape(-1) for each in some]) if some else torch.tensor([])
    there = torch.zeros_like(rows).to(rows), torch.ones_like(rows).to(rows.device)
    other = torch.zeros(3)
    return there, torch.zeros_like(other).to(x.device)  # error: TPF204


def moved_and_cast(x: torch.Tensor):
    again = torch.ones(3).type_as(x).to(x.device)  # error: TPF204
    cast = torch.zeros(3).to(x.device).to(x.dtype)  # error: TPF204
    half = torch.ones(3).to(x.device).to(torch.float16)  # error: TPF204
    longer = torch.full((3,), 0.1).to(x.device).to(torch.float64)  # error: TPF204
    twice = torch.zeros(3, dtype=torch.float16).to(x.device).to(torch.float32)  # error: TPF204
    return again, cast, half, longer, twice
