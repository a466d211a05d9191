"""Checkpoints and the memory that they are read to."""

import torch
from safetensors.torch import load_file
from torch import nn


def at_once(model: nn.Module, path: str):
    model = model.cuda()
    model.load_state_dict(torch.load(path, map_location="cuda"))  # audit: TPF964
    return model


class Restorer:
    def __init__(self, model: nn.Module):
        self.model = model.to("cuda")

    def restore(self, path: str) -> int:
        state = torch.load(path, map_location=torch.device("cuda", 0), weights_only=True)  # audit: TPF964
        self.model.load_state_dict(state["model"])
        return state["step"]


def from_options(model: nn.Module, path: str):
    options = {"map_location": "cuda:0", "weights_only": True}
    model.load_state_dict(torch.load(path, **options))  # audit: TPF964


def to_the_device_of_the_model(model: nn.Module, path: str, device="cuda"):
    model.to(device)
    state = torch.load(path, map_location=device)  # audit: TPF964
    model.load_state_dict(state["model"])


def of_safetensors(model: nn.Module, path: str):
    model.cuda()
    model.load_state_dict(load_file(path, device="cuda"))  # audit: TPF964


# Look-alikes


def of_safetensors_through_the_cpu(model: nn.Module, path: str):
    model.cuda().load_state_dict(load_file(path))


def through_the_cpu(model: nn.Module, path: str):
    model.cuda().load_state_dict(torch.load(path, map_location="cpu", mmap=True))


def where_it_was(model: nn.Module, path: str):
    model.load_state_dict(torch.load(path))


def as_the_user_says(model: nn.Module, path: str, device: torch.device):
    model.load_state_dict(torch.load(path, map_location=device))


def a_tensor(path: str) -> torch.Tensor:
    return torch.load(path, map_location="cuda")


def of_another_checkpoint(model: nn.Module, state: dict[str, torch.Tensor], path: str):
    table = torch.load(path, map_location="cuda")
    model.load_state_dict(state)
    return table
