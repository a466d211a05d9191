import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def leaf(*shape: int):
    count = torch.Size(shape).numel()
    return (torch.arange(float(count), device=DEVICE) / 7).reshape(shape).requires_grad_()


def case_joined():
    x: torch.Tensor = leaf(4, 3, 5)
    token = torch.zeros(1, 1, 5, device=DEVICE, requires_grad=True)
    both = torch.cat([token.repeat(x.shape[0], 1, 1), x], dim=1)
    both.square().sum().backward()
    return both, x, token


def case_added():
    x = leaf(4, 3, 5)
    rows = torch.ones(3, 5, device=DEVICE, requires_grad=True)
    table = rows.unsqueeze(0).repeat((4, 1, 1))
    total = x * table - rows.repeat(4, 1, 1)
    (total * total).sum().backward()
    return total, x, rows


def case_spread():
    x: torch.Tensor = leaf(4, 3, 5)
    mean = x.mean(dim=-1, keepdim=True).repeat(1, 1, 5)
    centred = x - mean
    row = torch.ones(4, 5, device=DEVICE, requires_grad=True)
    columns = row.unsqueeze(1).tile(1, 6, 1) / 3
    (centred.sum() + columns.square().sum()).backward()
    return centred, columns, x, row


def case_masked():
    x = leaf(2, 4, 3, 3)
    mask = torch.tensor([[1, 0, 1], [1, 1, 0]], device=DEVICE)
    heads = mask[:, None, None, :].repeat(1, 4, 3, 1)
    filled = x.masked_fill(heads == 0, -1.0)
    filled.square().sum().backward()
    return filled, x


def case_gathered():
    x = leaf(2, 4, 3)
    index = torch.tensor([[3, 0], [1, 1]], device=DEVICE)
    best = torch.gather(x, 1, index.unsqueeze(-1).repeat(1, 1, 3))
    rows = torch.arange(2, device=DEVICE).unsqueeze(-1).repeat(1, 2)
    picked = x[rows, index]
    (best.square().sum() + picked.sum()).backward()
    return best, picked, x


def case_of_numbers():
    x = leaf(4)
    rate = torch.tensor(3.0, device=DEVICE).repeat(4)
    eye = torch.eye(3, device=DEVICE).repeat(*(2, 4), 1, 1) * 2
    return x * rate, eye


def kept_where_it_is_written():
    x: torch.Tensor = leaf(3, 5)
    first = x.detach()[None].repeat(4, 1, 1)
    first[0] = 1
    second = x[None].repeat(4, 1, 1).view(12, 5) + 1
    return first, second, x.repeat(2, 1) + 1
