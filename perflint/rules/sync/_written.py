"""Functions that write tensors to files or draw them, and copy them to the CPU for that."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, surest
from perflint.semantics.sites import CallSite, device_confidence
from perflint.semantics.values import Device, Function, Instance, Kind, Mapping, Sequence, Tensor, Value

_SAVES = ("torch.save", "safetensors.torch.save_file")
_WRITERS = ("torch.utils.tensorboard.SummaryWriter", "tensorboardX.SummaryWriter")
_DRAWS = (
    *("torchvision.utils.save_image", "torchvision.transforms.functional.to_pil_image"),
    *("torchvision.transforms.ToPILImage.__call__", "torchvision.transforms.v2.ToPILImage.__call__"),
    *(f"{name}.{method}" for name in _WRITERS for method in ("add_image", "add_images", "add_video", "add_embedding")),
    "wandb.Image",
)
WRITES = (*_SAVES, *_DRAWS)
"""Functions that copy the tensors among their arguments to the CPU at once."""

_DEEPEST = 3
"""Levels of dicts and lists whose tensors are looked for: a checkpoint holds the states of several modules."""
_PARAMETER = Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter")


def written(site: CallSite) -> Confidence | None:
    """How sure it is that a call copies a tensor of the device to the CPU; None if it does not."""
    if site.target not in WRITES or _is_defined_here(site):
        return None
    nodes = [*site.node.args, *(keyword.value for keyword in site.node.keywords)]
    found = [device_confidence(each) for node in nodes for each in _held(site, site.value(node), _DEEPEST)]
    known = [each for each in found if each is not None]
    return surest(*known) if known else None


def _is_defined_here(site: CallSite) -> bool:
    """True if the project has the function itself: its waits are reported in its body."""
    return any(isinstance(each, Function) for each in site.value(site.node.func).members)


def _held(site: CallSite, value: Value, depth: int) -> Iterator[Value]:
    """The tensors that a value holds; of a module its parameters, which `torch.save` writes with it."""
    for member in value.members:
        if isinstance(member, Instance) and site.target in _SAVES and site.model.is_module(member):
            yield _PARAMETER
        elif depth and isinstance(member, Mapping):
            for inner in (member.element, *(held for _, held in member.items)):
                yield from _held(site, inner, depth - 1)
        elif depth and isinstance(member, Sequence):
            for inner in member.items or (member.element,):
                yield from _held(site, inner, depth - 1)
        elif member.tensor is not None:
            yield value
            return
