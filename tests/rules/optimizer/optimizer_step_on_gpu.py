"""Optimizer states that are resumed on the device, and on the host."""

import torch
from torch import nn

PATH = "checkpoint.pt"
DEVICE = torch.device("cuda")


def known_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    checkpoint = torch.load(PATH, map_location="cuda")  # error: TPF608
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return optimizer


def with_other_things(model: nn.Module) -> tuple[torch.optim.Optimizer, torch.Tensor]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    state = torch.load(PATH, map_location=DEVICE, weights_only=True)  # error: TPF608
    optimizer.load_state_dict(state["optimizer"])
    return optimizer, state["average"]


def used_as_an_optimizer(model: nn.Module, opt, device: torch.device) -> None:
    opt.zero_grad()
    opt.step()
    model.to(device)
    opt.load_state_dict(torch.load(PATH, device))  # error: TPF608


def moved(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(torch.load(PATH))
    for state in optimizer.state.values():
        for k, v in state.items():
            if torch.is_tensor(v):
                state[k] = v.cuda()  # error: TPF608
    return optimizer


def given(model, optimizer, path: str) -> None:
    checkpoint = torch.load(path)
    optimizer.load_state_dict(checkpoint["optimizer"])
    for state in optimizer.state.values():
        for k, v in state.items():
            if isinstance(v, torch.Tensor):
                state[k] = v.cuda()  # error: TPF608


class Resumed:
    def __init__(self, net: nn.Module, device: torch.device):
        self.optimizer = torch.optim.NAdam(net.parameters())
        for state in self.optimizer.state.values():
            for key, value in state.items():
                if isinstance(value, torch.Tensor):
                    state[key] = value.to(device)  # error: TPF608


def on_the_host(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint = torch.load(PATH, map_location="cpu")
    optimizer.load_state_dict(checkpoint["optimizer"])
    return optimizer


def where_they_were(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(torch.load(PATH)["optimizer"])
    optimizer.load_state_dict(torch.load(PATH, map_location=lambda storage, _: storage)["optimizer"])
    optimizer.load_state_dict(torch.load(PATH, map_location={"cuda:0": "cuda:1"})["optimizer"])
    return optimizer


def fused(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    optimizer.load_state_dict(torch.load(PATH, map_location="cuda"))
    return optimizer


def without_counters(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer.load_state_dict(torch.load(PATH, map_location="cuda"))
    for state in optimizer.state.values():
        for k, v in state.items():
            state[k] = v.cuda()
    return optimizer


def steps_left_out(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters())
    for state in optimizer.state.values():
        for k, v in state.items():
            if torch.is_tensor(v) and k != "step":
                state[k] = v.cuda()
    return optimizer


def to_the_host(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters())
    for state in optimizer.state.values():
        for k, v in state.items():
            state[k] = v.cpu()
    return optimizer


def of_a_machine(machine) -> None:
    for state in machine.state.values():
        for k, v in state.items():
            state[k] = v.cuda()


def weights_only(model: nn.Module) -> None:
    checkpoint = torch.load(PATH, map_location="cuda")
    model.load_state_dict(checkpoint["model"])


def no_optimizer(states: dict[str, dict[str, torch.Tensor]], sampler) -> None:
    sampler.load_state_dict(torch.load(PATH, map_location="cuda"))
    for state in states.values():
        for k, v in state.items():
            state[k] = v.cuda()


def set_up() -> torch.device:
    torch.cuda.set_device(0)
    return torch.device("cuda")


def where_set_up_says(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint = torch.load(PATH, map_location=set_up())  # error: TPF608
    optimizer.load_state_dict(checkpoint["optimizer"])
    return optimizer


def module_that_clears_gradients(make, scheduler) -> None:
    # A module has `zero_grad`, too, and a scheduler has `step`.
    net = make()
    checkpoint = torch.load(PATH, map_location="cuda")
    net.load_state_dict(checkpoint["model"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    net.zero_grad(set_to_none=True)
    scheduler.step()
