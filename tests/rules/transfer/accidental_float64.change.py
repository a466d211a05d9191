"""Arrays that keep NumPy's precision, and that do not."""

import numpy as np
import torch


def positions(x: torch.Tensor):
    return torch.tensor(np.linspace(0, 1, 7), device=x.device)


def table(device: torch.device):
    np.random.seed(0)
    return torch.as_tensor(np.random.uniform(0, 1, (2, 2))).to(device=device)


def case_values():
    made = [positions(torch.ones(1, device="cuda")), table(torch.device("cuda"))]
    return {"made": made, "places": [(one.shape, one.device.type) for one in made]}


def change_values(made):
    """Results have the precision of float32"""
    for old, new in zip(*made):
        assert old.dtype is torch.float64 and new.dtype is torch.float32
        assert torch.equal(old.float(), new) and not torch.equal(old, new.to(old.dtype))
