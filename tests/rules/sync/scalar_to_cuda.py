import torch
import torch as th
from torch import nn, tensor

DEVICE = torch.device("cuda")


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("bias", torch.tensor(0.0))

    def forward(self, x: torch.Tensor, weight: float, steps: int):
        zero = torch.tensor(0.0, device=x.device)  # error: TPF116
        one = torch.tensor(1, dtype=torch.long, device="cuda")  # error: TPF116
        flag = torch.as_tensor(True, device=DEVICE)  # error: TPF116
        learned = th.tensor(-1.5, device=x.device, requires_grad=True)  # error: TPF116
        given = torch.tensor(weight, device=x.device)  # error: TPF116
        counted = torch.tensor(  # error: TPF116
            steps,
            dtype=torch.float32,
            device=x.device,
        )  # the count
        short = tensor(2.0, device=x.device)  # error: TPF116
        new = x.new_tensor(3.0)  # error: TPF116
        moved = torch.tensor(4.0).cuda()  # error: TPF116
        there = torch.tensor(5).to(x.device)  # error: TPF116
        cast = torch.tensor(6).to(x.device, torch.float16)  # error: TPF116
        like = torch.tensor(7).to(x)  # error: TPF116
        typed = torch.tensor(8.0).type_as(x)  # error: TPF116
        shaped = torch.tensor(9.0).view(1, 1).to(x.device)  # error: TPF116
        return x, zero, one, flag, learned, given, counted, short, new, moved, there, cast, like, typed, shaped


def library(x: torch.Tensor, device: torch.device):
    return x * torch.tensor(2.0, device=device)  # error: TPF116


def optional(x: torch.Tensor, device=None):
    return x * torch.tensor(2.0, device=device)  # audit: TPF116


def on_some_gpu(gpu, known: int, other: int | None = None):
    here = torch.tensor(3.0).cuda(gpu), torch.tensor(3.0).cuda(known)  # error: TPF116, TPF116
    return here, torch.tensor(3.0).cuda(other), torch.tensor(3.0).cuda(None)  # error: TPF116, TPF116


@torch.jit.script
def scripted(x: torch.Tensor):
    return x * torch.tensor(2.0, device=x.device, requires_grad=True)  # error: TPF116


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
