"""The conditions of a fused optimizer: its gradients, and a torch that fuses it.

Older ones want its parameters on the device when it is made.
"""

from __future__ import annotations

import ast
import re

from perflint.rules._memory.flows import flow_around
from perflint.rules._project_text import names_apple_gpus, project_says
from perflint.rules._since import FUSED, FUSED_BEFORE_MOVE, FUSED_LATER, FUSED_ON_APPLE, Version
from perflint.rules._statements import block_of
from perflint.rules.placement import goes_to_cuda, move
from perflint.semantics.around import statement_of
from perflint.semantics.model import Model
from perflint.semantics.structure import keyword, last_name, path_of

_SPARSE = re.compile(r"sparse\s*=\s*True")


def may_be_sparse(model: Model, cls: str) -> bool:
    """True if gradients may be sparse, which fused forms do not take; only some optimizers take them otherwise."""
    return cls in ("torch.optim.SGD", "torch.optim.Adagrad") and project_says(model, _SPARSE)


def fused_since(model: Model, call: ast.Call, cls: str) -> Version:
    """The first torch in which a call that makes an optimizer may say `fused=True`."""
    since = (FUSED | FUSED_LATER)[cls]
    if names_apple_gpus(model):
        return max(since, FUSED_ON_APPLE)
    return since if _is_on_device(model, call) else max(since, FUSED_BEFORE_MOVE)


def _is_on_device(model: Model, call: ast.Call) -> bool:
    """True if the parameters that an optimizer gets are those of one module, which certainly is on the device."""
    given = call.args[0] if call.args else keyword(call, "params")
    if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute):
        return False
    owner = given.func.value
    if given.func.attr != "parameters" or not path_of(owner):
        return False
    return _is_made_there(model, owner) or _is_moved_before(model, call, owner)


def _is_made_there(model: Model, owner: ast.expr) -> bool:
    """True if each assignment to a name moves the value to the device."""
    if not isinstance(owner, ast.Name):
        return False
    origins = flow_around(model, owner).origins(owner)
    return bool(origins) and all(
        each.whole and each.value is not None and _moves(model, each.value) for each in origins
    )


def _is_moved_before(model: Model, call: ast.Call, owner: ast.expr) -> bool:
    """True if a statement above, in the same block or one around it, moves an object to the device."""
    path = path_of(owner)
    statement = statement_of(model, call)
    while isinstance(statement, ast.stmt) and not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        block = block_of(model, statement)
        for before in reversed(block[: block.index(statement)]):
            if isinstance(before, ast.Expr) and _moves(model, before.value) and path_of(_moved(before.value)) == path:
                return True
            if isinstance(before, ast.Assign) and any(path_of(target) == path for target in before.targets):
                return _moves(model, before.value)
        around = model.parent(statement)
        statement = around if isinstance(around, ast.stmt) else None
    return False


def _moved(node: ast.expr) -> ast.expr:
    """The object whose method a call is."""
    return node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node


def _moves(model: Model, node: ast.expr) -> bool:
    """True if an expression ends in a move to a CUDA device: `.cuda()`, `.to("cuda")`."""
    if not isinstance(node, ast.Call) or last_name(node) not in ("cuda", "to"):
        return False
    site = model.call(node)
    moved = move(site)
    return last_name(node) == "cuda" or (moved is not None and goes_to_cuda(site, moved))
