"""Filling under a mask, and choosing by it."""

import torch


def fill(x: torch.Tensor, mask: torch.Tensor, other: torch.Tensor):
    return x.cuda().masked_fill(mask.cuda(), other.cuda().mean())


def case_alike():
    x = torch.randn(3, device="cuda", requires_grad=True)
    y = fill(x * 2, torch.tensor([True, False, False]), torch.ones(2))
    y.sum().backward()
    return {"y": y, "x": x}


def case_wider():
    y = fill(torch.ones(2, dtype=torch.int64), torch.tensor([True, False]), torch.full((2,), 1.5))
    return {"dtype": y.dtype, "values": y.tolist()}


def change_wider(dtype, values):
    """if the value is of a wider kind than x, such as a float with integers, the result has the value's dtype"""
    assert dtype == (torch.int64, torch.float32) and values == ([1, 1], [1.5, 1.0])


def case_no_dimensions():
    y = fill(torch.ones((), dtype=torch.float16), torch.tensor(True), torch.ones(2))
    return {"dtype": y.dtype, "value": y.item()}


def change_no_dimensions(dtype):
    """so does the result of an x without dimensions and a value of a wider dtype"""
    assert dtype == (torch.float16, torch.float32)


def case_widths():
    y = fill(torch.ones(2, dtype=torch.float16), torch.tensor([True, False]), torch.full((2,), 0.1))
    return {"y": y, "shape": fill(torch.ones(1), torch.tensor([True, False]), torch.ones(2)).shape}


class Steps:
    def __init__(self):
        self.mask = torch.tensor([True, False], device="cuda")

    def value(self) -> torch.Tensor:
        self.mask = ~self.mask
        return torch.ones((), device="cuda")


def kept_where_a_call_may_change_the_mask(x: torch.Tensor, steps: Steps):
    return x.cuda().masked_fill(steps.mask, steps.value())


def kept_where_the_order_counts(x: torch.Tensor):
    return (y := x.cuda().relu()).masked_fill(y > 0, y.max())
