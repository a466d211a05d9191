from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import cross_entropy as ce


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 100)
        self.loss = nn.CrossEntropyLoss(ignore_index=-1, label_smoothing=0.1)
        self.plain = nn.NLLLoss(reduction="sum")
        self.each = nn.CrossEntropyLoss(reduction="none")

    def forward(self, x: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor):
        logits = self.head(x)
        kept = labels != -100
        first = F.cross_entropy(logits.flatten(0, -2), labels.masked_fill(~kept, -100).flatten())
        active = mask.view(-1) == 1
        second = ce(logits.view(-1, 100)[active], labels.view(-1)[active])
        third = self.loss(logits.flatten(0, -2), labels.masked_fill(~kept, -1).flatten())
        positive = labels >= 0
        fourth = self.plain(
            input=logits.log_softmax(-1).flatten(0, -2), target=labels.masked_fill(~positive, -100).flatten()
        )
        fifth = F.nll_loss(logits[labels > 0], labels[labels > 0])
        return first + second + third + fourth + fifth


def library(logits: torch.Tensor, labels: torch.Tensor, pad: int):
    kept = labels != pad
    return F.cross_entropy(
        logits[kept],  # the rows that count
        labels[kept],
        ignore_index=pad,
    )


class Untyped(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 100)

    def forward(self, x, labels):
        logits = self.head(x)
        kept = labels != -100
        return F.cross_entropy(logits.flatten(0, -2), labels.masked_fill(~kept, -100).flatten())


@dataclass
class Graph:
    y: torch.Tensor
    train_mask: torch.Tensor
    train_index: torch.Tensor


def train_on_nodes(tagger: Tagger, graph: Graph, x: torch.Tensor):
    head = tagger.head.cuda()
    optimizer = torch.optim.SGD(head.parameters())
    for _ in range(100):
        logits = head(x.cuda())
        loss = F.cross_entropy(logits[graph.train_mask], graph.y[graph.train_mask])
        loss = loss + F.cross_entropy(logits[graph.train_index], graph.y[graph.train_index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# Look-alikes.


class Ignores(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 100)

    def forward(self, x: torch.Tensor, labels: torch.Tensor):
        return F.cross_entropy(self.head(x).flatten(0, -2), labels.flatten(), ignore_index=-100)


class Positions(nn.Module):
    """Rows by their numbers: nothing is counted."""

    def forward(self, logits: torch.Tensor, labels: torch.Tensor, rows: torch.LongTensor):
        order = labels.argsort()
        return F.cross_entropy(logits[order], labels[order]) + F.cross_entropy(logits[rows], labels[rows])


class Slices(nn.Module):
    def forward(self, logits: torch.Tensor, labels: torch.Tensor, n: int):
        return F.cross_entropy(logits[:-1], labels[:-1]) + F.cross_entropy(logits[n], labels[n])


class OneMaskOfTwo(nn.Module):
    """Only one of the two is indexed, or by another mask."""

    def forward(self, logits: torch.Tensor, labels: torch.Tensor):
        return F.cross_entropy(logits, labels) + F.nll_loss(logits[0], labels[1])


def on_host():
    logits, labels = torch.randn(100, 10), torch.randint(0, 10, (100,))
    kept = labels != 3
    return F.cross_entropy(logits[kept], labels[kept])


def not_torch(cross_entropy, logits, labels, mask):
    return cross_entropy(logits[mask], labels[mask])


class AnyIndex(nn.Module):
    """What `chosen` is, nobody says."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 100)

    def forward(self, x, labels, chosen):
        return F.cross_entropy(self.head(x)[chosen], labels[chosen])
