"""Advice for a place: by the use of a value that is read, and by the source of a tensor that is copied."""

from __future__ import annotations

import ast

from perflint.rules._branches import tested
from perflint.rules.placement import LEGACY_CONSTRUCTORS
from perflint.semantics.around import statement_of
from perflint.semantics.dataflow.destinations import End, Use
from perflint.semantics.dataflow.origins import Origin, Source
from perflint.semantics.facts import torch_api
from perflint.semantics.purpose.wholes import is_added_up, is_same_each_turn, whole_of
from perflint.semantics.sites import CallSite, Site
from perflint.semantics.structure import walk
from perflint.semantics.values import Const, Instance, Kind
from perflint.source.quoting import quoted

_READ = {
    Use.ACTION: "The environment takes a number of the CPU, so this wait stays: read all actions of a step at once.",
    Use.BYTES: "Bytes are made on the CPU, so this wait stays: read all numbers that are written at once.",
    Use.SETTING: "The optimizer needs the number in this step: compute it on the CPU, from values that are there.",
    Use.SIZE: "Get the size on the CPU: from a shape, the collate function or the settings.",
    Use.INDEX: "Index a tensor with the tensor itself, or get the index on the CPU.",
    Use.KEY: "The CPU needs the key: read all keys of a step at once, or get it before the tensor goes to the GPU.",
    Use.SUM: "Add up on the GPU, with {0} in place of the number, and read the sum {1}.",
    Use.LOG: "Log every 100 steps, or keep {0} and read many at once.",
    Use.LIST: "Append {0}, and read all of them at once {1}: `torch.stack(…).tolist()`.",
    Use.KEPT: "Keep {0}, and read it when the number is needed.",
    Use.RETURNED: "Return the tensor, so that the caller decides when to read it.",
    Use.OTHER: "Keep the number on the GPU, or read it together with others: several numbers need one wait.",
}
"""Advice for a read, by the use of its number; `_branches` has that for tests."""
_COPIED = {
    Use.ACTION: "The environment takes numbers of the CPU, so this wait stays: copy all that a step needs at once.",
    Use.LOG: "Log every 100 steps, or keep {0} and copy many at once.",
    Use.LIST: "Keep the results on the GPU and copy them all at once after the loop.",
    Use.RETURNED: "Return the tensor on the GPU, so that the caller decides when to copy it.",
}
_WAITS_HERE = (
    "The CPU waits here and the GPU runs dry. If the value is needed on the CPU, copy it later (`non_blocking=True`"
    " and an event), or several at once."
)
_CASTS = frozenset("float double half long int bool detach contiguous".split())
_STAYS = (Use.ACTION, Use.BYTES, Use.SETTING)
"""Uses that need the number in this step, whatever else it is used for."""
_MAY_WAIT = frozenset({Use.SUM, Use.LOG, Use.LIST, Use.KEPT, Use.RETURNED})
"""Uses that can have the tensor now and the number later."""
_LONGEST_NAME = 40
"""Characters of the code of a tensor that advice repeats."""


def use_of(site: Site) -> Use:
    """The use of the value at a site."""
    return site.model.destinations.of(site.node)


def source_of(site: Site, node: ast.expr) -> Origin:
    """The origin of the tensor in an expression."""
    return site.model.origins.of(node)


def read_later(site: Site, node: ast.expr, tensor: ast.expr) -> str:
    """Advice for a node that reads a number from a tensor on the GPU."""
    end = _end(site, node)
    if end.use is Use.TEST:
        return tested(site.model, end.node)
    when = "after the loop" if _repeats(site) else "when it is needed"
    return _READ[end.use].format(_detached(site, tensor), when)


def _end(site: Site, node: ast.expr) -> End:
    """The use that decides when a value is needed on the CPU, one of `Use.OTHER` if its uses differ too much."""
    ends = site.model.destinations.ends(node)
    uses = {end.use for end in ends}
    other = End(Use.OTHER, node)
    for use in _STAYS:
        if use in uses:
            return End(use, node)
    now = uses - _MAY_WAIT
    if len(uses) == 1 or len(now) == 1:
        found = next(iter(now or uses))
        places = [end for end in ends if end.use is found]
        # Tests that decide on different code need different advice.
        return places[0] if found is not Use.TEST or len(set(_tests(site, places))) == 1 else other
    return End(Use.KEPT, node) if uses and not now else other


def _tests(site: Site, ends: list[End]) -> list[str]:
    return [tested(site.model, end.node) for end in ends]


def _detached(site: Site, tensor: ast.expr) -> str:
    """The code that gives a tensor without its graph, if it is short."""
    text = site.text(tensor)
    if len(text) > _LONGEST_NAME or "\n" in text:
        return "the tensor (`.detach()`)"
    value = site.value(tensor).tensor
    if any(map(_detaches, walk(tensor))) or (value is not None and value.kind in (Kind.BOOL, Kind.INT)):
        return f"`{text}`"
    is_primary = isinstance(tensor, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return f"`{text}.detach()`" if is_primary else f"`({text}).detach()`"


def _detaches(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("detach", "data")


def copied_later(site: Site) -> str:
    """Advice for a copy to the CPU."""
    if not isinstance(site, CallSite) or not isinstance(site.node.func, ast.Attribute):
        return _WAITS_HERE
    whole = whole_of(site)
    if whole is not None:
        return f"Copy all of {quoted(site.text(whole))} at once before the loop."
    if is_same_each_turn(site):
        return "Copy it once before the loop: it is the same in each iteration."
    if is_added_up(site):
        return "Add up on the GPU, and copy the sum after the loop."
    tensor = site.node.func.value
    around = site.model.parent(site.node)
    if isinstance(around, ast.Attribute) and around.attr == "item":
        read = site.model.parent(around)
        return read_later(site, read if isinstance(read, ast.expr) else site.node, tensor)
    end = _end(site, site.node)
    if end.use is Use.TEST:
        return tested(site.model, end.node)
    if end.use is Use.LIST and not _repeats(site):
        return _WAITS_HERE
    return _COPIED.get(end.use, _WAITS_HERE).format(_detached(site, tensor))


def _repeats(site: Site) -> bool:
    """True if a loop of the same function surrounds a place."""
    for outer in site.model.ancestors(site.node):
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.While, ast.comprehension, ast.ListComp, ast.GeneratorExp)):
            return True
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
    return False


def uploaded(site: Site, node: ast.expr, is_asynchronous: bool = False) -> str:
    """Advice for a copy of a tensor to the GPU that blocks, even if it is written as asynchronous."""
    back = _copied_back(site)
    if back is not None:
        return f"Keep it on the CPU: line {back} only copies it back."
    origin = source_of(site, node)
    tensor = site.value(node).tensor
    also = "" if is_asynchronous else " and pass `non_blocking=True`"
    if tensor is not None and tensor.pinned and also:
        return "The memory is pinned: pass `non_blocking=True`."
    if origin.source is Source.BATCH:
        return _of_batch(site, origin, also)
    if origin.source is Source.MADE and isinstance(origin.node, ast.Call) and _takes_device(site, origin.node):
        maker = quoted(site.text(origin.node.func))
        if site.model.target(origin.node) in LEGACY_CONSTRUCTORS:
            return f"Make it on the GPU with `torch.tensor(…, device=…)`: {maker} takes no GPU."
        return f"Make it on the GPU: pass `device=` to {maker}."
    if origin.source is Source.LITERAL:
        return "Make it once and keep it on the GPU, in a buffer or before the loop."
    if origin.source is Source.STATE:
        return f"Keep it on the GPU, or keep a pinned copy of it{also}."
    if origin.source is Source.PARAMETER:
        return f"Let the callers of this function pin {quoted(origin.root)}{also}, or let them make it on the GPU."
    return f"Compute it on the GPU if the GPU has the data. Else keep it in pinned memory{also}."


def _copied_back(site: Site) -> int | None:
    """The line of the first copy to the CPU, if a name for the result is used for nothing but such copies."""
    statement = statement_of(site.model, site.node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, ast.Name) or not isinstance(statement, ast.Assign):
        return None
    moved = statement.value
    while moved is not site.node:
        if (
            not isinstance(moved, ast.Call)
            or not isinstance(moved.func, ast.Attribute)
            or moved.func.attr not in _CASTS
        ):
            return None
        moved = moved.func.value
    uses = [site.model.parent(load) for load in site.model.destinations.later(target)]
    copies = [use for use in uses if isinstance(use, ast.Attribute) and use.attr in ("cpu", "tolist", "numpy")]
    return copies[0].lineno if copies and len(copies) == len(uses) else None


def _of_batch(site: Site, origin: Origin, also: str) -> str:
    """Advice for a batch: its loader pins it, or is known not to, or may do either."""
    assert isinstance(origin.node, ast.expr)
    members = site.value(origin.node).members
    loaders = [each for each in members if isinstance(each, Instance) and each.cls.endswith("DataLoader")]
    is_name = isinstance(origin.node, (ast.Name, ast.Attribute)) and bool(loaders)
    name = quoted(site.text(origin.node)) if is_name else "the DataLoader"
    if len(loaders) < len(members) or not all(map(_is_written_out, loaders)):
        # Another function, or a class of the project, may have turned it on.
        start = "Pass `non_blocking=True`, with" if also else "Let the copy come from pinned memory, with"
        return f"{start} `pin_memory=True` in {name} if that is not there yet."
    alone = "; without workers (`num_workers`), the training process pins each batch itself"
    without = all(loader.argument("num_workers") in (None, Const(0)) for loader in loaders)
    return f"Let {name} pin its batches (`pin_memory=True`){also}{alone if without else ''}."


def _is_written_out(loader: Instance) -> bool:
    """True if all arguments of a plain `DataLoader` are known."""
    return loader.cls == "torch.utils.data.DataLoader" and loader.arguments is not None


def _takes_device(site: Site, call: ast.Call) -> bool:
    """True if a function of torch makes a tensor on the CPU unless it is given a device."""
    facts = torch_api.result(site.model.target(call))
    shares_memory = site.model.target(call) in ("torch.from_numpy", "torch.frombuffer", "torch.from_dlpack")
    return facts is not None and facts.device == "cpu-factory" and not shares_memory
