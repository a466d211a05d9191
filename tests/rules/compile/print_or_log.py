"""Printing and logging in compiled code."""

import logging
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)


@torch.compile
def forward(x: torch.Tensor) -> torch.Tensor:
    print("before", x.shape)  # error: TPF703
    x = torch.relu(x)
    logger.debug("relu done")  # error: TPF703
    logging.info("relu of %s", x)  # error: TPF703
    warnings.warn("slow", stacklevel=2)  # error: TPF703
    return x * 2


class Net(nn.Module):
    def __init__(self, verbose: bool) -> None:
        super().__init__()
        self.verbose = verbose
        self.limit = 8

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        name = f"sum {x.sum()}"  # error: TPF703
        text = str(x)  # error: TPF703
        if self.verbose:
            print(x.shape)  # audit: TPF703
        if x.shape[0] > self.limit:
            logger.warning("many rows")  # audit: TPF703
        return x * len(name) * len(text)


model = torch.compile(Net(False))


# Look-alikes


def not_compiled(x: torch.Tensor) -> torch.Tensor:
    print("before", x.shape)
    return torch.relu(x)


@torch.compile
def guarded(x: torch.Tensor) -> torch.Tensor:
    if not torch.compiler.is_compiling():
        print("eager")
    if torch.jit.is_scripting():
        logger.info("scripting")
    return torch.relu(x)


@torch.compile
def fails(x: torch.Tensor) -> torch.Tensor:
    if x.dim() != 2:
        raise ValueError(f"two dimensions, not {x.dim()}: {x}")
    return torch.relu(x)


@torch.compiler.disable
def report(x: torch.Tensor) -> None:
    print(x)


@torch.compile
def reports(x: torch.Tensor) -> torch.Tensor:
    report(x)
    return torch.relu(x)


@torch.compile
def no_tensors(x: torch.Tensor, name: str = "x") -> torch.Tensor:
    key = f"{name}_{x.shape[0]}" + str(x.dim())
    return x * len(key)


def around(x: torch.Tensor) -> torch.Tensor:
    y = forward(x)
    print(y.shape)
    return y
