import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import one_hot


class Encode(nn.Module):
    def forward(self, labels: torch.Tensor):
        first = F.one_hot(labels)  # error: TPF115
        second = one_hot(labels, -1)  # error: TPF115
        third = torch.nn.functional.one_hot(labels, num_classes=-1)  # error: TPF115
        return first, second, third


# Look-alikes.


class Sized(nn.Module):
    def __init__(self, classes: int):
        super().__init__()
        self.classes = classes

    def forward(self, labels: torch.Tensor):
        return F.one_hot(labels, 10), one_hot(labels, num_classes=self.classes)


class Embedded(nn.Module):
    def forward(self, labels: torch.Tensor):
        return torch.eye(10, device=labels.device)[labels]


def on_host():
    return F.one_hot(torch.arange(10))


def encode(labels):
    return [[int(i == label) for i in range(10)] for label in labels]


class Encoder:
    def one_hot(self, labels):
        return labels


def a_method_of_the_same_name(encoder: Encoder, labels: torch.Tensor):
    return encoder.one_hot(labels)
