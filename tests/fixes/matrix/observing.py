"""What a run of a function gave, and what can be told of its operands and results afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from tests.fixes.matrix.operands import CONTEXTS, Places
from tests.fixes.scenarios import RAISED, leaves, seed

Seen = dict[str, object]
_ROWS = 300


def observe(function: Callable[..., Any], operands: Mapping[str, Any], context: str, writes: bool) -> Seen:
    """What a call does in a context: its results and errors, what shares memory, and what autograd says then.

    With `writes`, the results are written to, which shows what else changes and what autograd had saved.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = _kept(operands)
        seed()
        result, error = _called(lambda: function(**operands), context)
        seen: Seen = {"error": error}
        if error is not None:
            return seen
        seen |= leaves("random", torch.get_rng_state())
        named = dict(_tensors("result", result)) | dict(_tensors("operand", operands))
        seen["shared"] = _shared(named)
        seen |= _values(result, operands)
        if writes:
            later = _kept(dict(_tensors("result", result)))
            for name, tensor in _tensors("result", result):
                seen[f"{name} as a vector"] = _error(lambda tensor=tensor: tensor.view(-1))
                seen[f"{name} is written"] = _error(lambda tensor=tensor: tensor.add_(1))
            seen |= _values(result, operands, "after the write, ")
            later += [tensor.sum().abs() for _, tensor in _tensors("result", result) if tensor.requires_grad]
            seen["backward of results"] = [_error(partial(each.backward, retain_graph=True)) for each in later]
        seen["backward of operands"] = [_error(partial(each.backward, retain_graph=True)) for each in kept]
        seen |= _gradients(operands)
    return seen


def _called(call: Callable[[], Any], context: str) -> tuple[Any, str | None]:
    try:
        with CONTEXTS[context]():
            return call(), None
    except RAISED as error:
        return None, type(error).__name__


def _error(call: Callable[[], object]) -> str | None:
    try:
        call()
    except RAISED as error:
        return type(error).__name__
    return None


def _tensors(path: str, value: object) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _tensors(f"{path} {key}", item)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _tensors(f"{path} {index}", item)


def _kept(value: Mapping[str, Any]) -> list[torch.Tensor]:
    """Losses that need tensors as they are now: autograd has saved these for the backward pass."""
    losses = []
    for _, tensor in _tensors("", value):
        if tensor.is_inference() or not tensor.numel():
            continue
        weight = torch.ones(tensor.shape, device=tensor.device, requires_grad=True)
        if tensor.dtype is torch.bool:
            losses.append(torch.where(tensor, weight, weight * 2).sum())
        elif tensor.is_floating_point() or tensor.is_complex():
            losses.append((tensor * weight).abs().sum())
        else:
            losses.append((tensor * weight).sum())
            if tensor.dtype is torch.int64 and 0 <= int(tensor.min()) <= int(tensor.max()) < _ROWS:
                table = torch.ones(_ROWS, 1, device=tensor.device, requires_grad=True)
                losses.append(torch.nn.functional.embedding(tensor, table).sum())
    return losses


def _shared(named: Mapping[str, torch.Tensor]) -> list[tuple[str, str, int]]:
    """The pairs of tensors that share memory, and how far apart they begin."""
    pairs = []
    items = list(named.items())
    for index, (name, tensor) in enumerate(items):
        for other, second in items[:index]:
            if tensor.untyped_storage().data_ptr() == second.untyped_storage().data_ptr() and tensor.numel():
                pairs.append((name, other, tensor.storage_offset() - second.storage_offset()))
    return pairs


def _values(result: object, operands: Mapping[str, Any], when: str = "") -> Seen:
    seen: Seen = dict(leaves(f"{when}result", result))
    for name, value in operands.items():
        seen |= leaves(f"{when}{name}", vars(value) if isinstance(value, Places) else value)
    return seen


def _gradients(operands: Mapping[str, Any]) -> Seen:
    seen: Seen = {}
    for name, tensor in _tensors("gradient of", operands):
        if tensor.is_leaf and not tensor.is_inference():
            seen |= leaves(name, tensor.grad)
    return seen
