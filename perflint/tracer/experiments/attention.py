"""Attention whose weights are computed but not used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perflint.tracer.events import ModuleCall, TensorFacts
from perflint.tracer.experiments.base import Mode, Pair, Proposal, Run, difference, made
from perflint.tracer.experiments.layers import Layer, grouped, layers


class AttentionWeights:
    """`MultiheadAttention` with `need_weights=False`."""

    name = "attention-weights"
    codes = ("TPF302",)

    def propose(self, calls: Sequence[ModuleCall]) -> Iterator[Proposal]:
        """The attention layers that give weights besides their output."""
        found = [each for each in layers(calls) if each.kind == "MultiheadAttention" and len(each.call.outputs) == 2]
        for each, equal in grouped(found):
            masks = _masks(each)
            if masks is not None:
                yield _proposal(self.name, self.codes, each, equal, masks)


def _proposal(
    name: str, codes: tuple[str, ...], each: Layer, equal: tuple[ModuleCall, ...], masks: dict[str, TensorFacts]
) -> Proposal:
    def build() -> Pair:
        module, mode = each.build(), Mode.of(each.call)
        query, key, value = each.call.inputs[:3]
        first = made(query)
        # Self-attention is computed otherwise, and is what equal facts mean as a rule.
        arguments = [first] * 3 if query == key == value else [first, made(key), made(value)]
        named: dict[str, Any] = {mask: made(facts).zero_() for mask, facts in masks.items()}
        average = len(each.call.outputs[1].shape) < len(query.shape) + 1
        old = Run(module, mode, arguments, {**named, "need_weights": True, "average_attn_weights": average})
        new = Run(module, mode, arguments, {**named, "need_weights": False})

        def compared() -> float | None:
            rate, module.dropout = module.dropout, 0.0
            try:
                return difference(old.forward()[0], new.forward()[0])
            finally:
                module.dropout = rate

        return Pair(old, new, compared)

    batch = each.call.outputs[1].shape
    work = 1.0
    for size in (*batch, each["embed_dim"]):
        work *= size
    return Proposal(name, codes, equal, each.text, "need_weights=False", work, build)


def _masks(each: Layer) -> dict[str, TensorFacts] | None:
    """The masks by their names; None where the shapes do not tell."""
    query, key, *rest = each.call.inputs
    if not rest:
        return None
    _, *masks = rest
    if len(query.shape) == 2:
        batch, target, source = 1, query.shape[0], key.shape[0]
    elif each.settings.get("batch_first"):
        batch, target, source = query.shape[0], query.shape[1], key.shape[1]
    else:
        batch, target, source = query.shape[1], query.shape[0], key.shape[0]
    found: dict[str, TensorFacts] = {}
    for mask in masks:
        attention = mask.shape in ((target, source), (batch * each["num_heads"], target, source))
        padding = mask.shape == ((batch, source) if len(query.shape) > 2 else (source,))
        name = "attn_mask" if attention else "key_padding_mask"
        if attention == padding or name in found:
            return None
        found[name] = mask
    return found
