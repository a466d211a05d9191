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
    """autograd sees an in-place operation even if the mask is empty. … raises for a leaf that requires grad"""
    assert error[0] is None and "a leaf Variable that requires grad" in error[1]


def case_needed():
    weight = torch.ones(4, device="cuda", requires_grad=True)
    y = weight.exp()
    hide(y, 9)
    y.sum().backward()
    return {"weight": weight}


def change_needed(error):
    """for a tensor whose value a later backward still needs"""
    assert error[0] is None and "modified by an inplace operation" in error[1]


def case_labels_that_are_needed():
    labels = torch.tensor([0, 1, 2], device="cuda")
    rows = torch.nn.functional.embedding(labels, torch.ones(3, 2, device="cuda", requires_grad=True))
    outside = labels > 9
    if outside.any():
        labels[outside] = 0
    rows.sum().backward()
    return {"rows": rows}


def change_labels_that_are_needed(error):
    """for a tensor whose value a later backward still needs: autograd saves indices, labels and masks, too"""
    assert error[0] is None and "modified by an inplace operation" in error[1]


def case_masks_that_are_needed():
    x = torch.ones(3, device="cuda", requires_grad=True)
    keep = torch.tensor([True, False, True], device="cuda")
    kept = torch.where(keep, x, x * 2)
    outside = keep.long() > 9
    if outside.any():
        keep[outside] = False
    kept.sum().backward()
    return {"kept": kept}


def change_masks_that_are_needed(error):
    """autograd saves indices, labels and masks, too"""
    assert error[0] is None and "modified by an inplace operation" in error[1]


def case_small_integers():
    counts = torch.zeros(3, dtype=torch.uint8, device="cuda")
    empty = counts > 9
    if empty.any():
        counts[empty] = 300
    return {"counts": counts}


def change_small_integers(error):
    """the number fits any integer"""
    assert error[0] is None and "overflow" in error[1]
