"""Extensions that are compiled as the program runs."""

import torch
from torch.utils import cpp_extension
from torch.utils.cpp_extension import load_inline

kernels = load_inline("kernels", cpp_sources="", functions="twice")  # audit: TPF375
other = cpp_extension.load(  # audit: TPF375
    name="other",
    sources=["other.cu"],
)


@torch.compile
def step(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(kernels.twice(x)) + other.thrice(x)  # audit: TPF375, TPF375


# Look-alikes


def build_kernels():
    return load_inline("more", cpp_sources="", functions="more")


def eager(x: torch.Tensor) -> torch.Tensor:
    return kernels.twice(x)


@torch.compiler.disable
def kept_out(x: torch.Tensor) -> torch.Tensor:
    return kernels.twice(x)


@torch.compile
def of_torch(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(kept_out(x))


def extension() -> object:
    return cpp_extension.CppExtension("kernels", ["kernels.cpp"])


def of_others(json, text: str) -> object:
    return json.load(text)
