"""Functions that a process runs once, or a few times: they warm up, convert, restore, read a file, gather objects."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.findings import Heat
from perflint.semantics.binders import own_nodes
from perflint.semantics.facts import conventions
from perflint.semantics.heat.steps import Named
from perflint.semantics.structure import last_name, names_in, walk

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred
    from perflint.semantics.structure import FunctionInfo, FunctionNode


def runs_once(model: Inferred, info: FunctionInfo) -> Named | None:
    """How often a function runs that works on a program's model or files, not on its data; None for all others."""
    if isinstance(info.node, ast.Lambda) or info.is_generator:
        return None
    entry = conventions.runs_once(info.name)
    if entry is None and not _gets_tensor(model, info.node):
        entry = conventions.runs_once_without_data(info.name)
    if entry is not None:
        return Named(Heat.COLD, entry.why, entry)
    if not conventions.is_item(info.name) and _loops_over_file(model, info.node):
        return Named(Heat.COLD, "reads a file and loops over its contents")
    return Named(Heat.COLD, "gathers pickled objects of all processes") if _gathers_objects(model, info.node) else None


def copies_for_checkpoint(model: Inferred, node: ast.AST) -> bool:
    """True for a comprehension that copies a model to the CPU in a function that saves it, often or not.

    `{key: value.cpu() for key, value in model.state_dict().items()}`.
    """
    if not isinstance(node, (ast.DictComp, ast.ListComp)) or len(node.generators) != 1:
        return False
    holder: ast.AST = node.generators[0].iter
    if isinstance(holder, ast.Call) and isinstance(holder.func, ast.Attribute) and holder.func.attr in _PARTS:
        holder = holder.func.value
    if not isinstance(holder, ast.Call) or last_name(holder) != "state_dict":
        return False
    function = model.function(node)
    copied = node.value if isinstance(node, ast.DictComp) else node.elt
    copies = any(isinstance(each, ast.Call) and last_name(each) in _COPIES for each in walk(copied))
    return copies and isinstance(function, ast.FunctionDef) and bool(conventions.saves(function.name))


_PARTS = frozenset({"items", "values"})
_COPIES = frozenset({"cpu", "numpy"})


def _gathers_objects(model: Inferred, node: FunctionNode) -> bool:
    """True if a function pickles objects and sends them as tensors: results of an evaluation, not of a step."""
    if not {"dumps", "loads"} & {last_name(inner) for inner in own_nodes(node) if isinstance(inner, ast.Call)}:
        return False
    targets = {model.target(inner) for inner in walk(node) if isinstance(inner, ast.Call)}
    return not targets.isdisjoint(_PICKLES) and any(target.startswith("torch.distributed.") for target in targets)


_PICKLES = frozenset({"pickle.dumps", "pickle.loads"})


def _gets_tensor(model: Inferred, node: FunctionNode) -> bool:
    """True if a parameter of a function is a tensor, by annotation, default, callers or use."""
    own, _ = model.parameters(node)
    return any(value.tensor is not None for value in own.values())


def _loops_over_file(model: Inferred, node: FunctionNode) -> bool:
    """True if a function opens a file and loops over its contents: `for line in open(path)`."""
    contents: set[str] = set()
    for inner in own_nodes(node):
        if isinstance(inner, (ast.withitem, ast.Assign, ast.AnnAssign)):
            source = inner.context_expr if isinstance(inner, ast.withitem) else inner.value
            if source is not None and _gives_contents(model, source, contents):
                contents.update(_bound(inner))
        elif isinstance(inner, (ast.For, ast.AsyncFor, ast.comprehension)):
            if _gives_contents(model, inner.iter, contents):
                return True
    return False


def _gives_contents(model: Inferred, source: ast.expr, contents: set[str]) -> bool:
    """True if an expression opens a file, or uses the contents of one."""
    if contents and not contents.isdisjoint(names_in(source)):
        return True
    calls = (node for node in walk(source) if isinstance(node, ast.Call))
    return any(conventions.opens_file(model.target(call) or last_name(call)) for call in calls)


def _bound(binding: ast.withitem | ast.Assign | ast.AnnAssign) -> set[str]:
    """The plain names that a statement binds."""
    if isinstance(binding, ast.withitem):
        targets: list[ast.expr] = [binding.optional_vars] if binding.optional_vars is not None else []
    else:
        targets = binding.targets if isinstance(binding, ast.Assign) else [binding.target]
    return {node.id for target in targets for node in walk(target) if isinstance(node, ast.Name)}
