import contextlib
import functools

import torch
import torch as th
import torch.cuda.amp as camp
from torch.cuda.amp import autocast, GradScaler
from torch.cuda.amp import custom_bwd, custom_fwd
from torch.cuda import amp
from torch.cpu.amp import autocast as cpu_autocast

try:
    from torch.amp import GradScaler as AnyScaler
except ImportError:
    from torch.cuda.amp import GradScaler as AnyScaler


def train_with_imported_names(model, batches, optimizer, use_amp):
    scaler = GradScaler(enabled=use_amp)  # error: TPF902
    for batch in batches:
        with autocast(use_amp):  # audit: TPF902
            loss = model(batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


@autocast()  # audit: TPF902
def forward(model, batch):
    return model(batch)


def train_with_full_names(model, batches, optimizer, use_amp):
    scaler = torch.cuda.amp.GradScaler(1024.0, growth_interval=100, enabled=use_amp)  # audit: TPF902
    for batch in batches:
        with torch.cuda.amp.autocast(use_amp, torch.bfloat16):  # audit: TPF902
            loss = model(batch)
        with th.cuda.amp.autocast(dtype=torch.bfloat16, cache_enabled=False):  # audit: TPF902
            loss = loss + model(batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def keep_the_layout(model, batch, use_amp):
    with torch.cuda.amp.autocast(  # audit: TPF902
        use_amp,  # the first parameter is `enabled`
        dtype=torch.float16,
    ):
        return model(batch)


def through_the_package(model, batch):
    with amp.autocast(enabled=False):  # audit: TPF902
        first = model(batch)
    with camp.autocast():  # audit: TPF902
        return first + model(batch)


def on_the_host(model, batch):
    with cpu_autocast(True):  # audit: TPF902
        return model(batch)


class Scale(torch.autograd.Function):
    @staticmethod
    @custom_fwd  # audit: TPF902
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @custom_bwd  # audit: TPF902
    def backward(ctx, grad):
        return grad * 2


class Cast(torch.autograd.Function):
    @staticmethod
    @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)  # audit: TPF902
    def forward(ctx, x):
        return x * 2


def typed(scaler: torch.cuda.amp.GradScaler) -> bool:  # audit: TPF902
    return isinstance(scaler, torch.cuda.amp.GradScaler)  # audit: TPF902


def hidden_arguments(*arguments):
    return torch.cuda.amp.autocast(*arguments)  # audit: TPF902


def hidden_arguments_of_an_import(model, batch, arguments):
    from torch.cuda.amp import autocast as mixed

    with mixed(*arguments):  # audit: TPF902
        first = model(batch)
    with mixed(True):  # audit: TPF902
        return first + model(batch)


def handed_on():
    return functools.partial(torch.cuda.amp.autocast, enabled=False)  # audit: TPF902


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
        context = torch.cuda.amp.autocast()  # audit: TPF902
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
