"""Optimizers that could make their step in one kernel."""

from __future__ import annotations

from typing import Any

from perflint.tracer.experiments.base import NotPossible, Pair, difference
from perflint.tracer.experiments.copying import check_room, size_in_bytes

NAME = "fused-optimizer"
CODES = ("TPF601",)
CHANGE = "fused=True"
_KINDS = ("Adam", "AdamW", "SGD")
"""Those with a fused form on GPUs."""
COPIES = 8
"""Before and after: parameters, gradients and two states of each."""


def applies(optimizer: Any, device: str) -> bool:
    """True if an optimizer of torch's with parameters on a device could be fused and is not."""
    import torch

    if type(optimizer) not in [getattr(torch.optim, name) for name in _KINDS]:
        return False
    groups = optimizer.param_groups
    held = [parameter for group in groups for parameter in group["params"] if parameter.requires_grad]
    return (
        bool(held)
        and all(group.get("fused") is not True and not group.get("differentiable") for group in groups)
        and all(isinstance(group["lr"], float | int) for group in groups)
        and all(parameter.is_floating_point() for parameter in held)
        and not any(parameter.grad is not None and parameter.grad.is_sparse for parameter in held)
        and {str(parameter.device) for parameter in held} == {device}
    )


def subject(optimizer: Any) -> str:
    """`AdamW of 148 tensors`."""
    number = sum(len(group["params"]) for group in optimizer.param_groups)
    return f"{type(optimizer).__name__} of {number} tensors"


def build(optimizer: Any) -> Pair:
    """Two copies with numbers of their own. Raises NotPossible."""
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if any(type(parameter.data).__name__ == "DTensor" for parameter in held):
        raise NotPossible("the optimizer's parameters are distributed")
    check_room(str(held[0].device), COPIES * size_in_bytes(held))
    before, after = _copy(optimizer, {}), _copy(optimizer, {"fused": True, "foreach": None})
    old, new = _step(before), _step(after)

    def compared() -> float | None:
        old()
        new()
        return difference(*([group["params"] for group in each.param_groups] for each in (before, after)))

    return Pair(old, new, compared)


def _copy(optimizer: Any, changed: dict[str, Any]) -> Any:
    import torch

    torch.manual_seed(0)
    groups = [
        group | changed | {"params": [_like(parameter) for parameter in group["params"]]}
        for group in optimizer.param_groups
    ]
    return type(optimizer)(groups, lr=groups[0]["lr"], **changed)


def _like(parameter: Any) -> Any:
    import torch

    other = torch.nn.Parameter(torch.randn_like(parameter.detach()), requires_grad=parameter.requires_grad)
    if parameter.requires_grad:
        other.grad = torch.randn_like(other.detach())
    return other


def _step(optimizer: Any) -> Any:
    step = type(optimizer).step
    # Without the hooks of all optimizers, among them the program's.
    plain = step.__wrapped__ if getattr(step, "hooked", False) else step
    return lambda: plain(optimizer)
