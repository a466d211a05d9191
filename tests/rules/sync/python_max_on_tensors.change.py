"""The larger of two, chosen by Python and on the device."""

import torch


def larger(a: torch.Tensor, b: torch.Tensor):
    a, b = a.cuda().sum(), b.cuda().sum()
    return max(a, b)


def at_least_one(mask: torch.Tensor):
    return max(mask.cuda().sum(), 1)


def case_alike():
    a = torch.tensor([2.0], requires_grad=True)
    y = larger(a, torch.tensor([1.0]))
    y.backward()
    return {"value": y.item(), "a": a.grad}


def case_number():
    y = at_least_one(torch.zeros(3, dtype=torch.bool))
    return {"kind": type(y).__name__, "value": int(y)}


def change_number(kind):
    """the result is always a tensor"""
    assert kind == ("int", "Tensor")


def case_dtypes():
    y = larger(torch.tensor([3]), torch.tensor([1.5]))
    return {"dtype": y.dtype, "value": float(y)}


def change_dtypes(dtype):
    """of the promoted dtype"""
    assert dtype == (torch.int64, torch.float32)


def case_nan():
    return {"value": str(larger(torch.tensor([1.0]), torch.tensor([torch.nan])).item())}


def change_nan(value):
    """NaN wins"""
    assert value == ("1.0", "nan")


def case_ties():
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    y = larger(a, b)
    y.backward()
    return {"gradients": [None if one.grad is None else one.grad.item() for one in (a, b)], "value": y.item()}


def change_ties(gradients):
    """gradients of ties are shared"""
    assert gradients == ([1.0, None], [0.5, 0.5])


def kept_where_a_call_may_change_the_other(queue: list[int], mask: torch.Tensor):
    return max(queue.pop(), mask.cuda().sum() + len(queue) + next(iter(queue)))


def kept_where_the_order_counts(mask: torch.Tensor):
    return max((least := 1), mask.cuda().sum() - least)
