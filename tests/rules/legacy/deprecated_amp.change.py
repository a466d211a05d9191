"""Code that asks for the scaler of old."""

import torch


def is_scaler(scaler):
    return isinstance(scaler, torch.cuda.amp.GradScaler)


def case_asked_for():
    return {"today": is_scaler(torch.amp.GradScaler("cuda", enabled=False)), "other": is_scaler(3)}


def change_asked_for(today):
    """scalers of today's class are then among those that it finds"""
    assert today == (False, True)
