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
    return positions, grid


def case_cast():
    return torch.zeros(3).to(DEVICE, torch.float64), torch.ones(2, dtype=torch.int64).to(DEVICE)


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


def kept_where_the_gpu_may_be_none(args, gpu, other=None, third: int = 0):
    maybe = torch.zeros(2).cuda(gpu), torch.zeros(2).cuda(other), torch.zeros(2).cuda(third)
    return maybe, torch.zeros(2).cuda(args.gpu), torch.zeros(2).cuda(device=args.gpu)


def kept_where_bits_may_differ():
    random = torch.randn(3).to(DEVICE)
    steps = torch.arange(0.0, 1.0, 0.1).to(DEVICE)
    leaf = torch.zeros(3, requires_grad=True).to(DEVICE)
    full = torch.full((2,), 0.1).to(DEVICE, torch.float64)
    return random, steps, torch.linspace(0, 1, 7).to(DEVICE), leaf, full
