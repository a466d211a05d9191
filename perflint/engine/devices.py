"""The devices of the tensors that a file binds to names."""

from __future__ import annotations

import ast
from contextlib import closing

from perflint.findings import Span
from perflint.frozen import dataclass
from perflint.semantics.depth import deep_stack
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.values import NONE, Device, Value
from perflint.source.text import Source

_NAMES = {Device.CPU: "cpu", Device.CUDA: "cuda"}


@dataclass(frozen=True, slots=True)
class Bound:
    """A name where a tensor is bound to it, and the device of the tensor."""

    name: str
    span: Span
    device: str
    """ "cpu" or "cuda"."""


def devices(source: Source, project: Project) -> list[Bound]:
    """The names that are bound to tensors on a known device, in order. Raises as `ast.parse` does."""
    with deep_stack(), closing(Model(source, project)) as model:
        stores = (node for node in model.nodes(ast.Name) if isinstance(node.ctx, ast.Store))
        known = ((node, _device(model.value(node))) for node in stores)
        return [Bound(node.id, source.span(node), device) for node, device in known if device]


def _device(value: Value) -> str:
    """The device of a tensor, if all that the value may be is on it; else empty."""
    members = [member for member in value.members if member != NONE]
    tensors = [member.tensor for member in members]
    found = {None if tensor is None else tensor.device for tensor in tensors}
    device = found.pop() if len(found) == 1 else None
    return _NAMES.get(device, "") if device is not None else ""
