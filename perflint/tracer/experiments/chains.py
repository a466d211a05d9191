"""channels_last for convolutions and what runs right behind them, where the whole model cannot be tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perflint.tracer.events import ModuleCall
from perflint.tracer.experiments.base import Mode, Pair, Proposal, Run, difference
from perflint.tracer.experiments.layers import Layer, followers, identity, layer

LEAST = 2
"""Convolutions of a chain: around a single one, changing the layout costs what it saves."""
_LAYOUT = "channels_last"


class ChannelsLastChains:
    """Layers that pass images to each other."""

    name = "channels-last"
    codes: tuple[str, ...] = ()

    def propose(self, calls: Sequence[ModuleCall]) -> Iterator[Proposal]:
        """The chains of layers on contiguous images with two convolutions or more."""
        groups: dict[object, list[list[Layer]]] = {}
        for chain in _chains(calls):
            if sum(each.kind == "Conv2d" for each in chain) >= LEAST:
                groups.setdefault(tuple(identity(each.call) for each in chain), []).append(chain)
        for group in groups.values():
            yield self._proposal(group[0], tuple(chain[0].call for chain in group))

    def _proposal(self, chain: list[Layer], equal: tuple[ModuleCall, ...]) -> Proposal:
        last = chain[-1].call.name

        def build() -> Pair:
            return _pair(chain)

        text = f"{chain[0].text} to {last}, {len(chain)} layers"
        return Proposal(self.name, self.codes, equal, text, _LAYOUT, sum(each.work for each in chain), build)


def _chains(calls: Sequence[ModuleCall]) -> Iterator[list[Layer]]:
    """Layers of which each takes what the one before put out, as long as possible."""
    behind: dict[int, ModuleCall] = {}
    for first, second in followers(calls):
        # Blocks take what their first layer takes.
        if _fits(first) and _fits(second):
            behind.setdefault(id(first), second)
    inside = set(map(id, behind.values()))
    for call in calls:
        if not _fits(call) or id(call) in inside:
            continue
        chain: list[Layer] = []
        at: ModuleCall | None = call
        while at is not None and _fits(at) and (each := layer(at)) is not None:
            chain.append(each)
            at = behind.get(id(at))
        yield chain


def _fits(call: ModuleCall) -> bool:
    """True if a call is of a layer on contiguous images that keeps them images."""
    each = layer(call)
    if each is None or each.kind not in _KINDS:
        return False
    images = (*call.inputs[:1], *call.outputs[:1])
    return all(len(facts.shape) == 4 and facts.layout == "contiguous" for facts in images)


_KINDS = frozenset({"Conv2d", "BatchNorm2d", "ReLU", "ReLU6", "SiLU", "GELU", "Hardswish", "MaxPool2d", "AvgPool2d"})


def _pair(chain: list[Layer]) -> Pair:
    import copy

    import torch

    before: Any = torch.nn.Sequential(*(each.build() for each in chain))
    after = copy.deepcopy(before).to(memory_format=torch.channels_last)
    (given, *_), mode = chain[0].inputs(), Mode.of(chain[-1].call)
    other = given.detach().contiguous(memory_format=torch.channels_last).requires_grad_(given.requires_grad)
    old, new = Run(before, mode, [given]), Run(after, mode, [other])
    return Pair(old, new, lambda: difference(old.forward(), new.forward()), "without the change of layout around it")
