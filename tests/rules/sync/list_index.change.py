"""Lists of numbers that become slices or stacks."""

import torch


def layout(x: torch.Tensor):
    return x.cuda()[:, [1, 3]] * 2


def case_layout():
    made = layout(torch.arange(20.0).reshape(5, 4).t().contiguous().t())
    return {"values": made.contiguous(), "strides": made.stride()}


def change_layout(strides):
    """It is unsafe for products, sums and layers, which may round otherwise for another layout."""
    assert strides == ((2, 1), (1, 5))


def case_stacked(x: torch.Tensor = torch.arange(24.0).reshape(4, 3, 2)):
    x = x.cuda()
    return {"values": [x[:, [2, 1, 0]], x[[3, 0], :], x[..., [1, 0]], x[:, [0, 0, 1]]]}


def stored(x: torch.Tensor):
    x[:, [1, 3]] = 0.5
    x[[-1]] = x.new_ones(4)
    return x


def case_stored():
    return {"values": stored(torch.zeros(3, 4, device="cuda"))}


def case_expanded():
    return {"values": stored(torch.zeros(1, 4, device="cuda").expand(3, 4))}


def change_expanded(error):
    """it raises for an expanded tensor"""
    assert error[0] is None and "single memory location" in error[1]


def case_outside(x: torch.Tensor = torch.arange(6.0)):
    x = x.cuda()
    return {"values": x[[6]] > 0}


def change_outside(error):
    """Positions outside of the tensor raise no error any more: the slice ends before them."""
    assert "out of bounds" in error[0] and error[1] is None
