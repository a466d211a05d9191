"""Training under autocast."""

import torch
from torch import nn


def train(model, loader, optimizer):
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x.cuda(non_blocking=True), y.cuda(non_blocking=True))
        loss.backward()  # error: TPF359
        optimizer.step()
        optimizer.zero_grad()


def by_default(model, loader, optimizer):
    for x in loader:
        with torch.autocast(device_type="cuda"):
            model(x.cuda()).mean().backward()  # error: TPF359
        optimizer.step()


def the_old_way(model, x, optimizer):
    with torch.cuda.amp.autocast():
        loss = model(x.cuda()).mean()
    loss.backward()  # error: TPF359
    optimizer.step()


# Look-alikes


def in_bfloat16(model, loader, optimizer):
    for x in loader:
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, loader):
    with torch.autocast("cuda", dtype=torch.float16):
        return [model(x.cuda()) for x in loader]


def on_the_cpu(model, x, optimizer):
    with torch.autocast("cpu"):
        loss = model(x).mean()
    loss.backward()
    optimizer.step()


def switched_off(model, x, optimizer):
    with torch.autocast("cuda", dtype=torch.float16, enabled=False):
        loss = model(x.cuda()).mean()
    loss.backward()
    optimizer.step()


def as_configured(model, x, optimizer, dtype, mixed: bool):
    with torch.autocast("cuda", dtype=dtype), torch.autocast("cuda", enabled=mixed):
        loss = model(x.cuda()).mean()
    loss.backward()
    optimizer.step()


def gradients(model, x):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(x.cuda()).mean()
    loss.backward()
    return [p.grad for p in model.parameters()]


def in_half(model: nn.Module, loader, optimizer):
    model = model.cuda().half()  # error: TPF359
    for x in loader:
        optimizer.zero_grad()
        model(x.cuda().half()).mean().backward()
        optimizer.step()


class Trainer:
    def __init__(self, model: nn.Module):
        self.model = model.to("cuda", torch.float16)  # error: TPF359
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, x: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        self.model(x).mean().backward()
        self.optimizer.step()


def in_half_for_inference(model: nn.Module, loader):
    model = model.cuda().half().eval()
    with torch.inference_mode():
        return [model(x.cuda().half()) for x in loader]


def in_bfloat16(model: nn.Module, loader, optimizer):
    model = model.to("cuda", torch.bfloat16)
    for x in loader:
        optimizer.zero_grad()
        model(x.cuda().bfloat16()).mean().backward()
        optimizer.step()


class Decorated(nn.Module):
    @torch.autocast("cuda", dtype=torch.float16)  # error: TPF359
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def of_decorated(model: Decorated, x: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    loss = model(x).float().mean()
    loss.backward()
    optimizer.step()
