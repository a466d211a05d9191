"""Run a program as written for older packages and with data of our own: `launch.py SCRIPT [ARGUMENTS]`.

A copy of this file lies beside the program. It changes five things: checksums of torchvision's data sets are not
compared, weights are not downloaded, `save_image` takes the old name of an argument, `torch.hub` lists no models, and
iterators of loaders have their old method `next`.
"""

from __future__ import annotations

import runpy
import sys
from typing import Any

import torch
import torchvision


def _untrained(build: Any) -> Any:
    return lambda *args, pretrained=False, **kwargs: build(*args, **kwargs)


def _with_value_range(save: Any) -> Any:
    def save_image(*args: Any, **kwargs: Any) -> Any:
        if "range" in kwargs:
            kwargs["value_range"] = kwargs.pop("range")
        return save(*args, **kwargs)

    return save_image


torchvision.datasets.cifar.check_integrity = lambda *args: True
torchvision.utils.save_image = _with_value_range(torchvision.utils.save_image)
for _name in ("resnet18", "resnet34", "resnet50"):
    setattr(torchvision.models, _name, _untrained(getattr(torchvision.models, _name)))
torch.utils.data.dataloader._BaseDataLoaderIter.next = torch.utils.data.dataloader._BaseDataLoaderIter.__next__
torch.hub.list = lambda *args, **kwargs: []
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
