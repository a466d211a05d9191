import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def case_one_element():
    return [
        torch.tensor([0.1], device=DEVICE),
        torch.tensor([-3], device=DEVICE),
        torch.tensor([[2.5]], dtype=torch.float64, device=DEVICE),
        torch.as_tensor([7], dtype=torch.int32, device=DEVICE),
        torch.tensor((1099511627776,), device=DEVICE),
    ]


def case_repeated():
    x = torch.zeros(3, 2, device=DEVICE)
    return [
        torch.tensor([0, 0, 0], device=DEVICE),
        torch.tensor([1] * 4, device=DEVICE),
        torch.tensor([0.25] * x.shape[0], dtype=torch.float32, device=DEVICE),
        torch.tensor([[1.0, 1.0], [1.0, 1.0]], device=DEVICE),
        torch.tensor([5] * len(x[:0]), dtype=torch.long, device=DEVICE),
    ]


def case_leaf():
    weight = torch.tensor([0.5], device=DEVICE, requires_grad=True)
    (weight * torch.randn(4).to(DEVICE)).square().sum().backward()
    return weight


def case_moved():
    return torch.tensor([0.25, 0.25]).to(DEVICE), torch.tensor([3]).cuda()


def case_new(x: torch.Tensor = torch.ones(2, dtype=torch.float64)):
    x = x.to(DEVICE)
    return x.new_tensor([1]), x.long().new_tensor([-1, -1]), x.new_tensor([2.5], dtype=torch.float16)


def kept_where_the_length_may_be_zero(n: int):
    return torch.tensor([1] * n, device=DEVICE), torch.tensor([1] * n, device=DEVICE)


def kept_where_numbers_differ(noise):
    mixed = torch.tensor([0, 0.0], device=DEVICE), torch.tensor([1, True], device=DEVICE)
    return mixed, torch.tensor([noise], device=DEVICE), torch.tensor([[1], [1, 1]], device=DEVICE)


def case_counted(x: torch.Tensor = torch.ones(3, 2)):
    x = x.to(DEVICE)
    return [
        torch.tensor(range(len(x)), dtype=torch.long, device=DEVICE),
        torch.tensor(list(range(x.shape[1])), dtype=torch.int32, device=DEVICE),
        torch.tensor(range(x[:0].size(0)), dtype=torch.int64, device=DEVICE),
        torch.tensor(range(4), device=DEVICE),
        torch.tensor(range(len(x)), dtype=torch.long).to(DEVICE),
        torch.tensor(range(5)).to(x.device),
    ]


def kept_where_a_length_may_be_negative_or_none(x: torch.Tensor, n: int):
    first = torch.tensor(range(n), dtype=torch.long, device=DEVICE), torch.tensor(range(len(x)), device=DEVICE)
    return first, torch.tensor(range(4), dtype=torch.float16, device=DEVICE), torch.tensor(range(1, 4), device=DEVICE)
