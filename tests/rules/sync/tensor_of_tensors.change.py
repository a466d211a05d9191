"""A tensor of tensors, by way of the host and on the device."""

import torch


def both(a: torch.Tensor, b: torch.Tensor):
    a, b = a.cuda(), b.cuda()
    return torch.tensor([a.mean(), b.sum()])


def case_device():
    a = torch.ones(2, requires_grad=True)
    made = both(a, torch.zeros(2))
    return {"device": made.device.type, "numbers": made.tolist(), "records": made.requires_grad}


def change_device(device):
    """the result stays on the device of its elements, while the constructor created a CPU tensor"""
    assert device == ("cpu", "cuda")


def case_dtypes():
    made = both(torch.ones(2), torch.tensor([True, True]))
    other = both(torch.tensor([0.5], dtype=torch.float64), torch.ones(1))
    return {"dtypes": [made.dtype, other.dtype], "numbers": [made.tolist(), other.tolist()]}
