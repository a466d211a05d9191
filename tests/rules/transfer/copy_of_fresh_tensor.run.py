import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def leaf():
    return torch.arange(6.0, device=DEVICE).reshape(2, 3).requires_grad_()


def case_arithmetic():
    x: torch.Tensor = leaf()
    y = (x * 2).clone()
    z = (1 - y / 3).clone()
    z.mul_(2)
    z.square().sum().backward()
    return x, y, z


def case_transposed():
    x: torch.Tensor = leaf()
    return (x.mT + x.mT).clone(), x


def case_joined():
    x: torch.Tensor = leaf()
    both = torch.cat([x, x * 2]).clone().add_(1)
    piled = torch.stack([x, x], -1).clone()
    chosen = torch.where(x > 1, x, -x).clone()
    (both.sum() + piled.square().sum() + chosen.sum()).backward()
    return x, both, piled, chosen


def case_made():
    return torch.zeros(2, 3, device=DEVICE).clone(), torch.arange(4, device=DEVICE).clone()


def case_picked():
    x: torch.Tensor = leaf()
    index = torch.tensor([1, 0], device=DEVICE)
    rows = x.index_select(0, index).clone()
    rows.add_(1).sum().backward()
    return x, rows, x.repeat(2, 1).clone()


def kept_where_memory_is_shared():
    x: torch.Tensor = leaf()
    y = x.detach().clone()
    y.add_(1)
    return x, y, x.view(-1).clone(), torch.zeros(2, requires_grad=True).clone()


class Wrapped:
    def __init__(self, held):
        self.held = held

    def __add__(self, other):
        return self.held


def kept_where_another_class_adds():
    x = leaf()
    y = (Wrapped(x) + x).clone()
    return x, y


def kept_where_an_operand_is_not_known(other):
    x = leaf()
    y = (other + x).clone()
    return x, y
