"""The functions of a file that loader workers run: `__getitem__` of data sets, collate functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.frozen import dataclass
from perflint.rules.data._loaders import LOADERS, passed
from perflint.semantics.model import Model
from perflint.semantics.structure import names_in, walk
from perflint.semantics.values import Function

_DATASETS = frozenset(
    f"torch.utils.data.{name}" for name in ("Dataset", "IterableDataset", "dataset.Dataset", "dataset.IterableDataset")
)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Worker:
    """A function that runs in the workers of loaders, and its role there."""

    node: _Definition
    what: str


def worker_functions(model: Model) -> Iterator[Worker]:
    """The functions of a file that make items or batches."""
    for name, each in model.module.structure.classes.items():
        lineage = model.lineage(f"{model.module.name}.{name}")
        if not _DATASETS.intersection(lineage):
            continue
        for method in ("__getitem__", "__getitems__"):
            info = each.methods.get(method)
            if info is not None and isinstance(info.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield Worker(info.node, f"{each.node.name}.{method}")
    yield from _collating(model)


def _collating(model: Model) -> Iterator[Worker]:
    seen: set[ast.AST] = set()
    for call in model.nodes(ast.Call):
        site = model.call(call)
        given = passed(site, "collate_fn") if site.target in LOADERS else None
        value = None if given is None else model.value(given)
        if isinstance(value, Function) and value.module == model.module.name:
            info = model.module.function(value.line, value.column)
            node = None if info is None else info.node
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node not in seen:
                seen.add(node)
                yield Worker(node, node.name)


def dependent(function: _Definition) -> set[str]:
    """The parameters of a function but the first, and the names that it makes of them."""
    arguments = function.args
    found = {each.arg for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs][1:]}
    for _ in range(2):
        for node in walk(function):
            if isinstance(node, ast.Assign) and names_in(node.value) & found:
                found |= {name for target in node.targets for name in names_in(target)}
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) and names_in(node.iter) & found:
                found |= names_in(node.target)
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                for item in node.items:
                    if item.optional_vars is not None and names_in(item.context_expr) & found:
                        found |= names_in(item.optional_vars)
    return found - {"self"}
