"""Switches of TF32, old and new."""

import torch
from torch.backends import cudnn


def old() -> None:
    torch.backends.cuda.matmul.allow_tf32 = True  # error: TPF907
    cudnn.allow_tf32 = True  # audit: TPF907


def older() -> None:
    torch.backends.cudnn.allow_tf32 = False  # audit: TPF907


# Look-alikes


def new() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"


def by_precision() -> None:
    torch.set_float32_matmul_precision("high")


def read() -> bool:
    return torch.backends.cuda.matmul.allow_tf32


class Settings:
    def __init__(self) -> None:
        self.allow_tf32 = True


def of_others(settings) -> None:
    settings.allow_tf32 = True
