"""Numbers that are written through a mask of which nobody knows what it holds."""

import torch


def fill(x: torch.Tensor, where: torch.Tensor):
    x = x.cuda()
    x[torch.where(where.cuda())] = 0.5
    return x


def case_mask():
    return {"x": fill(torch.zeros(4), torch.tensor([True, False, False, True]))}


def case_whole_numbers():
    return {"x": fill(torch.zeros(4), torch.tensor([1, 0, 0, 3])).tolist()}


def change_whole_numbers(x):
    """an integer `m` would be taken as positions"""
    assert x == ([0.5, 0, 0, 0.5], [0.5, 0.5, 0, 0.5])


def first(x: torch.Tensor, count: int):
    x = x.cuda()
    few = (torch.arange(count, device="cuda") > 0).cuda()
    x[torch.where(few)] = 0.5
    return x


def case_as_long():
    return {"x": first(torch.zeros(4), 4)}


def case_shorter():
    return {"x": first(torch.zeros(4), 2).tolist()}


def change_shorter(error):
    """may be shorter than `x`, which raises an error"""
    assert error[0] is None and error[1].startswith("IndexError: The shape of the mask [2]")


def case_written():
    x = torch.ones(3, requires_grad=True)
    y = x.cuda() * 2
    few = torch.arange(3, device="cuda") > 0
    y[torch.where(few)] = 0.5
    few.zero_()
    y.sum().backward()
    return {"grad": x.grad.tolist()}


def change_written(error):
    """is written before `backward()`, which raises one there"""
    assert error[0] is None and "modified by an inplace operation" in error[1]


def case_no_dimensions():
    return {"x": fill(torch.zeros(3), torch.tensor(True)).tolist()}


def change_no_dimensions(x):
    """a boolean `m` without dimensions as all of `x`"""
    assert x == ([0.5, 0, 0], [0.5, 0.5, 0.5])
