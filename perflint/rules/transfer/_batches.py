"""Batches of loaders that a loop moves to the device, and the loaders that they come from."""

from __future__ import annotations

import ast

from perflint.findings import Edit
from perflint.fixes.edits import replace, with_argument
from perflint.fixes.imports import spell
from perflint.frozen import dataclass
from perflint.rules._arguments import call_of
from perflint.rules._memory.flows import flow_around
from perflint.rules._memory.uses import HARMLESS, Uses
from perflint.rules._statements import outward_in_function
from perflint.rules.data._loaders import is_off, may_pin
from perflint.semantics.around import loops_around
from perflint.semantics.binders import COMPREHENSIONS, targets
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import names_in, walk
from perflint.semantics.values import NONE, Instance

LOADER = "torch.utils.data.DataLoader"
_OF_DICTS = ("items", "values")


@dataclass(frozen=True, slots=True)
class Batch:
    """The variable of a loop over plain `DataLoader`s, and the loaders that the loop may go over."""

    store: ast.Name
    loaders: tuple[Instance, ...]


def batch_of(site: CallSite, tensor: ast.expr) -> Batch | None:
    """The batch that a tensor is, or is a part of; None if it comes from elsewhere."""
    root = _root(tensor)
    while root is not None and (iterated := _iterated(site.model, root)) is not None:
        root = _root(iterated)
    if root is None:
        return None
    bound = flow_around(site.model, root).used.get(root)
    loops = [loop for loop in loops_around(site.model, site.node) if isinstance(loop, ast.For)]
    loop = next((each for each in loops if root.id in names_in(each.target)), None)
    if bound is None or loop is None or not any(bound.node is part for part in walk(loop.target)):
        return None
    loaders = _plain_loaders(site, loop.iter)
    return Batch(bound.node, loaders) if isinstance(bound.node, ast.Name) and loaders else None


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _iterated(model: Model, name: ast.Name) -> ast.expr | None:
    """The expression whose elements a comprehension binds to a name: `batch` of `for k, v in batch.items()`."""
    for outer, inner in outward_in_function(model, name):
        if isinstance(outer, COMPREHENSIONS):
            for generator in reversed(_visible(outer.generators, inner, name)):
                if any(isinstance(each, ast.Name) and each.id == name.id for each in targets(generator.target)):
                    return _without_items(generator.iter)
    return None


def _visible(generators: list[ast.comprehension], part: ast.AST, name: ast.Name) -> list[ast.comprehension]:
    """The generators whose names a name in a part of their comprehension sees; an iterable sees those before it."""
    for index, generator in enumerate(generators):
        if part is generator:
            is_iterated = any(node is name for node in walk(generator.iter))
            return generators[: index + (not is_iterated)]
    return generators


def _without_items(over: ast.expr) -> ast.expr:
    """`batch` for `batch.items()` and `batch.values()`."""
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in _OF_DICTS:
        return over.func.value
    return over


def _plain_loaders(site: CallSite, over: ast.expr) -> tuple[Instance, ...]:
    """The `DataLoader`s that a loop iterates over, also in `enumerate` and progress bars; empty if there may be others.

    Other iterables may make new tensors, which are not pinned. A loop over None raises an error.
    """
    while isinstance(over, ast.Call) and over.args and _passes_elements(site.model, over):
        over = over.args[0]
    members = [each for each in site.value(over).members if each != NONE]
    loaders = [
        each for each in members if isinstance(each, Instance) and each.cls == LOADER and each.arguments is not None
    ]
    return tuple(loaders) if len(loaders) == len(members) else ()


def _passes_elements(model: Model, call: ast.Call) -> bool:
    """True if a call gives the elements of its first argument as they are."""
    target = model.target(call)
    return target in _PASSES or (target == "builtins.iter" and len(call.args) == 1)


_PASSES = frozenset(("builtins.enumerate", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.std.tqdm"))


def takes_non_blocking(batch: Batch, moved: ast.expr) -> bool:
    """True if `to` of a part of a batch is that of tensors. A function that collates may make other objects."""
    if all(loader.argument("collate_fn") in (None, NONE) for loader in batch.loaders):
        return True
    while isinstance(moved, ast.Subscript):
        if isinstance(moved.slice, ast.Constant) and isinstance(moved.slice.value, str):
            return True
        moved = moved.value
    return isinstance(moved, ast.Name) and moved.id != batch.store.id


def is_only_read(model: Model, batch: Batch) -> bool:
    """True if the loop only reads its batches on the CPU: the copies on the device belong to others."""
    uses = Uses(model, copies=True)
    uses.name(batch.store)
    return uses.fates <= HARMLESS


@dataclass(frozen=True, slots=True)
class Pinning:
    """The edits that pin the batches of loaders, and the imports that they need."""

    edits: tuple[Edit, ...]
    imports: tuple[str, ...]


def pinning(model: Model, batch: Batch) -> Pinning | None:
    """`pin_memory=` for the loaders of a batch; None if one is made in another file, or says something about it."""
    edits: list[Edit] = []
    imports: list[str] = []
    for loader in batch.loaders:
        made = call_of(model, loader)
        call = None if made is None else model.call(made)
        if call is None or not is_off(call, "pin_memory") or call.has_unpacking or not may_pin(call, loader):
            return None
        asks = spell(model.symbols, "torch.cuda.is_available", call.node)
        new = None if asks is None else with_argument(call.concrete, f"pin_memory={asks.text}()")
        if asks is None or new is None:
            return None
        edits.append(replace(model.source, call.span, new))
        imports += asks.imports
    return Pinning(tuple(dict.fromkeys(edits)), tuple(dict.fromkeys(imports)))
