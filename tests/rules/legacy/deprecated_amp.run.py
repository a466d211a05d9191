import torch
import torch.cuda.amp as camp
from torch import nn
from torch.cpu.amp import autocast as host_autocast
from torch.cuda.amp import custom_bwd, custom_fwd


def model():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def train(layers, scaler):
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    for _ in range(3):
        loss = layers(torch.randn(4, 6)).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return layers, optimizer


def case_host_autocast():
    layers = model()
    with host_autocast():
        out = layers(torch.randn(4, 6))
    out.float().sum().backward()
    return layers, out, torch.is_autocast_enabled("cpu")


def case_host_autocast_with_arguments():
    layers = model()
    with torch.cpu.amp.autocast(True, torch.bfloat16, False):
        out = layers(torch.randn(4, 6))
        state = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()
    return layers, out, state


def state(device):
    return torch.is_autocast_enabled(device), torch.get_autocast_dtype(device), torch.is_autocast_cache_enabled()


def case_inside_another_format():
    layers = model()
    with torch.autocast("cpu", dtype=torch.float16), torch.autocast("cuda", dtype=torch.bfloat16):
        with host_autocast():
            out = layers(torch.randn(4, 6))
        with torch.cuda.amp.autocast(), torch.cpu.amp.autocast(enabled=True):
            return out, state("cuda"), state("cpu")


def case_inside_one_without_cache():
    with torch.autocast("cuda", cache_enabled=False):
        with torch.cuda.amp.autocast(dtype=torch.bfloat16):
            inside = state("cuda")
        with camp.autocast(enabled=len(inside) > 3):
            return inside, state("cuda")


def case_beside_another_default():
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        with torch.cuda.amp.autocast():
            return state("cuda")
    finally:
        torch.set_autocast_dtype("cuda", torch.float16)


def case_autocast_off():
    with torch.cuda.amp.autocast(False, torch.bfloat16):
        return model()(torch.randn(4, 6)), torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")


def case_autocast_of_the_device():
    with torch.cuda.amp.autocast(dtype=torch.bfloat16, cache_enabled=False):
        return torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"), torch.is_autocast_cache_enabled()


def case_scaler_off():
    return train(model(), camp.GradScaler(enabled=False))


def case_scaler_state():
    scaler = torch.cuda.amp.GradScaler(1024.0, 2.0, 0.25, growth_interval=7)
    return scaler.state_dict(), scaler.is_enabled(), scaler.get_scale()


def case_host_scaler():
    return train(model(), torch.cpu.amp.GradScaler(init_scale=4.0))


class Double(torch.autograd.Function):
    @staticmethod
    @custom_fwd
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    @custom_bwd
    def backward(ctx, grad):
        return 2 * grad


def doubled(x):
    return Double.apply(x)


def case_custom_function():
    with camp.autocast(enabled=False):
        x = torch.randn(5, requires_grad=True)
        doubled(x).sum().backward()
    return x


def kept_where_arguments_are_hidden(arguments, named):
    with torch.cuda.amp.autocast(*arguments), torch.cuda.amp.autocast(**named):
        return model()(torch.randn(4, 6))
