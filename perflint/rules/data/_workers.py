"""The functions of a file that loader workers run: `__getitem__` of data sets, collate functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from perflint.frozen import dataclass
from perflint.rules._bindings import derived
from perflint.rules._operators import operators
from perflint.rules._turns import called_here
from perflint.rules.data._loaders import LOADERS, passed
from perflint.semantics.model import Model
from perflint.semantics.purpose.given import named_arguments
from perflint.semantics.structure import calls_in, names_in
from perflint.semantics.values import Instance

_DATASETS = operators("data", "datasets")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Worker:
    """A function that runs in the workers of loaders, and its role there.

    `what` is the method or collate function whose work it does, and `root` its node. `item` are the names in the
    function that depend on the item, and `calls` lead from `root` to the function.
    """

    node: _Definition
    what: str
    root: _Definition
    item: frozenset[str]
    calls: tuple[ast.Call, ...] = ()


def worker_functions(model: Model) -> Iterator[Worker]:
    """The functions of a file that make items or batches, with those that only they call."""
    for root, what in _roots(model):
        waiting = [Worker(root, what, root, _derived(root, _arguments(root)[1:]))]
        for worker in waiting:
            yield worker
            waiting += _called(model, worker, {each.node for each in waiting})


def _roots(model: Model) -> Iterator[tuple[_Definition, str]]:
    for name, each in model.module.structure.classes.items():
        lineage = model.lineage(f"{model.module.name}.{name}")
        if not _DATASETS.intersection(lineage):
            continue
        for method in ("__getitem__", "__getitems__"):
            info = each.methods.get(method)
            if info is not None and isinstance(info.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield info.node, f"{each.node.name}.{method}"
    yield from _collating(model)


def _collating(model: Model) -> Iterator[tuple[_Definition, str]]:
    seen: set[ast.AST] = set()
    for call in model.nodes(ast.Call):
        site = model.call(call)
        given = passed(site, "collate_fn") if site.target in LOADERS else None
        for node in () if given is None else _definitions(model, given):
            if node not in seen:
                seen.add(node)
                owner = model.parent(node)
                yield node, f"{owner.name}.{node.name}" if isinstance(owner, ast.ClassDef) else node.name


def _definitions(model: Model, given: ast.expr) -> Iterator[_Definition]:
    """The functions of a file that run if other code calls a value: a function, or `__call__` of an object."""
    for member in model.value(given).members:
        info = model.function_of(member)
        if isinstance(member, Instance):
            cls = model.module.structure.classes.get(member.cls.removeprefix(f"{model.module.name}."))
            info = None if cls is None else cls.methods.get("__call__")
        if info is not None and isinstance(info.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield info.node


def _called(model: Model, worker: Worker, seen: set[_Definition]) -> Iterator[Worker]:
    """The functions that the code of a worker alone calls."""
    for call in calls_in(worker.node):
        function = called_here(model, call)
        info = model.module.defined_by(function)
        if info is None or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or function in seen:
            continue
        given = named_arguments(call, info).items()
        parameters = [name for name, value in given if names_in(value) & worker.item]
        calls = (*worker.calls, call)
        yield Worker(function, worker.what, worker.root, _derived(function, parameters), calls)


def _arguments(function: _Definition) -> list[str]:
    arguments = function.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _derived(function: _Definition, parameters: Iterable[str]) -> frozenset[str]:
    """Some parameters of a function, and the names that it makes of them."""
    return frozenset(derived(function, parameters)) - {"self"}
