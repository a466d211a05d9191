"""DataLoaders of a file: how they are made, and which loops go over them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Fix, Safety
from perflint.fixes.edits import replace, with_argument
from perflint.rules._methods import call_site
from perflint.rules._places import loops_around
from perflint.rules.data._options import options
from perflint.rules.placement import MOVES, move
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import path_of, walk
from perflint.semantics.values import NONE, Const, Function
from perflint.source.concrete import cst

LOADERS = (
    "torch.utils.data.DataLoader",
    "torch.utils.data.dataloader.DataLoader",
    # It collates graphs, and passes all else on.
    "torch_geometric.loader.DataLoader",
    "torch_geometric.data.DataLoader",
)
_POSITIONS = {
    "dataset": 0,
    "batch_size": 1,
    "shuffle": 2,
    "sampler": 3,
    "batch_sampler": 4,
    "num_workers": 5,
    "collate_fn": 6,
    "pin_memory": 7,
    "drop_last": 8,
}
For = ast.For | ast.AsyncFor


def passed(site: CallSite, name: str) -> ast.expr | None:
    """The argument of a loader, also of `**options` that the function writes down; None where it is not passed."""
    given = site.argument(name, _POSITIONS.get(name))
    return given if given is not None or not site.has_unpacking else (options(site.model, site.node) or {}).get(name)


def _is_hidden(site: CallSite) -> bool:
    """Whether arguments are passed that nobody sees."""
    return site.has_unpacking and options(site.model, site.node) is None


def workers(site: CallSite) -> int | None:
    """How many workers a loader has; None where that is not known."""
    given = passed(site, "num_workers")
    if given is None:
        return None if _is_hidden(site) else 0
    value = site.value(given)
    return value.value if isinstance(value, Const) and type(value.value) is int else None


def is_off(site: CallSite, name: str) -> bool:
    """Whether an argument is absent, and not hidden behind `**options`."""
    return passed(site, name) is None and not _is_hidden(site)


def loops_over(model: Model, call: ast.Call) -> Iterator[For]:
    """The loops of the file that go over a loader: where it is made, or what it is bound to."""
    path = bound_to(model, call)
    function = model.function(call)
    loops: list[For] = [*model.nodes(ast.For), *model.nodes(ast.AsyncFor)]
    for loop in loops:
        for part in walk(loop.iter):
            if part is call:
                yield loop
            elif path and isinstance(part, (ast.Name, ast.Attribute)) and path_of(part) == path:
                if "." in path or model.function(loop) is function:
                    yield loop


def bound_to(model: Model, call: ast.Call) -> str:
    """The name or attribute of `self` that a loader is bound to; empty where there is none."""
    parent = model.parent(call)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return path_of(parent.targets[0])
    return path_of(parent.target) if isinstance(parent, ast.AnnAssign) else ""


def loops_in_callees(model: Model, call: ast.Call) -> Iterator[For]:
    """The loops over a loader in functions of the file that get it again and again, as by a loop over epochs."""
    path = bound_to(model, call)
    for each in model.nodes(ast.Call) if path and "." not in path else ():
        if model.function(each) is not model.function(call) or next(loops_around(model, each), None) is None:
            continue
        value = model.value(each.func)
        at = next((at for at, given in enumerate(each.args) if path_of(given) == path), None)
        if at is None or not isinstance(value, Function) or value.module != model.module.name:
            continue
        info = model.module.function(value.line, value.column)
        node = None if info is None else info.node
        if isinstance(node, ast.FunctionDef) and at < len(node.args.args):
            name = node.args.args[at].arg
            for loop in (part for part in walk(node) if isinstance(part, ast.For)):
                if any(isinstance(part, ast.Name) and part.id == name for part in walk(loop.iter)):
                    yield loop


def repeats(model: Model, loop: For) -> bool:
    """Whether a loop over a loader is run again and again, by a loop around it."""
    return next(loops_around(model, loop), None) is not None


def move_in(model: Model, loop: For) -> CallSite | None:
    """The first call in a loop over a loader that moves something to the device."""
    for part in walk(loop):
        if isinstance(part, ast.Call):
            site = call_site(model, part)
            if site.target in MOVES and move(site) is not None:
                return site
    return None


def added(
    site: CallSite,
    node: cst.CSTNode,
    argument: str,
    message: str,
    *imports: str,
    safety: Safety = Safety.UNSAFE,
    proof: str | None = None,
) -> Fix | None:
    """The fix that adds an argument to a loader."""
    if site.has_unpacking or not isinstance(node, cst.Call):
        return None
    new = with_argument(node, argument)
    if new is None:
        return None
    return Fix(message, safety, (replace(site.model.source, site.span, new),), imports, proof=proof)


def is_given(site: CallSite, name: str) -> bool:
    """Whether an argument is passed, and may be other than None."""
    given = passed(site, name)
    return given is not None and site.value(given) != NONE
