import contextlib
import functools

import torch
import torch as th
import torch.amp as camp
from torch.amp import autocast, GradScaler
from torch.amp import custom_bwd, custom_fwd
from torch import amp
from torch.amp import autocast as cpu_autocast

try:
    from torch.amp import GradScaler as AnyScaler
except ImportError:
    from torch.cuda.amp import GradScaler as AnyScaler


def train_with_imported_names(model, batches, optimizer, use_amp):
    scaler = GradScaler("cuda", enabled=use_amp)
    for batch in batches:
        with autocast("cuda", enabled=use_amp, dtype=torch.float16, cache_enabled=True):
            loss = model(batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


@autocast("cuda", dtype=torch.float16, cache_enabled=True)
def forward(model, batch):
    return model(batch)


def train_with_full_names(model, batches, optimizer, use_amp):
    scaler = torch.amp.GradScaler("cuda", 1024.0, growth_interval=100, enabled=use_amp)
    for batch in batches:
        with torch.amp.autocast(
            "cuda", enabled=use_amp, dtype=torch.bfloat16, cache_enabled=True
        ):
            loss = model(batch)
        with th.amp.autocast("cuda", dtype=torch.bfloat16, cache_enabled=False):
            loss = loss + model(batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def keep_the_layout(model, batch, use_amp):
    with torch.amp.autocast(
        "cuda",
        enabled=use_amp,  # the first parameter is `enabled`
        dtype=torch.float16,
        cache_enabled=True,
    ):
        return model(batch)


def through_the_package(model, batch):
    with amp.autocast("cuda", enabled=False):
        first = model(batch)
    with camp.autocast("cuda", dtype=torch.float16, cache_enabled=True):
        return first + model(batch)


def on_the_host(model, batch):
    with cpu_autocast("cpu", enabled=True, dtype=torch.bfloat16, cache_enabled=True):
        return model(batch)


class Scale(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        return grad * 2


class Cast(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(cast_inputs=torch.float32, device_type="cuda")
    def forward(ctx, x):
        return x * 2


def typed(scaler: torch.amp.GradScaler) -> bool:
    return isinstance(scaler, torch.amp.GradScaler)


def hidden_arguments(*arguments):
    return torch.cuda.amp.autocast(*arguments)


def hidden_arguments_of_an_import(model, batch, arguments):
    from torch.cuda.amp import autocast as mixed

    with mixed(*arguments):
        first = model(batch)
    with torch.amp.autocast(
        "cuda", enabled=True, dtype=torch.float16, cache_enabled=True
    ):
        return first + model(batch)


def handed_on():
    return functools.partial(torch.cuda.amp.autocast, enabled=False)


def for_several_versions(enabled):
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda", enabled=enabled)
    return torch.cuda.amp.GradScaler(enabled=enabled)


def by_version(version, enabled):
    if version < (2, 4):
        return torch.cuda.amp.GradScaler(enabled=enabled)
    else:
        return torch.GradScaler("cuda", enabled=enabled)


if for_several_versions is None:
    forward = functools.partial(torch.amp.custom_fwd, device_type="cuda")
else:
    forward = torch.cuda.amp.custom_fwd


def device_by_device(device):
    if device == "cpu":
        context = torch.amp.autocast("cpu")
    else:
        context = torch.amp.autocast("cuda", dtype=torch.float16, cache_enabled=True)
    return context


# Look-alikes.


def todays_names(model, batch, use_amp):
    scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
    with torch.amp.autocast("cuda", enabled=use_amp):
        return scaler.scale(model(batch))


def the_short_name(model, batch):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return model(batch)


def an_import_for_several_versions():
    return AnyScaler()


class Precision:
    def autocast(self):
        return contextlib.nullcontext()


def a_method_of_the_same_name(precision: Precision, model, batch):
    with precision.autocast():
        return model(batch)


def a_parameter_of_the_same_name(model, batch, cuda):
    with cuda.amp.autocast():
        return model(batch)


def another_name_of_the_package():
    return torch.cuda.amp.common.amp_definitely_not_available()
