"""The names that a function computes a loss from: outputs, targets and masks, which are tensors where the model is."""

from __future__ import annotations

import ast

from perflint.semantics.facts.tensors import makes_tensors
from perflint.semantics.module import Module
from perflint.semantics.structure import FunctionInfo, children, names_in, walk


def learned(module: Module, info: FunctionInfo) -> frozenset[str]:
    """The plain names that a loss, which a function backpropagates, is computed from."""
    if info.learned is None:
        losses = {name for owner, name in module.structure.losses if owner is info}
        info.learned = frozenset(_behind(losses, info)) if losses else frozenset()
    return info.learned


def selects(module: Module, info: FunctionInfo, index: ast.expr, indexed: ast.expr) -> bool:
    """True for `x[y > 0]`, with both on the way to a loss: a mask selects the elements that are learned."""
    known = learned(module, info)
    return not known.isdisjoint(names_in(index)) and not known.isdisjoint(names_in(indexed))


def is_order(node: ast.expr) -> bool:
    """True for `y > 0` and the like: such an index is a mask, since lists are not indexed by truth values."""
    return isinstance(node, ast.Compare) and all(isinstance(op, _ORDER) for op in node.ops)


_ORDER = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)


def _behind(losses: set[str], info: FunctionInfo) -> set[str]:
    """Losses with the names that they are computed from."""
    sources: dict[str, set[str]] = {}
    for node in walk(info.node):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            used = _operands(node.value)
            for name in {name for target in targets for name in names_in(target)}:
                sources.setdefault(name, set()).update(used)
    found, waiting = set(losses), list(losses)
    while waiting:
        new = sources.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def _operands(value: ast.expr) -> set[str]:
    """The names whose values an expression computes with, without those of functions and of data for new tensors."""
    found: set[str] = set()
    waiting: list[ast.AST] = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Call):
            waiting += [] if _makes_tensor(node) else [*node.args, *node.keywords]
            waiting += [node.func.value] if isinstance(node.func, ast.Attribute) else []
        else:
            waiting += children(node)
    return found - {"self", "torch"}


def _makes_tensor(call: ast.Call) -> bool:
    """True for `torch.as_tensor(x)` and `torch.from_numpy(x)`."""
    function = call.func
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    name = f"torch.{function.attr}"
    is_maker = makes_tensors(name) or name == "torch.from_numpy" or name.endswith("Tensor")
    return function.value.id == "torch" and is_maker
