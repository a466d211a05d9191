import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def case_numbers():
    return [
        torch.tensor(0.1, device=DEVICE),
        torch.tensor(-3, device=DEVICE),
        torch.tensor(True, device=DEVICE),
        torch.tensor(1099511627776, device=DEVICE),
        torch.tensor(1e-300, device=DEVICE),
        torch.tensor(1 + 2j) * torch.tensor(2j, dtype=torch.complex64, device=DEVICE),
    ]


def case_dtypes():
    return [
        torch.tensor(0.1, dtype=torch.bfloat16, device=DEVICE),
        torch.tensor(7, device=DEVICE, dtype=torch.float64),
        torch.tensor(2.5, dtype=torch.int32, device=DEVICE),
        torch.tensor(-1e9, dtype=torch.float32, device=DEVICE),
    ]


def case_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        return torch.tensor(0.1, device=DEVICE), torch.tensor(1, device=DEVICE)
    finally:
        torch.set_default_dtype(torch.float32)


def case_leaf():
    weight = torch.tensor(0.5, device=DEVICE, requires_grad=True)
    (weight * torch.randn(4).to(DEVICE)).square().sum().backward()
    return weight


def case_moved():
    return torch.tensor(0.25).to(DEVICE), torch.tensor(3).to(DEVICE)


def case_on_the_current_gpu():
    return torch.tensor(0.25).cuda(), torch.tensor(3).cuda(None), torch.tensor(3).cuda(0)


def kept_where_the_gpu_may_be_none(args, gpu=None):
    return torch.tensor(0.25).cuda(gpu), torch.tensor(0.25).cuda(args.gpu), torch.tensor(0.25).cuda(device=gpu)


def kept_where_float16_may_overflow(x: torch.Tensor):
    half = torch.tensor(-1e9, dtype=torch.float16, device=DEVICE), torch.tensor(70000, dtype=x.dtype, device=DEVICE)
    return half, torch.tensor(1e9, device=DEVICE), torch.tensor(-1e9, dtype=x.dtype, device=DEVICE)


def kept_where_the_two_take_other_numbers():
    of_int64 = torch.tensor(9223372036854775808, device=DEVICE)
    unsigned = torch.tensor(0.0, dtype=torch.uint64, device=DEVICE), torch.tensor(-1, dtype=torch.uint64, device=DEVICE)
    small = torch.tensor(70000.0, dtype=torch.complex32, device=DEVICE)
    return of_int64, unsigned, small, torch.tensor(1j, device=DEVICE)


def kept_where_it_is_rounded_twice():
    x = torch.randn(3, dtype=torch.float64).to(DEVICE)
    return torch.tensor(0.1).to(DEVICE, torch.float64), torch.tensor(0.1).to(x)


def kept_where_the_dtype_is_unknown(number):
    return torch.tensor(number, device=DEVICE)


def case_like_another():
    x = torch.randn(3, dtype=torch.float64).to(DEVICE)
    total = torch.tensor(0.0, device=x.device)
    for row in x:
        total = total + row
    return total
