"""Programs that wrap a model in `DistributedDataParallel`."""

from __future__ import annotations

import ast

from perflint.rules._names import DDP
from perflint.semantics.memo import once
from perflint.semantics.model import Model


@once
def has_ddp(model: Model) -> bool:
    """True if the file wraps a model."""
    return any(model.target(call) in DDP for call in model.nodes(ast.Call))
