"""Autocast of old beside a default that it ignores."""

import torch
from torch import nn


def case_default():
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        with torch.cuda.amp.autocast():
            y = nn.Linear(3, 2).cuda()(torch.ones(3, device="cuda"))
            return {"dtype": y.dtype, "on": torch.is_autocast_enabled("cuda"), "y": y.float().tolist()}
    finally:
        torch.set_autocast_dtype("cuda", torch.float16)


def change_default(dtype, y):
    """the file sets the default dtype of autocast, which the old `autocast` ignores"""
    assert dtype == (torch.float16, torch.bfloat16)


def case_given():
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        with torch.cuda.amp.autocast(dtype=torch.float16):
            return {"y": nn.Linear(3, 2).cuda()(torch.ones(3, device="cuda"))}
    finally:
        torch.set_autocast_dtype("cuda", torch.float16)


def is_scaler(scaler):
    return isinstance(scaler, torch.cuda.amp.GradScaler)


def case_asked_for():
    return {"today": is_scaler(torch.amp.GradScaler("cuda", enabled=False)), "other": is_scaler(3)}


def change_asked_for(today):
    """scalers of today's class are then among those that it finds"""
    assert today == (False, True)
