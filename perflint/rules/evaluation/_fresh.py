"""Expressions that make an object or a tensor that has no other name."""

from __future__ import annotations

import ast

from perflint.rules._memory.operators import ALIASES, LAYS_OUT, MOVES, VIEWS
from perflint.semantics.facts import torch_api
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name

_FRESH = frozenset(
    {"Counter", "OrderedDict", "clone", "defaultdict", "deque", "dict", "empty", "empty_like", "full", "full_like",
     "list", "new_empty", "new_full", "new_zeros", "ones", "ones_like", "set", "zeros", "zeros_like"}
)  # fmt: skip
"""Callees that make a new container or a new tensor."""
_MAY_SHARE = VIEWS | LAYS_OUT | MOVES | ALIASES
"""Operators whose result may be their operand, or share its memory."""


def is_new(node: ast.expr) -> bool:
    """True if an expression makes a container or a tensor that has no other name yet."""
    if isinstance(node, ast.Call):
        return last_name(node) in _FRESH
    return isinstance(
        node,
        (ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp, ast.BinOp, ast.Constant),
    )


def is_computed(model: Model, node: ast.expr) -> bool:
    """True if an operator of torch makes a tensor that has no other name: `x.pow(2)`, and `x.pow(2).mul_(y)`."""
    while isinstance(node, ast.Call):
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        head, _, leaf = torch_api.canonical(model.target(node) or f"torch.Tensor.{method}").rpartition(".")
        if head == "torch.Tensor" and leaf.endswith("_") and isinstance(node.func, ast.Attribute):
            node = node.func.value
            continue
        is_method = head == "torch.Tensor" and leaf in torch_api.tensor_methods()
        is_operator = is_method or head in ("torch", "torch.nn.functional")
        return is_operator and (leaf == "clone" or leaf not in _MAY_SHARE) and not leaf.endswith("_")
    return False
