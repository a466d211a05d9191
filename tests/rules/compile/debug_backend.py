"""Backends and switches of torch.compile: those for debugging, and others."""

import os

import torch
import torch._dynamo as dynamo
from torch import nn

os.environ["TORCH_COMPILE_DEBUG"] = "1"  # audit: TPF715
os.environ["TORCHDYNAMO_DISABLE"] = "1"  # error: TPF715
dynamo.config.disable = True  # error: TPF715
dynamo.config.disable = False
os.environ["TORCH_COMPILE_DEBUG"] = "0"
os.environ["TORCH_LOGS"] = "1"


def build(model: nn.Module) -> nn.Module:
    return torch.compile(model, backend="eager")  # error: TPF715


@torch.compile(backend="aot_eager", dynamic=True)  # error: TPF715
def step(x: torch.Tensor) -> torch.Tensor:
    return x * 2


BACKEND = "aot_eager_decomp_partition"


def named(model: nn.Module) -> nn.Module:
    return torch.compile(model, backend=BACKEND)  # error: TPF715


# Look-alikes


def real(model: nn.Module) -> list[nn.Module]:
    return [torch.compile(model), torch.compile(model, backend="inductor"), torch.compile(model, backend="cudagraphs")]


def chosen(model: nn.Module, backend: str) -> nn.Module:
    return torch.compile(model, backend=backend)


def behind_a_flag(model: nn.Module, debug: bool) -> nn.Module:
    if debug:
        os.environ["TORCH_COMPILE_DEBUG"] = "1"
        return torch.compile(model, backend="eager")
    return torch.compile(model)


def of_other_code(library, model: nn.Module) -> nn.Module:
    return library.compile(model, backend="eager")


def of_processes() -> None:
    torch.distributed.init_process_group(backend="nccl")


OPTIONS = {"backend": "aot_eager", "dynamic": False}
DEFAULT = {"backend": "inductor"}


def from_a_dict(model):
    return torch.compile(model, **OPTIONS)  # error: TPF715


def from_a_dict_of_the_usual_back_end(model):
    return torch.compile(model, **DEFAULT)


def from_a_dict_that_is_set(model, backend):
    options = {"backend": "eager"}
    options["backend"] = backend
    return torch.compile(model, **options)


class Distiller:
    def __init__(self, student: nn.Module, compiles: bool) -> None:
        self.student = torch.compile(student)
        torch._dynamo.config.disable = True  # error: TPF715

    def set_up(self, compiles: bool) -> None:
        torch._dynamo.config.disable = not compiles
        if not compiles:
            torch._dynamo.config.disable = True
