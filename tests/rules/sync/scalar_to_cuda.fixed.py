import torch
from torch import nn

DEVICE = torch.device("cuda")


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("bias", torch.tensor(0.0))

    def forward(self, x: torch.Tensor, weight: float, steps: int):
        zero = torch.full((), 0.0, device=x.device)
        one = torch.full((), 1, dtype=torch.long, device="cuda")
        flag = torch.full((), True, device=DEVICE)
        learned = torch.full((), -1.5, device=x.device, requires_grad=True)
        given = torch.tensor(weight, device=x.device)
        counted = torch.tensor(
            steps,
            dtype=torch.float32,
            device=x.device,
        )  # the count
        short = torch.full((), 2.0, device=x.device)
        new = x.new_full((), 3.0)
        moved = torch.full((), 4.0, device="cuda")
        there = torch.full((), 5, device=x.device)
        cast = torch.full((), 6, device=x.device, dtype=torch.float16)
        like = torch.full((), 7, device=x.device, dtype=x.dtype)
        typed = torch.full((), 8.0, device=x.device, dtype=x.dtype)
        shaped = torch.tensor(9.0).view(1, 1).to(x.device)
        return x, zero, one, flag, learned, given, counted, short, new, moved, there, cast, like, typed, shaped


def library(x: torch.Tensor, device: torch.device):
    return x * torch.full((), 2.0, device=device)


def optional(x: torch.Tensor, device=None):
    return x * torch.full((), 2.0, device=device)


def on_some_gpu(gpu, known: int, other: int | None = None):
    here = torch.tensor(3.0).cuda(gpu), torch.full((), 3.0, device=known)
    return here, torch.tensor(3.0).cuda(other), torch.full((), 3.0, device="cuda")


@torch.jit.script
def scripted(x: torch.Tensor):
    return x * torch.tensor(2.0, device=x.device, requires_grad=True)


# Look-alikes.


class Filled(nn.Module):
    def forward(self, x: torch.Tensor):
        zero = torch.full((), 0.0, device=x.device)
        return zero + torch.zeros((), device=x.device) + x.new_zeros(()) + torch.scalar_tensor(1.0, device=x.device)


class Empty(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.tensor([], device=x.device), torch.tensor((), device=x.device)


class Detached(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.tensor(x.sum(), device=x.device), torch.as_tensor(x.sum(), device=x.device)


def on_host():
    return torch.tensor(1.0), torch.tensor(1.0, device="cpu"), torch.tensor(1.0, device=None), torch.tensor(2).to("cpu")


def only_cast():
    return torch.tensor(1.0).to(torch.float16), torch.tensor(1).to(dtype=torch.float32), torch.tensor(1).float()


def without_waiting(x: torch.Tensor):
    return x * torch.tensor(2.0).to("cuda", non_blocking=True)


def on_meta():
    return torch.tensor(1.0, device="meta")


def on_another_accelerator():
    return torch.tensor(0, device=torch.device("musa", 1)), torch.tensor(1.0, device="mps")


def host_numbers(x: torch.Tensor):
    return x * torch.tensor(2.0) + x.new_full((), 3.0)
