"""Parameters that are tensors, since functions of torch that take nothing else get them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from perflint.semantics.binders import own_nodes
from perflint.semantics.facts import by_use, torch_api
from perflint.semantics.interpreter.replaced import of_other_types
from perflint.semantics.structure import FunctionInfo, path_of

_JOINS = frozenset(("torch.cat", "torch.concat", "torch.stack", "torch.hstack", "torch.vstack"))
"""Functions of a list of tensors."""


def passed_to_torch(info: FunctionInfo, imports: Mapping[str, str]) -> frozenset[str]:
    """The names that a function passes to functions of torch that take only tensors, before it binds them again.

    A function that asks for the type of an argument, converts it or passes it to NumPy takes other types, too.
    """
    if isinstance(info.node, ast.Lambda):
        return frozenset()
    bound: dict[str, int] = {}
    found: list[ast.Name] = []
    others: set[str] = set()
    for node in own_nodes(info.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] = min(node.lineno, bound.get(node.id, node.lineno))
        elif isinstance(node, ast.Call):
            others.update(of_other_types(node))
            full = _full_name(node, imports)
            if full.startswith("torch."):
                found += _tensors(node, torch_api.canonical(full))
            elif full:
                others.update(each.id for each in node.args if isinstance(each, ast.Name))
    return frozenset(name.id for name in found if name.lineno <= bound.get(name.id, name.lineno)) - others


def _full_name(call: ast.Call, imports: Mapping[str, str]) -> str:
    """The full name of a called function that a file imports, else ""."""
    head, _, rest = path_of(call.func).partition(".")
    module = imports.get(head, "")
    return f"{module}.{rest}" if module and rest else module


def _tensors(call: ast.Call, name: str) -> Iterator[ast.Name]:
    """The names of the tensors among the arguments of a call of torch."""
    first = call.args[0] if call.args else None
    if name in _JOINS and isinstance(first, (ast.List, ast.Tuple)):
        yield from (root for part in first.elts if (root := _root(part)) is not None)
    elif _takes_tensor(name) and first is not None and (root := _root(first)) is not None:
        yield root


def _root(node: ast.expr) -> ast.Name | None:
    """The `x` of `x`, `x[:, i]` and `x == 0`; None for other expressions, also for `x[i]`, which may be of a list."""
    if isinstance(node, ast.Compare) and all(map(_is_number, node.comparators)):
        node = node.left
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and by_use.shows_array(node.slice):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _is_number(node: ast.expr) -> bool:
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(number, ast.Constant) and isinstance(number.value, (int, float))


def _takes_tensor(name: str) -> bool:
    """True if the first argument of a function can only be a tensor."""
    namespace, _, leaf = name.rpartition(".")
    return namespace == "torch.nn.functional" or (namespace == "torch" and leaf in _OF_TENSORS)


_OF_TENSORS = frozenset(
    """abs exp log log2 log10 log1p expm1 sqrt rsqrt square sin cos tan tanh sigmoid relu softmax log_softmax sum mean
    std var max min amax amin argmax argmin any all norm prod cumsum cumprod logsumexp matmul mm bmm mv dot outer
    clamp round floor ceil sign isnan isinf isfinite flatten squeeze unsqueeze transpose permute reshape flip roll
    topk sort argsort unique nonzero where gather index_select masked_select scatter chunk split unbind tril triu diag
    diagonal zeros_like ones_like rand_like randn_like empty_like full_like clone numel""".split()
)
