"""Writing through a mask, with a question and without."""

import torch


def hide(x: torch.Tensor, limit: float):
    mask = x > limit
    if mask.any():
        x[mask] = 0.0
    return x


def case_values():
    return {"some": hide(torch.arange(4.0, device="cuda"), 2), "none": hide(torch.arange(4.0, device="cuda"), 9)}


def case_leaf():
    x = torch.arange(4.0, device="cuda", requires_grad=True)
    hide(x, 9).sum().backward()
    return {"x": x}


def change_leaf(error):
    """autograd sees an in-place operation even if the mask is empty, which raises for a leaf that requires grad"""
    assert error[0] is None and "a leaf Variable that requires grad" in error[1]


def case_needed():
    weight = torch.ones(4, device="cuda", requires_grad=True)
    y = weight.exp()
    hide(y, 9)
    y.sum().backward()
    return {"weight": weight}


def change_needed(error):
    """for a tensor whose value some backward still needs"""
    assert error[0] is None and "modified by an inplace operation" in error[1]
