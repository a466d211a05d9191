import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def case_filled():
    return [
        torch.zeros(2, 3).to(DEVICE),
        torch.ones((4,), dtype=torch.float16).to(DEVICE),
        torch.full((2, 2), 0.1).to(device=DEVICE),
        torch.full((3,), 7).to(DEVICE),
        torch.eye(3).to(DEVICE),
    ]


def case_integers():
    return torch.arange(5).to(DEVICE), torch.arange(2, 11, 3, dtype=torch.int32).to(DEVICE)


def case_reshaped():
    positions = torch.arange(6).unsqueeze(0).to(DEVICE)
    grid = torch.zeros(6).view(2, 3).to(DEVICE)
    return positions, grid + 1, grid[0] * 2


def case_cast():
    return torch.zeros(3).to(DEVICE, torch.float64), torch.ones(2, dtype=torch.int64).to(DEVICE)


def case_cast_afterwards():
    x = torch.randn(3, dtype=torch.float64).to(DEVICE)
    again = torch.ones(3).type_as(x).to(x.device)
    half, cast = torch.zeros(3).to(DEVICE).to(torch.float16), torch.zeros(3).to(x.device).to(x.dtype)
    return again, half, cast, torch.full((3,), 0.1).to(DEVICE).to(torch.float64)


def case_where_another_is():
    x = torch.randn(2, 5).to(DEVICE)
    mask = torch.ones(5).to(x.device)
    return x * mask + torch.zeros(2, 5).to(x)


def case_gradients():
    weight = torch.nn.Parameter(torch.randn(4).to(DEVICE))
    (weight + torch.arange(4).to(DEVICE)).square().sum().backward()
    return weight


def case_on_the_current_gpu():
    return torch.zeros(2).cuda(), torch.ones(3).cuda(None), torch.eye(2).cuda(device=None)


def case_on_a_gpu_by_its_number():
    gpu: int = torch.cuda.current_device()
    return torch.zeros(2).cuda(0), torch.ones(3).cuda("cuda:0"), torch.eye(2).cuda(gpu)


def case_expanded():
    flat, whole = torch.ones(2).expand(3, 2).reshape(-1).to(DEVICE), torch.ones(2).expand(3, 2).contiguous().to(DEVICE)
    return flat + 1, whole + 1


@torch.no_grad()
def row(count):
    return torch.zeros(count).unsqueeze(0).to(DEVICE)


def kept_where_a_view_may_be_written_to():
    """Autograd allows no write to a view that was made without gradients, nor `detach_`."""
    weight = torch.ones(3, device=DEVICE, requires_grad=True)
    with torch.no_grad():
        grid = torch.zeros(6).view(2, 3).to(DEVICE)
    grid += weight
    detached = torch.zeros(6).reshape(2, 3).to(DEVICE)
    detached.detach_()
    first = row(3)
    first += weight
    return grid, detached, first


def case_counted_views():
    rows = torch.arange(6).view(2, 3).to(DEVICE)
    rows += 1
    flags = torch.ones(4, dtype=torch.bool).view(2, 2).to(DEVICE)
    flags[0] = False
    return rows, flags


def case_numbers():
    wide = torch.full((2,), -1e9, dtype=torch.float32).to(DEVICE), torch.full((2,), float("-inf")).to(DEVICE)
    return wide, torch.full((2,), 65504, dtype=torch.float16).to(DEVICE), torch.full((2,), 2**40).to(DEVICE)


def kept_where_float16_may_overflow(x: torch.Tensor, number: float):
    some = torch.full((2,), number).to(DEVICE), torch.full((2,), -1e9).to(DEVICE)
    return some, torch.full((2,), -1e9, dtype=x.dtype).to(DEVICE), torch.full_like(torch.ones(3), 1e5).to(DEVICE)


def kept_where_each_element_gets_memory():
    rows = torch.arange(4).unsqueeze(0).expand(3, 4).to(DEVICE)
    return rows, torch.ones(1, 3).expand(2, 3).t().to("cuda"), torch.zeros(3, 1).expand(3, 2).cuda()


def case_dtypes_of_factories():
    exact = torch.arange(4, dtype=torch.float32).to(DEVICE), torch.arange(4, dtype=torch.uint8).to(DEVICE)
    return exact, torch.eye(2).to(DEVICE, torch.float16), torch.eye(2).to(DEVICE, dtype=torch.bool)


def kept_where_the_dtype_may_be_missing(x: torch.Tensor, count: int):
    indices = torch.tril_indices(3, 3).to(x), torch.triu_indices(3, 3).to(DEVICE, torch.bool)
    return indices, torch.eye(3).to(x), torch.eye(3).to(DEVICE, torch.uint16)


def kept_where_the_host_may_round_otherwise(x: torch.Tensor, count: int):
    steps = torch.arange(count, dtype=torch.float16).to(DEVICE), torch.arange(count, dtype=torch.float32).to(DEVICE)
    return steps, torch.arange(4, dtype=x.dtype).to(DEVICE), torch.full((2,), 300.7).byte().to(DEVICE)


class Places:
    def __init__(self) -> None:
        self.device = torch.device("cpu")

    def width(self) -> int:
        self.device = DEVICE
        return 2

    def again(self) -> torch.device:
        return self.device


def case_order():
    places = Places()
    return torch.zeros(places.width()).to(places.again())


def kept_where_the_order_counts():
    places = Places()
    late = torch.zeros(4).view(places.width(), 2).to(places.device)
    return late, torch.zeros(4).view(places.width(), 2).to(places.again()), torch.zeros(4).view(n := 2, n).to((d := DEVICE))


def kept_where_the_gpu_may_be_none(args, gpu, other=None, third: int = 0):
    maybe = torch.zeros(2).cuda(gpu), torch.zeros(2).cuda(other), torch.zeros(2).cuda(third)
    return maybe, torch.zeros(2).cuda(args.gpu), torch.zeros(2).cuda(device=args.gpu)


def kept_where_bits_may_differ():
    random = torch.randn(3).to(DEVICE)
    steps = torch.arange(0.0, 1.0, 0.1).to(DEVICE)
    leaf = torch.zeros(3, requires_grad=True).to(DEVICE)
    full = torch.full((2,), 0.1).to(DEVICE, torch.float64)
    return random, steps, torch.linspace(0, 1, 7).to(DEVICE), leaf, full
