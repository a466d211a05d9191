"""Advice for a place: by the use of a value that is read, and by the source of a tensor that is copied."""

from __future__ import annotations

import ast

from perflint.rules._wholes import is_added_up, is_same_each_turn, whole_of
from perflint.rules.placement import LEGACY_CONSTRUCTORS
from perflint.semantics.dataflow.destinations import Use
from perflint.semantics.dataflow.origins import Origin, Source
from perflint.semantics.facts import torch_api
from perflint.semantics.sites import CallSite, Site
from perflint.semantics.values import Const, Instance
from perflint.source.quoting import quoted

_READ = {
    Use.ACTION: "The environment takes a number of the CPU, so this wait stays: read all actions of a step at once.",
    Use.BYTES: "Bytes are made on the CPU, so this wait stays: read all numbers that are written at once.",
    Use.TEST: "Test a value that is already on the CPU, or test only every 100 steps.",
    Use.SIZE: "Get the size on the CPU: from a shape, the collate function or the settings.",
    Use.INDEX: "Index a tensor with the tensor itself, or get the index on the CPU.",
    Use.KEY: "The CPU needs the key: read all keys of a step at once, or get it before the tensor goes to the GPU.",
    Use.SUM: "Sum on the GPU (`total += {0}.detach()`) and read the sum after the loop.",
    Use.LOG: "Log every 100 steps, or keep `{0}.detach()` and read many at once.",
    Use.LIST: "Append `{0}.detach()` and read all of them at once after the loop: `torch.stack(xs).tolist()`.",
    Use.KEPT: "Keep the tensor (`{0}.detach()`) and read it when the number is needed.",
    Use.RETURNED: "Return the tensor, so that the caller decides when to read it.",
    Use.OTHER: "Keep the number on the GPU, or read it every 100 steps, together with others.",
}
_COPIED = {
    Use.ACTION: "The environment takes numbers of the CPU, so this wait stays: copy all that a step needs at once.",
    Use.TEST: "Test a value that is already on the CPU, or test only every 100 steps.",
    Use.LOG: "Log every 100 steps, or keep `x.detach()` and copy many at once.",
    Use.LIST: "Keep the results on the GPU and copy them all at once after the loop.",
}
_WAITS_HERE = (
    "The CPU waits here and the GPU runs dry. If the value is needed on the CPU, copy it later (`non_blocking=True`"
    " and an event), or several at once."
)


def use_of(site: Site, node: ast.expr | None = None) -> Use:
    """The use of the value at a site, or of a part of it."""
    return site.model.destinations.of(node or site.node)


def source_of(site: Site, node: ast.expr) -> Origin:
    """The origin of the tensor in an expression."""
    return site.model.origins.of(node)


def read_later(site: Site, node: ast.expr, tensor: ast.expr) -> str:
    """Advice for a node that reads a number from a tensor on the GPU."""
    name = tensor.id if isinstance(tensor, ast.Name) else "x"
    return _READ[use_of(site, node)].format(name)


def copied_later(site: Site) -> str:
    """Advice for a copy to the CPU."""
    whole = whole_of(site) if isinstance(site, CallSite) else None
    if whole is not None:
        return f"Copy all of {quoted(site.text(whole))} at once before the loop."
    if isinstance(site, CallSite) and is_same_each_turn(site):
        return "Copy it once before the loop: it is the same in each iteration."
    if isinstance(site, CallSite) and is_added_up(site):
        return "Add up on the GPU, and copy the sum after the loop."
    use = use_of(site)
    return _WAITS_HERE if use is Use.LIST and not _repeats(site) else _COPIED.get(use, _WAITS_HERE)


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
    origin = source_of(site, node)
    tensor = site.value(node).tensor
    also = "" if is_asynchronous else " and pass `non_blocking=True`"
    if tensor is not None and tensor.pinned and also:
        return "The memory is pinned: pass `non_blocking=True`."
    if origin.source is Source.BATCH:
        alone = "; without workers (`num_workers`), the training process pins each batch itself"
        end = alone if _is_without_workers(site, origin) else ""
        return f"Let {_loader(site, origin)} pin its batches (`pin_memory=True`){also}{end}."
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
    return f"Make it on the GPU (`device=`), or keep it in pinned memory{also}."


def _loader(site: Site, origin: Origin) -> str:
    """The loader that a batch comes from: `loader` of `enumerate(tqdm(loader))`."""
    node = _iterated(origin)
    is_loader = isinstance(node, (ast.Name, ast.Attribute)) and bool(_loaders(site, node))
    return quoted(site.text(node)) if is_loader and isinstance(node, ast.expr) else "the DataLoader"


def _is_without_workers(site: Site, origin: Origin) -> bool:
    """True if all loaders that a batch may come from are known to have no workers."""
    node = _iterated(origin)
    loaders = _loaders(site, node) if isinstance(node, ast.expr) else []
    return bool(loaders) and all(
        loader.arguments is not None and loader.argument("num_workers") in (None, Const(0)) for loader in loaders
    )


def _iterated(origin: Origin) -> ast.expr | ast.arg:
    node = origin.node
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args and node.func.id != "DataLoader":
        node = node.args[0]
    return node


def _loaders(site: Site, node: ast.expr) -> list[Instance]:
    members = site.value(node).members
    return [each for each in members if isinstance(each, Instance) and each.cls.endswith("DataLoader")]


def _takes_device(site: Site, call: ast.Call) -> bool:
    """True if a function of torch makes a tensor on the CPU unless it is given a device."""
    facts = torch_api.result(site.model.target(call))
    shares_memory = site.model.target(call) in ("torch.from_numpy", "torch.frombuffer", "torch.from_dlpack")
    return facts is not None and facts.device == "cpu-factory" and not shares_memory
