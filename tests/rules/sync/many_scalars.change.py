"""Numbers that are read one by one, and together."""

import torch


def read(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor):
    x, y, z = x.cuda().half(), y.cuda().float(), z.cuda().double()
    low = x.min().item()
    high = y.max().item()
    last = z.max().item()
    return low, high, last


def whole(x: torch.Tensor):
    x = x.cuda()
    a = x.long().max().item()
    b = x.int().max().item()
    c = x.long().min().item()
    return a, b, c


def case_alike():
    x = torch.tensor([0.1, -3.5])
    return {"numbers": read(x, x, x)}


def case_dtypes():
    return {"numbers": read(torch.tensor([0.1]), torch.tensor([0.2]), torch.tensor([0.3])), "whole": whole(torch.tensor([2**24 + 1]))}


def fails(x: torch.Tensor, found: list):
    x = x.float().cuda()
    found.append(x.min().item())
    found.append(x.max().item())
    found.append(x[:0].max().item())


def case_fails():
    found = []
    try:
        fails(torch.ones(2), found)
    except RuntimeError:
        pass
    return {"found": found}


def change_fails(found, waits):
    """all are computed before the first is read, so that none is read if one of them raises"""
    assert found == ([1.0, 1.0], [])


def kept_where_the_error_is_handled():
    x = torch.ones(2, device="cuda")
    low = high = None
    try:
        low = x.min().item()
        high = x.max().item()
        none = x[:0].max().item()
    except RuntimeError:
        pass
    return low, high
