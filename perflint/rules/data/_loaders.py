"""DataLoaders of a file: how they are made, and which loops go over them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from perflint.findings import Fix, Safety
from perflint.fixes.edits import with_one_more
from perflint.rules._memory.flows import flow_around
from perflint.rules._numbers import integer
from perflint.rules._operators import operators
from perflint.rules._sources import unpacked
from perflint.rules._turns import heads, nodes_of
from perflint.rules.placement import MOVES, move
from perflint.semantics.around import loops_around
from perflint.semantics.binders import LOOPS
from perflint.semantics.memo import once, once_per_node
from perflint.semantics.model import Model
from perflint.semantics.module import Module
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import grouped, path_of, walk
from perflint.semantics.values import NONE, Class, Device, Function, Instance, Origin, Sequence, Tensor, Unknown, Value

LOADERS = operators("data", "loaders")
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
For = ast.For | ast.AsyncFor | ast.While
"""A loop over a loader; `while` takes the batches by `next`."""


def passed(site: CallSite, name: str) -> ast.expr | None:
    """The argument of a loader, also of `**options` that the function writes down; None if it is not passed."""
    given = site.argument(name, _POSITIONS.get(name))
    if given is not None or not site.has_unpacking:
        return given
    found, is_all = unpacked(site.model, site.node)
    return found.get(name) if is_all else None


def _is_hidden(site: CallSite) -> bool:
    """True if the call passes unknown arguments."""
    return site.has_unpacking and not unpacked(site.model, site.node)[1]


def workers(site: CallSite) -> int | None:
    """How many workers a loader has; None if that is not known."""
    given = passed(site, "num_workers")
    if given is None:
        return None if _is_hidden(site) else 0
    return integer(site.model, given)


def is_off(site: CallSite, name: str) -> bool:
    """True if an argument is absent, and not hidden behind `**options`."""
    return passed(site, name) is None and not _is_hidden(site)


def loops_over(model: Model, call: ast.Call) -> Iterator[For]:
    """The loops of the file over the loader that a call makes."""
    made = {member.origin for member in model.value(call).members if isinstance(member, Instance)}
    yield from dict.fromkeys(loop for origin in made for loop in _loops_by_origin(model).get(origin, ()))


@once
def _loops_by_origin(model: Model) -> dict[Origin | None, list[For]]:
    """The loops of a file, by the places that made the objects in their iterables."""
    loops: list[For] = [*model.nodes(ast.For), *model.nodes(ast.AsyncFor), *model.nodes(ast.While)]
    parts = ((loop, part) for loop, part in _iterated(model, loops) if isinstance(part, ast.expr))
    made = ((member, loop) for loop, part in parts for member in model.value(part).members)
    return grouped((member.origin, loop) for member, loop in made if isinstance(member, Instance) and member.origin)


def _iterated(model: Model, loops: Iterable[For]) -> Iterator[tuple[For, ast.AST]]:
    """The parts of the iterables of some loops, each with its loop."""
    for loop in loops:
        for _, over in heads(model, loop):
            for part in walk(over):
                yield loop, part


@once_per_node
def _loops(model: Model, code: ast.AST) -> dict[str, list[For]]:
    """The loops of a function, by the names and attributes in their iterables."""
    loops = (node for node in walk(code) if isinstance(node, LOOPS))
    return grouped((path, loop) for loop, part in _iterated(model, loops) if (path := path_of(part)))


def bound_to(model: Model, call: ast.Call) -> str:
    """The name or attribute of `self` that a loader is bound to; empty if there is none."""
    parent = model.parent(call)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return path_of(parent.targets[0])
    return path_of(parent.target) if isinstance(parent, ast.AnnAssign) else ""


def loops_in_callees(model: Model, call: ast.Call, *, again: bool) -> Iterator[For]:
    """The loops over a loader in functions of the file that get it; with `again`, again and again, as in each epoch."""
    for module, loop, passed_on in _loops_of_takers(model, call):
        if module is model.module and (not again or next(loops_around(model, passed_on), None) is not None):
            yield loop


def is_looped_in(model: Model, call: ast.Call, loop: ast.AST) -> bool:
    """True if a loop passes a loader on to a function of the project that goes over it."""
    return any(loop in model.ancestors(passed_on) for _, _, passed_on in _loops_of_takers(model, call))


def _loops_of_takers(model: Model, call: ast.Call) -> Iterator[tuple[Module, For, ast.Call]]:
    """The loops over a loader in functions of the project that get it, with the calls that pass it on."""
    path = bound_to(model, call)
    if not path or "." in path:
        return
    for each, given in _passing(model, model.function(call) or model.source.tree).get(path, ()):
        for taker in model.value(each.func).members:
            found = model.view.function(taker)
            if found is None or not isinstance(taker, Function) or not isinstance(found[1].node, ast.FunctionDef):
                continue
            home, function = found[0], found[1].node
            # A bound method gets its object first.
            ordered = [arg.arg for arg in function.args.args][taker.receiver is not None :]
            name = given if isinstance(given, str) else ordered[given] if given < len(ordered) else ""
            yield from ((home, loop, each) for loop in _loops(model, function).get(name, ()))


def takers(model: Model, call: ast.Call) -> Iterator[Path]:
    """The files of the functions and classes of the project that get a loader, or are called for its batches."""
    path, parent = bound_to(model, call), model.parent(call)
    parent = model.parent(parent) if isinstance(parent, ast.keyword) else parent
    calls = [parent] if isinstance(parent, ast.Call) else []
    calls += [part for loop in loops_over(model, call) for part in nodes_of(model, loop) if isinstance(part, ast.Call)]
    if path:
        calls += [each for each, _ in _passing(model, model.function(call) or model.source.tree).get(path, ())]
    for callee in (member for each in calls for member in model.value(each.func).members):
        home = model.view.loaded(callee.module) if isinstance(callee, Function) else None
        found = model.view.klass(callee.name) if isinstance(callee, Class) else None
        if home is not None or found is not None:
            yield home.path if home is not None else found[0].path  # type: ignore[index]


@once_per_node
def _passing(model: Model, body: ast.AST) -> dict[str, list[tuple[ast.Call, int | str]]]:
    """The calls of a function or file by the names and attributes that they pass, with position or keyword."""
    found: dict[str, list[tuple[ast.Call, int | str]]] = {}
    for call in walk(body):
        if isinstance(call, ast.Call) and (model.function(call) or model.source.tree) is body:
            given: list[tuple[int | str, ast.expr]] = [*enumerate(call.args)]
            given += [(each.arg, each.value) for each in call.keywords if each.arg is not None]
            for place, value in given:
                if path := path_of(value):
                    found.setdefault(path, []).append((call, place))
    return found


def repeats(model: Model, loop: For) -> bool:
    """True if a loop over a loader is run again and again, by a loop around it."""
    return next(loops_around(model, loop), None) is not None


@once_per_node
def move_in(model: Model, loop: For) -> CallSite | None:
    """The first call in a loop over a loader that moves something to the device, unless it may be there already."""
    for part in nodes_of(model, loop):
        if isinstance(part, ast.Call):
            site = model.call(part)
            if site.target in MOVES and move(site) is not None and not _may_be_there(site.receiver):
                return site
    return None


def _may_be_there(moved: Value | None) -> bool:
    """True if a value is a tensor, or batch of tensors, that is not known to be on the CPU."""
    tensor = moved.element if isinstance(moved, Sequence) else moved
    return isinstance(tensor, Tensor) and tensor.off_host


def added(
    site: CallSite,
    argument: str,
    message: str,
    *imports: str,
    safety: Safety = Safety.UNSAFE,
    proof: str | None = None,
) -> Fix | None:
    """The fix that adds an argument to a loader."""
    edit = None if site.has_unpacking else with_one_more(site.model.source, site.node, argument)
    return None if edit is None else Fix(message, safety, (edit,), imports, proof=proof)


def is_given(site: CallSite, name: str) -> bool:
    """True if an argument is passed, and may be other than None."""
    given = passed(site, name)
    return given is not None and site.value(given) != NONE


def may_pin(site: CallSite, made: Instance | None = None) -> bool:
    """True unless the dataset of a loader may hold tensors of the GPU, which cannot be pinned.

    So for `TensorDataset(x.to(device))` and `torch.load(path)`. `made` is the loader itself, if it is known.
    """
    dataset = passed(site, "dataset")
    if dataset is None:
        return True
    value = None if made is None else made.argument("dataset")
    return not _is_from_file(site.model, dataset) and _are_on_host(value or site.value(dataset))


def _is_from_file(model: Model, dataset: ast.expr) -> bool:
    """True if `torch.load` reads a part of an expression, and not to the CPU: the file may hold tensors of the GPU."""
    for part in walk(dataset):
        origins = flow_around(model, part).origins(part) if isinstance(part, ast.Name) else []
        for each in (part, *(origin.value for origin in origins if origin.whole)):
            if isinstance(each, ast.Call) and model.target(each) == "torch.load" and not _is_on_host(model, each):
                return True
    return False


def _is_on_host(model: Model, node: ast.expr) -> bool:
    value = model.value(node)
    return isinstance(value, Unknown) and value.near is Device.CPU


def _are_on_host(dataset: Value) -> bool:
    return all(_may_pin(member) for member in dataset.members)


def _may_pin(value: Value) -> bool:
    if isinstance(value, Instance):
        if value.arguments is None:
            return value.cls != _OF_TENSORS
        return all(_are_on_host(given) for _, given in value.arguments)
    if isinstance(value, Sequence):
        return _are_on_host(value.element)
    if isinstance(value, Unknown):
        return value.near in (Device.UNKNOWN, Device.CPU)
    return not isinstance(value, Tensor) or not value.off_host


_OF_TENSORS = "torch.utils.data.TensorDataset"
