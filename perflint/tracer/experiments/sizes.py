"""Sizes that no tensor-core tile divides: padded widths, and padded vocabularies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perflint.tracer.events import ModuleCall
from perflint.tracer.experiments.base import Mode, Pair, Proposal, Run, difference
from perflint.tracer.experiments.layers import Layer, grouped, layers

TINY, LARGE, VOCABULARY = 32, 512, 8192
"""As in the rules: sizes too small to matter, so large that they matter alone, and those of vocabularies."""
MULTIPLE, VOCABULARY_MULTIPLE = 8, 64


class ChannelMultiples:
    """Widths of linear layers and convolutions filled up to multiples of 8."""

    name = "channel-multiples"
    codes = ("TPF351",)

    def propose(self, calls: Sequence[ModuleCall]) -> Iterator[Proposal]:
        """The layers with widths of the model's own that are not such multiples."""
        found = [each for each in layers(calls) if each.is_linear or (each.is_convolution and each["groups"] == 1)]
        taken, given = ({each[each.sizes[at]] for each in found} for at in (0, 1))
        handed_on = taken & given
        for each, equal in grouped(found):
            changed = {
                name: padded(each[name], MULTIPLE)
                for name in each.sizes
                if each[name] % MULTIPLE
                and each[name] < VOCABULARY
                and (each[name] in handed_on or each[name] >= LARGE)
                and min(each[size] for size in each.sizes) >= TINY
            }
            if changed:
                yield _proposal(self.name, self.codes, each, equal, changed, loss=False)


class VocabularyPadding:
    """The output of a language model's head filled up to a multiple of 64, with the loss where it trains."""

    name = "vocabulary-padding"
    codes = ("TPF352",)

    def propose(self, calls: Sequence[ModuleCall]) -> Iterator[Proposal]:
        """The linear layers with a vocabulary as their output that is not a multiple of 8."""
        for each, equal in grouped(each for each in layers(calls) if each.is_linear):
            size = each["out_features"]
            if size >= VOCABULARY and size % MULTIPLE:
                changed = {"out_features": padded(size, VOCABULARY_MULTIPLE)}
                yield _proposal(self.name, self.codes, each, equal, changed, loss=Mode.of(each.call).backward)


def padded(value: int, multiple: int) -> int:
    """The next multiple."""
    return -(-value // multiple) * multiple


def _proposal(
    name: str,
    codes: tuple[str, ...],
    each: Layer,
    equal: tuple[ModuleCall, ...],
    changed: dict[str, int],
    loss: bool,
) -> Proposal:
    change = ", ".join(f"{size} {new} instead of {each[size]}" for size, new in changed.items())
    note = "with cross_entropy behind it" if loss else ""

    def build() -> Pair:
        return _pair(each, changed, loss, note)

    return Proposal(name, codes, equal, each.text, change, each.work, build)


def _pair(each: Layer, changed: dict[str, int], loss: bool, note: str) -> Pair:
    before, after = each.build(), each.build(**changed)
    _copy_into(before, after)
    (given, *_), mode = each.inputs(), Mode.of(each.call)
    old, new = Run(before, mode, [given]), Run(after, mode, [_wider(given, each, changed)])
    bare = (old.forward, new.forward)
    if loss:
        old, new = (Run(_with_loss(run.module, each), mode, run.arguments) for run in (old, new))
    return Pair(old, new, lambda: difference(bare[0](), bare[1]()), note)


def _copy_into(before: Any, after: Any) -> None:
    """Give a larger layer the weights of a smaller one, and zeros beyond them."""
    import torch

    with torch.no_grad():
        for name, old in before.named_parameters():
            new = after.get_parameter(name).zero_()
            new[tuple(slice(size) for size in old.shape)].copy_(old)


def _wider(given: Any, each: Layer, changed: dict[str, int]) -> Any:
    """The input with as many channels as the padded layer takes; what is added meets weights of zero."""
    import torch

    size = each.sizes[0]
    if size not in changed:
        return given
    axis = -1 if each.is_linear else given.dim() - _spatial(each) - 1
    shape = list(given.shape)
    shape[axis] = changed[size]
    wider = torch.zeros(shape, dtype=given.dtype, device=given.device)
    if each.call.inputs[0].layout in ("channels_last", "channels_last_3d"):
        wider = wider.contiguous(memory_format=getattr(torch, each.call.inputs[0].layout))
    wider.narrow(axis, 0, given.shape[axis]).copy_(given.detach())
    return wider.requires_grad_(given.requires_grad)


def _spatial(each: Layer) -> int:
    return int(each.kind[-2])


def _with_loss(head: Any, each: Layer) -> Any:
    """A head with a loss against tokens of the vocabulary as it was."""
    import torch

    output = each.call.outputs[0]
    targets = torch.randint(0, each["out_features"], output.shape[:-1], device=output.device).flatten()

    class Loss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = head

        def forward(self, given: torch.Tensor) -> torch.Tensor:
            logits = self.head(given).flatten(0, -2)
            return torch.nn.functional.cross_entropy(logits, targets)

    return Loss()
