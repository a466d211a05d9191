"""TorchScript."""

import torch
from torch import jit, nn
from torch.jit import trace


@torch.jit.script  # error: TPF901
def gelu(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1.0 + torch.erf(x / 1.41421))


class Scripted(jit.ScriptModule):  # audit: TPF901
    @torch.jit.script_method  # audit: TPF901
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def prepare(model: nn.Module, x: torch.Tensor) -> None:
    fast = torch.jit.script(model)  # audit: TPF901
    traced = trace(model, x)  # audit: TPF901
    fast(x)
    traced(x)


# Look-alikes


@torch.compile
def compiled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@torch.jit.script_if_tracing
def when_traced(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class Marked(nn.Module):
    @torch.jit.ignore
    def describe(self) -> str:
        return "marked"

    @torch.jit.export
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.jit.is_scripting() or torch.jit.is_tracing():
            return x
        return x * 2


def loads(path: str, x: torch.Tensor) -> torch.Tensor:
    return torch.jit.load(path)(x)


def of_others(script, numba, x):
    numba.jit(script)
    return script.trace(x)


def annotated(x: torch.jit.ScriptModule) -> bool:
    return isinstance(x, torch.jit.ScriptModule)
