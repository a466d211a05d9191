from collections import OrderedDict
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.ops import FrozenBatchNorm2d


def small(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, width, 3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, bias=False),
        nn.InstanceNorm2d(width),
        nn.ConvTranspose2d(
            width,
            width,
            3,  # the kernel
            bias=False,
        ),
        nn.SyncBatchNorm(width),
        nn.Conv3d(width, 8, 3, 1, 1, 1, 1, False),
        nn.BatchNorm3d(8),
    )


class Named(nn.Sequential):
    def __init__(self, width: int):
        super().__init__(
            nn.Conv1d(width, width, 1, bias=False),
            nn.BatchNorm1d(width),
        )


class Added(nn.Sequential):
    def __init__(self, width: int, norm: bool):
        super().__init__()
        self.add_module("conv", nn.Conv2d(3, width, 1, bias=False))
        self.add_module("norm", nn.BatchNorm2d(width))
        self.add_module("relu", nn.ReLU())
        self.add_module("last", nn.Conv2d(width, width, 1))
        if norm:
            self.add_module("last_norm", nn.BatchNorm2d(width))


class Flow(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, bias=False)
        self.second_norm = nn.BatchNorm2d(width, eps=1e-3)
        self.third = nn.Conv2d(width, width, 3, bias=False)
        self.third_norm = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, 64, bias=False)
        self.head_norm = nn.BatchNorm1d(64)
        self.layers = nn.Sequential(OrderedDict([
            ("conv", nn.Conv2d(width, width, 1, bias=False)),
            ("norm", nn.BatchNorm2d(width)),
        ]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.first_norm(self.first(x)))
        x = self.second(x)
        x = self.second_norm(x)
        y = self.third(x)
        z = F.relu(self.third_norm(y))
        x = self.layers(z).mean((2, 3))
        return self.head_norm(self.head(x))


def grown(widths: list[int], norm: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Conv2d(width, width, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        layers.append(nn.Conv2d(width, width, 1, bias=False))
        layers.append(nn.BatchNorm2d(width))
    return nn.Sequential(*layers)


def named(width: int) -> nn.Sequential:
    conv = nn.Conv2d(width, width, 3, bias=False)
    norm = nn.BatchNorm2d(width)
    return nn.Sequential(conv, norm)


# Look-alikes.


class KeepsTheBias(nn.Module):
    """GroupNorm and LayerNorm take the mean over several channels."""

    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3)
        self.norm = nn.GroupNorm(8, width)
        self.mix = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mix(self.norm(self.conv(x)).flatten(1))


class SomethingBetween(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3)
        self.norm = nn.BatchNorm2d(width)
        self.added = nn.Conv2d(width, width, 1)
        self.added_norm = nn.BatchNorm2d(width)
        self.layers = nn.Sequential(nn.Conv2d(width, width, 1), nn.ReLU(), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(F.relu(self.conv(x)))
        y = self.added(x)
        y = y + x
        return self.layers(self.added_norm(y))


class SecondReader(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3)
        self.norm = nn.BatchNorm2d(width)
        self.twice = nn.Conv2d(width, width, 3)
        self.twice_norm = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        z = self.norm(y)
        z = self.twice_norm(self.twice(z))
        return y + z + self.twice(z)


def frozen(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(width, width, 3), FrozenBatchNorm2d(width))


class LastAxis(nn.Module):
    """The linear layer works on the last axis of (batch, points, features), the norm on the points."""

    def __init__(self, points: int, width: int):
        super().__init__()
        self.linear = nn.Linear(3, width)
        self.norm = nn.BatchNorm1d(points)
        self.layers = nn.Sequential(nn.Linear(3, 32), nn.BatchNorm1d(128))
        self.scaled = nn.Sequential(nn.Linear(width, width), nn.InstanceNorm1d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scaled(self.norm(self.linear(x))) + self.layers(x)


class ByConfiguration(nn.Module):
    def __init__(self, width: int, norm: bool, norm_layer: type[nn.Module] = nn.BatchNorm2d, **options: bool):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3)
        self.norm = nn.BatchNorm2d(width) if norm else nn.Identity()
        self.other = nn.Conv2d(width, width, 3)
        self.other_norm = norm_layer(width)
        self.unsaid = nn.Conv2d(width, width, 3, bias=not norm)
        self.unsaid_norm = nn.BatchNorm2d(width)
        self.hidden = nn.Sequential(nn.Conv2d(width, width, 3, **options), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.other_norm(self.other(self.norm(self.conv(x))))
        return self.hidden(self.unsaid_norm(self.unsaid(x)))


class SometimesNormed(nn.Module):
    def __init__(self, width: int, norm: bool):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3)
        self.normed = norm
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        if self.normed:
            x = self.norm(x)
        return x


class TakenApart(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.sliced = nn.Sequential(nn.Conv2d(width, width, 3), nn.BatchNorm2d(width), nn.ReLU())
        self.walked = nn.Sequential(nn.Conv2d(width, width, 3), nn.BatchNorm2d(width))
        self.head = nn.Sequential(nn.Conv2d(width, width, 3), nn.BatchNorm2d(width))[0]

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        outputs = [self.sliced[:1](x), self.head(x)]
        for child in self.walked:
            x = child(x)
            outputs.append(x)
        return outputs


class NotInOrder(nn.Module):
    """They stand side by side in `__init__`, not in `forward`."""

    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(F.relu(self.norm(x)))


class AssignedTwice(nn.Module):
    def __init__(self, width: int, wide: bool):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3)
        if wide:
            self.conv = nn.Conv2d(width, width, 7)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))


class Shared(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3)
        self.norm = nn.BatchNorm2d(width)
        self.kept = [self.conv]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))


class OwnOrder(nn.Sequential):
    def __init__(self, width: int):
        super().__init__()
        self.add_module("conv", nn.Conv2d(width, width, 1))
        self.add_module("norm", nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(self.norm(x))


class ReadInTheNextTurn(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        z = y
        for _ in range(3):
            x = F.relu(y) + z
            y = self.conv(x)
            z = self.norm(y)
        return z


class OfAnother(nn.Module):
    """The convolution that runs is another object's."""

    def __init__(self, width: int, other: nn.Module):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3)
        self.norm = nn.BatchNorm2d(width)
        self.other = other

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        other = self.other
        return self.norm(other.conv(x)) + F.relu(self.conv(x))


def by_branch(width: int, norm: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    conv = nn.Conv2d(width, width, 3)
    if norm:
        layers += [conv, nn.BatchNorm2d(width)]
    else:
        layers += [conv]
    return nn.Sequential(*layers)


def walked(width: int) -> nn.ModuleList:
    layers = [nn.Conv2d(width, width, 3), nn.BatchNorm2d(width)]
    return nn.ModuleList(layers)


def without(width: int) -> nn.Sequential:
    plain = partial(nn.Conv2d, bias=False)
    return nn.Sequential(
        nn.Conv2d(width, width, 3, bias=False),
        nn.BatchNorm2d(width),
        plain(width, width, 3),
        nn.BatchNorm2d(width),
        nn.utils.parametrizations.weight_norm(nn.Conv2d(width, width, 3)),
        nn.BatchNorm2d(width),
    )


class Projector(nn.Module):
    """The biases of several linear layers cost something."""

    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width, bias=False),
            nn.BatchNorm1d(width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Short(nn.Module):
    """The biases of two do not."""

    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width, bias=False),
            nn.BatchNorm1d(width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Lists(nn.Module):
    """Lists that run side by side."""

    def __init__(self, widths: list[int]):
        super().__init__()
        last = 3
        self.convs = nn.ModuleList()
        self.norms = nn.ModuleList()
        for width in widths:
            self.convs.append(nn.Conv2d(last, width, 1, bias=False))
            self.norms.append(nn.BatchNorm2d(width))
            last = width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, conv in enumerate(self.convs):
            norm = self.norms[i]
            x = F.relu(norm(conv(x)))
        return x.max(2)[0]


class Zipped(nn.Module):
    def __init__(self, widths: list[int]):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(a, b, 1, bias=False) for a, b in zip(widths, widths[1:])])
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv, norm in zip(self.convs, self.norms):
            x = conv(x)
            x = norm(x).relu()
        return x


class Counted(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.convs = nn.ModuleList([
            nn.Conv2d(8, 8, 3, bias=False),
            nn.Conv2d(8, 16, 3, bias=False),
        ])
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(16)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(len(self.convs)):
            x = F.relu(self.norms[i](self.convs[i](x)))
        return x


class LastWithout(nn.Module):
    """The last layer has no norm behind it."""

    def __init__(self, depth: int):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(8, 8, 3) for _ in range(depth + 1)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, norm in enumerate(self.norms):
            x = F.relu(norm(self.convs[i](x)))
        return self.convs[-1](x)


class Sometimes(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(8, 8, 3) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, conv in enumerate(self.convs):
            x = conv(x)
            if i < len(self.convs) - 1:
                x = self.norms[i](x)
        return x


class Shifted(nn.Module):
    """Another norm than the one beside it, and a layer that runs twice."""

    def __init__(self, depth: int):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(8, 8, 3) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(depth + 1)])
        self.twice = nn.ModuleList([nn.Conv2d(8, 8, 3) for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, conv in enumerate(self.convs):
            x = self.norms[i + 1](conv(x))
            y = self.norms[i](self.twice[i](x))
            x = y + self.twice[i](y)
        return x


class Given(nn.Module):
    """Lists that other code sees, and norms over all channels."""

    def __init__(self, depth: int, build):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(8, 8, 3) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(depth)])
        self.others = nn.ModuleList([nn.Conv2d(8, 8, 3) for _ in range(depth)])
        self.groups = nn.ModuleList([nn.GroupNorm(2, 8) for _ in range(depth)])
        self.shown = build(self.convs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv, norm in zip(self.convs, self.norms):
            x = norm(conv(x))
        for conv, norm in zip(self.others, self.groups):
            x = norm(conv(x))
        return x
