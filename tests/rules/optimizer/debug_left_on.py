"""Debugging that stays on, and debugging that is asked for."""

import argparse

import torch
from torch import autograd
from torch.autograd import gradcheck, set_detect_anomaly
from torch.profiler import profile, schedule
from torch.utils.data import DataLoader

torch.autograd.set_detect_anomaly(True)  # error: TPF606


def main(model: torch.nn.Module, loader: DataLoader) -> None:
    set_detect_anomaly(mode=True)  # error: TPF606
    for x in loader:
        with autograd.detect_anomaly():  # error: TPF606
            model(x).sum().backward()


class Step(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gradcheck(torch.sin, (x,))  # audit: TPF606
        return x.sin()


def profiled(model: torch.nn.Module, loader: DataLoader) -> None:
    with torch.autograd.profiler.emit_nvtx():  # audit: TPF606
        for x in loader:
            model(x).sum().backward()


def recorded(model: torch.nn.Module, loader: DataLoader) -> None:
    with profile(record_shapes=True, with_stack=True) as recording:  # audit: TPF606
        for x in loader:
            model(x).sum().backward()
    recording.export_chrome_trace("trace.json")
    with torch.autograd.profiler.profile(use_cuda=True), torch.enable_grad():  # audit: TPF606
        for x in loader:
            model(x).sum().backward()


def recorded_for_a_while(model: torch.nn.Module, loader: DataLoader, on: bool) -> None:
    with profile(schedule=schedule(wait=1, warmup=1, active=3)) as recording:
        for x in loader:
            model(x).sum().backward()
            recording.step()
    with profile(with_stack=True):
        for step, x in enumerate(loader):
            model(x).sum().backward()
            if step == 10:
                break
    with torch.autograd.profiler.profile(enabled=on):
        for x in loader:
            model(x).sum().backward()
    with profile():
        model(x).sum().backward()


if __name__ == "__main__":
    autograd.set_detect_anomaly(True)  # error: TPF606


def asked_for(arguments: argparse.Namespace) -> None:
    if arguments.debug:
        torch.autograd.set_detect_anomaly(True)


def passed_on(arguments: argparse.Namespace, on: bool = True) -> None:
    torch.autograd.set_detect_anomaly(arguments.detect_anomaly)
    torch.autograd.set_detect_anomaly(on)
    with torch.autograd.profiler.emit_nvtx(enabled=arguments.profile):
        pass


def off() -> None:
    torch.autograd.set_detect_anomaly(False)


def only_stacks(model: torch.nn.Module, x: torch.Tensor) -> None:
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    with torch.autograd.detect_anomaly(check_nan=False):
        model(x).sum().backward()


def after_a_question(debug: bool) -> None:
    if not debug:
        return
    torch.autograd.set_detect_anomaly(True)


def when_it_failed(model: torch.nn.Module, x: torch.Tensor) -> None:
    try:
        model(x).sum().backward()
    except RuntimeError:
        with torch.autograd.detect_anomaly():
            model(x).sum().backward()


def test_gradients() -> None:
    assert gradcheck(torch.sin, (torch.randn(3, dtype=torch.double, requires_grad=True),))


def enable_debug_mode() -> None:
    torch.autograd.set_detect_anomaly(True)
