import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def case_ranges(x: torch.Tensor = torch.arange(12.0).reshape(4, 3), y: torch.Tensor = torch.tensor([2, 0, 1, 1])):
    x, y = x.to(DEVICE), y.to(DEVICE)
    first = x[torch.arange(x.size(0)), y], x[torch.arange(0, 4), y], x[range(len(x)), y]
    first = *first, x[torch.arange(4)[:, None], y], x[torch.arange(3).unsqueeze(1).expand(3, 2), 0]
    x[torch.arange(len(y)), y] = 7.0
    return first, x


def case_slices(x: torch.Tensor = torch.arange(40.0).reshape(4, 10)):
    x = x.to(DEVICE)
    top = x.topk(3)[0]
    found = (x < top[:, [-1]]).any(), (x[:, [4, 6, 8]] > 50).all(), (x[0, [1, 2, 3]] == 2).any()
    x[x < top[:, [-1]]] = -1.0
    return found, x


def case_gradients():
    x = torch.arange(8.0).reshape(2, 4).to(DEVICE).requires_grad_()
    limits = torch.arange(8.0).reshape(2, 4).to(DEVICE)
    y = x * 1
    y[y > limits[:, [2]]] = 0.0
    y.square().sum().backward()
    return x


def kept_where_it_is_written(x: torch.Tensor, y: torch.Tensor, kept: list):
    x, y = x.cuda(), y.cuda()
    part = x[:, [0, 1]]
    x.add_(1)
    mine = y[[0, 1]]
    mine.zero_()
    kept.append(y[[1]])
    x[:, [1, 2]] = x[:, [0, 1]]
    return part > 2


def kept_where_the_tensor_may_be_expanded(x: torch.Tensor):
    y = x.cuda()
    y[:, [1, 3]] = 0.5
    y[[-1]] = torch.ones(10, device=DEVICE)
    return y


def kept_where_the_range_may_be_empty(x: torch.Tensor, count: int):
    return x.cuda()[range(count)]


def kept_where_the_layout_may_show(x: torch.Tensor):
    return x.cuda()[:, [1, 3]] * 2, x.cuda()[:, [1, 3]].sum()
