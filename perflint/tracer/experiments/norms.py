"""Layers right before a norm: biases that it takes away again, and norms that fit into the layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perflint.tracer.events import ModuleCall
from perflint.tracer.experiments.base import Mode, Pair, Proposal, Run, difference
from perflint.tracer.experiments.layers import Layer, followers, identity, layer


class BiasBeforeNorm:
    """A layer without the bias that the norm behind it subtracts."""

    name = "bias-before-norm"
    codes = ("TPF301",)

    def propose(self, calls: Sequence[ModuleCall]) -> Iterator[Proposal]:
        """The layers with a bias and a norm over the same channels."""
        for first, norm, equal in _pairs(calls):
            if first["bias"]:
                change = f"bias=False before {norm.kind}"
                yield _proposal(self.name, self.codes, (first, norm), equal, change, _without_bias)


class ConvBnFusion:
    """In evaluation mode, a batch norm computed into the weights of the layer before it."""

    name = "conv-bn-fusion"
    codes: tuple[str, ...] = ()

    def propose(self, calls: Sequence[ModuleCall]) -> Iterator[Proposal]:
        """The convolutions with a batch norm that uses stored statistics."""
        for first, norm, equal in _pairs(calls):
            mode = Mode.of(norm.call)
            stored = norm.kind.startswith("Batch") and norm["track_running_stats"] and norm["affine"]
            if first.is_convolution and stored and not mode.training and not mode.grad:
                yield _proposal(self.name, self.codes, (first, norm), equal, f"{norm.kind} fused", _fused)


def _pairs(calls: Sequence[ModuleCall]) -> Iterator[tuple[Layer, Layer, tuple[ModuleCall, ...]]]:
    """The layers that a norm over the same channels follows, the norms, and the calls of layers of equal pairs."""
    groups: dict[object, list[tuple[Layer, Layer]]] = {}
    for first, second in followers(calls):
        giver, norm = layer(first), layer(second)
        if giver is not None and norm is not None and _cancels(giver, norm):
            groups.setdefault((identity(first), identity(second)), []).append((giver, norm))
    for group in groups.values():
        yield *group[0], tuple(giver.call for giver, _ in group)


def _cancels(giver: Layer, norm: Layer) -> bool:
    """True if a norm works on what is the layer's channels."""
    if not norm.kind.startswith(("BatchNorm", "InstanceNorm")):
        return False
    rank = len(norm.call.inputs[0].shape)
    if giver.is_linear:
        return norm.kind == "BatchNorm1d" and rank == 2
    return giver.is_convolution and giver.kind[-2:] == norm.kind[-2:] and rank == int(norm.kind[-2]) + 2


def _proposal(
    name: str,
    codes: tuple[str, ...],
    layers: tuple[Layer, Layer],
    equal: tuple[ModuleCall, ...],
    change: str,
    make: Any,
) -> Proposal:
    first, norm = layers

    def build() -> Pair:
        import torch

        before = torch.nn.Sequential(first.build(), norm.build())
        _used(before[1])
        after = make(first, norm, before)
        inputs, mode = first.inputs()[:1], Mode.of(norm.call)
        old, new = Run(before, mode, inputs), Run(after, mode, inputs)
        return Pair(old, new, lambda: difference(old.forward(), new.forward()), f"timed with the {norm.kind}")

    return Proposal(name, codes, equal, first.text, change, first.work, build)


def _used(norm: Any) -> None:
    """Give a norm other numbers than a new one's."""
    import torch

    for name in ("weight", "running_var"):
        if (values := getattr(norm, name, None)) is not None:
            torch.nn.init.uniform_(values, 0.5, 1.5)
    for name in ("bias", "running_mean"):
        if (values := getattr(norm, name, None)) is not None:
            torch.nn.init.normal_(values)


def _without_bias(first: Layer, norm: Layer, before: Any) -> Any:
    import torch

    bare, kept = first.build(bias=False), norm.build()
    kept.load_state_dict(before[1].state_dict())
    with torch.no_grad():
        bare.weight.copy_(before[0].weight)
        if kept.running_mean is not None:
            # The stored mean holds the bias that it was trained with.
            kept.running_mean -= before[0].bias
    return torch.nn.Sequential(bare, kept)


def _fused(first: Layer, _: Layer, before: Any) -> Any:
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    return fuse_conv_bn_eval(before[0], before[1], transpose="Transpose" in first.kind)
