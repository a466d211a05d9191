"""Code that asks for the scaler of old."""

import torch


def is_scaler(scaler):
    return isinstance(scaler, torch.cuda.amp.GradScaler)


def case_asked_for():
    return {"today": is_scaler(torch.amp.GradScaler("cuda", enabled=False)), "other": is_scaler(3)}


def change_asked_for(today):
    """a test for the new class also accepts scalers of the old one"""
    assert today == (False, True)


def case_made():
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    return {"old": type(scaler) is not torch.amp.GradScaler, "today": isinstance(scaler, torch.amp.GradScaler)}


def change_made(old):
    """a scaler of the new class is not an instance of the old class"""
    assert old == (True, False)
