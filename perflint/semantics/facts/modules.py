"""Methods of `torch.nn.Module` that return the module itself, and functions that return the module they are given."""

from __future__ import annotations

import ast

RETURN_MODULE = frozenset(
    """apply bfloat16 cpu cuda double eval float half ipu mtia requires_grad_ share_memory to to_empty train type
    xpu""".split()
)
WRAP_MODULE = frozenset(
    f"torch.{name}"
    for name in ("compile", "nn.DataParallel", "nn.parallel.DataParallel", "nn.parallel.DistributedDataParallel")
)
"""Functions and classes whose result is, or runs, the module that is their first argument."""


def module_in(node: ast.expr) -> ast.expr:
    """The expression of the module that a row of such calls begins with: `m` for `m.to(device).eval()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RETURN_MODULE:
        node = node.func.value
    return node
