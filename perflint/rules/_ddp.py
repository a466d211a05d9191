"""Programs that wrap a model in `DistributedDataParallel`."""

from __future__ import annotations

import ast

from perflint.semantics.memo import once
from perflint.semantics.model import Model

DDP = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel")


@once
def has_ddp(model: Model) -> bool:
    """True if the file wraps a model."""
    return any(model.target(call) in DDP for call in model.nodes(ast.Call))
