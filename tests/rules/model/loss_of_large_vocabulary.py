"""Losses of language models: of all scores at once, and others."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, body: nn.Module):
        super().__init__()
        self.body, self.head = body, nn.Linear(4096, 128256, bias=False)
        self.loss = nn.CrossEntropyLoss()
        self.classes = nn.Linear(4096, 1000)

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.body(ids))
        return F.cross_entropy(logits.view(-1, 128256), labels.view(-1))  # audit: TPF319

    def shifted(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.body(ids)).float()  # audit: TPF319
        return self.loss(logits[..., :-1, :].contiguous().flatten(0, 1), labels[:, 1:].flatten())

    def classify(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.classes(self.body(ids)), labels)

    def last(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(ids)[:, -1]).softmax(-1)


def of_a_parameter(hidden: torch.Tensor, head: nn.Linear, labels: torch.Tensor) -> torch.Tensor:
    logits = head(hidden).to(torch.float32)  # audit: TPF319
    return F.cross_entropy(logits.view(-1, 50304), labels.view(-1), ignore_index=-1)


def by_function(hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    logits = F.linear(hidden, weight)
    return F.cross_entropy(logits.reshape(-1, 32000), labels.reshape(-1))  # audit: TPF319


# Look-alikes


def in_chunks(hidden: torch.Tensor, head: nn.Linear, labels: torch.Tensor) -> torch.Tensor:
    options = nn.LinearCrossEntropyOptions()
    return F.linear_cross_entropy(hidden.flatten(0, 1), head.weight, labels.view(-1), options=options)


def of_unknown_size(hidden: torch.Tensor, head: nn.Linear, labels: torch.Tensor, words: int) -> torch.Tensor:
    return F.cross_entropy(head(hidden).view(-1, words), labels.view(-1))


def of_given_scores(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.view(-1, 50257), labels.view(-1))


def of_a_whole_model(model: nn.Module, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(ids).view(-1, 50257), labels.view(-1))


def of_pixels(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(nn.functional.conv2d(images, torch.ones(19, 3, 1, 1)), labels)


def of_few_classes(hidden: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    head = nn.Linear(32768, 10)
    return F.cross_entropy(head(hidden), labels)
