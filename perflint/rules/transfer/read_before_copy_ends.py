"""TPF215: memory that the CPU reads or fills while a copy still runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._memory.flows import flow_around, uses_of_target
from perflint.rules._methods import calls_named, is_true
from perflint.rules._operators import operators
from perflint.rules._visible import is_local
from perflint.rules.base import CallSite, Files, FileSite, Rule, shown
from perflint.rules.sync._waiting import goes_to_cpu, is_filled_again
from perflint.semantics.around import loops_around
from perflint.semantics.binders import LOOPS
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, keyword, last_name, path_of, root_of, walk
from perflint.semantics.values import Device, Value

_WAITS = re.compile(r"sync|wait|event|barrier|query|elapsed", re.IGNORECASE)
_READS = frozenset({"item", "tolist", "cpu", "numpy", "print", "float", "int", "bool"})
"""Calls that wait for all work of a stream if they get a tensor on the GPU."""
_KEEPS = operators("copies", "keeps")
"""Methods and attributes that do not read the elements, or only where their result is read."""
_TAKES = ("torch.", "numpy.", "builtins.float", "builtins.int", "builtins.bool", "builtins.print", "builtins.str")
_FILLS = frozenset({"copy_", "fill_", "zero_", "random_", "normal_", "uniform_"})
_MOST_USES = 12


class ReadBeforeCopyEnds(Rule):
    """The CPU reads or fills memory while an asynchronous copy of it still runs.

    ## What it does
    Finds `x.to("cpu", non_blocking=True)` and `host.copy_(x, non_blocking=True)` whose result the same function reads
    without a wait, and pinned tensors that a loop fills again after `x.copy_(host, non_blocking=True)` or
    `host.to("cuda", non_blocking=True)` without one.

    ## Why is this bad
    `non_blocking=True` returns before the copy has begun. A read on the CPU sees what was in the memory before; a write
    changes what the GPU is about to get. Results are wrong now and then, without an error. It is a warning because
    results are wrong, not because of what it costs.

    ## When it is fine
    - A wait stands in between: an event, `torch.cuda.synchronize()`, `item()` of a tensor that was computed later.
      Functions that call anything named so are not reported.
    - The result is only kept or returned, and read later.
    - Copies from the CPU to the GPU: work on the GPU waits for them by itself.

    ## Bad
    ```python
    import torch

    @torch.inference_mode()
    def embed(model: torch.nn.Module, loader):
        rows = []
        for batch in loader:
            host = model(batch.cuda(non_blocking=True)).to("cpu", non_blocking=True)
            rows.append(host.numpy().mean(0))
        return rows
    ```

    ## Good
    ```python
    import torch

    @torch.inference_mode()
    def embed(model: torch.nn.Module, loader):
        rows = [model(batch.cuda(non_blocking=True)).mean(0) for batch in loader]
        return torch.stack(rows).cpu().numpy()
    ```

    ## Fix safety
    No fix: a wait belongs behind the work that can run in the meantime.

    ## How a GPU shows it
    Two runs give different results, and the difference goes with `CUDA_LAUNCH_BLOCKING=1`.

    ## References
    - [A guide on good usage of non_blocking and
      pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html): "copying from device to host
      with `non_blocking=True`"
    """

    code, name = "TPF215", "read-before-copy-ends"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Files("non_blocking"),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for copy in calls_named(site, "to", "copy_"):
            if not is_true(keyword(copy.node, "non_blocking")) or copy.owner is None:
                continue
            read = _read(copy) if goes_to_cpu(copy) else None
            if read is not None:
                yield self.finding(
                    copy,
                    f"{shown(site, read)} is read before {shown(copy)} has ended",
                    span=model.source.span(read),
                    help="Wait for an event after the copy first, or copy without `non_blocking`.",
                )
            elif _is_refilled(copy):
                yield self.finding(
                    copy,
                    f"this fills the memory that {shown(copy)} of the last iteration may still read",
                    confidence=Confidence.MEDIUM,
                    span=model.source.span(_refill(copy)),
                    help="Record an event after the copy and wait for it before the memory is filled, or take turns "
                    "with two tensors.",
                )


def _read(copy: CallSite) -> ast.expr | None:
    """The first read of the result of a copy to the CPU, if nothing waits for the copy."""
    model, place = copy.model, copy.model.function(copy.node) or copy.model.source.tree
    is_sent = last_name(copy.node) == "to"
    source = copy.owner if is_sent else copy.argument("src", 0)
    if source is None or _is_on_cpu(model, source) or not (_says_cpu(copy) if is_sent else _is_pinned(copy.receiver)):
        return None
    if any(_WAITS.search(last_name(each)) for each in calls_in(place)):
        return None
    for use in _uses(copy):
        if _is_read(model, use) and not _waits_between(model, copy.node, use):
            return use
    return None


def _uses(copy: CallSite) -> Sequence[ast.expr]:
    """The result of a copy, or the later uses of the name that holds it."""
    model, parent = copy.model, copy.model.parent(copy.node)
    flow = flow_around(model, copy.node)
    if last_name(copy.node) == "copy_":
        holder = copy.owner
        if isinstance(holder, ast.Attribute):
            return _later_in_function(copy, path_of(holder))
        bounds = flow.origins(holder) if isinstance(holder, ast.Name) and is_local(model, holder) else []
    elif isinstance(parent, (ast.DictComp, ast.ListComp)):
        return _elements(model, parent)
    elif isinstance(parent, ast.Assign):
        return uses_of_target(model, parent)
    else:
        return [copy.node]
    reaches = [flow.reach(bound, _MOST_USES) for bound in bounds]
    uses = [use for reach in reaches if reach is not None for use in reach.uses]
    end = (copy.node.end_lineno or 0, copy.node.end_col_offset or 0)
    later = [use for use in uses if (use.lineno, use.col_offset) > end]
    return sorted(later, key=lambda use: (use.lineno, use.col_offset))


def _later_in_function(copy: CallSite, path: str) -> list[ast.expr]:
    """The uses of an attribute such as `self.host` after a copy into it, in the same function."""
    end, function = (copy.node.end_lineno or 0, copy.node.end_col_offset or 0), copy.model.function(copy.node)
    parts = [each for each in walk(function) if isinstance(each, ast.Attribute)] if function is not None else []
    uses: list[ast.expr] = [each for each in parts if path_of(each) == path and (each.lineno, each.col_offset) > end]
    return sorted(uses, key=lambda use: (use.lineno, use.col_offset)) if path else []


def _elements(model: Model, made: ast.DictComp | ast.ListComp) -> list[ast.expr]:
    """The names under which loops use the elements of a new list, or the values of a new dict."""
    found: list[ast.expr] = []
    for use in uses_of_target(model, model.parent(made)):
        items: ast.AST | None = use
        if isinstance(made, ast.DictComp):
            method = model.parent(use)
            call = None if method is None else model.parent(method)
            is_method = isinstance(method, ast.Attribute) and method.attr in ("items", "values")
            items = call if is_method and isinstance(call, ast.Call) else None
        loop = None if items is None else model.parent(items)
        if isinstance(loop, (ast.comprehension, ast.For)) and loop.iter is items:
            around = loop if isinstance(loop, ast.For) else model.parent(loop)
            target = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) else loop.target
            names = [each for each in walk(around) if isinstance(each, ast.Name)] if around is not None else []
            if isinstance(target, ast.Name):
                found += [each for each in names if each.id == target.id and isinstance(each.ctx, ast.Load)]
    return found


def _says_cpu(copy: CallSite) -> bool:
    given = [*copy.node.args, *(each.value for each in copy.node.keywords if each.arg == "device")]
    return any("cpu" in ast.unparse(each) for each in given)


def _is_read(model: Model, place: ast.expr) -> bool:
    """True if the CPU needs the elements of a tensor at a place, or those of a view of it."""
    waiting, seen = [place], set()
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        parent = model.parent(place)
        if isinstance(parent, ast.Attribute):
            call = model.parent(parent)
            is_called = isinstance(call, ast.Call) and call.func is parent
            if parent.attr not in _KEEPS and is_called:
                return True
            waiting += [call if is_called else parent] if parent.attr in _KEEPS else []  # type: ignore[list-item]
        elif isinstance(parent, ast.Subscript):
            waiting += [parent] if parent.value is place and isinstance(parent.ctx, ast.Load) else []
        elif isinstance(parent, ast.Assign):
            waiting += uses_of_target(model, parent)
        elif isinstance(parent, (ast.BinOp, ast.Compare, ast.FormattedValue)) or _takes(model, parent):
            return True
    return False


def _takes(model: Model, parent: ast.AST | None) -> bool:
    """True for a call of a function that reads its argument."""
    target = model.target(parent) if isinstance(parent, ast.Call) else ""
    return target.startswith(_TAKES) and target not in ("torch.from_numpy", "numpy.asarray")


def _refill(copy: CallSite) -> ast.expr:
    """The place in the loop around a copy that fills its memory; the copy itself if that is not seen."""
    source = copy.argument("src", 0) if last_name(copy.node) == "copy_" else copy.owner
    loop = next(loops_around(copy.model, copy.node), copy.node)
    for part in walk(loop):
        is_store = isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)
        is_method = isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _FILLS
        if source is not None and (is_store or is_method) and root_of(part) == root_of(source):
            return part  # type: ignore[return-value]
    return copy.node


def _waits_between(model: Model, copy: ast.Call, use: ast.expr) -> bool:
    """True if a tensor is read in between: that waits for all work before."""
    begin, end = (copy.end_lineno or 0, copy.end_col_offset or 0), (use.lineno, use.col_offset)
    between = (
        each
        for each in calls_in(model.function(copy) or model.source.tree)
        if begin <= (each.lineno, each.col_offset) < end and last_name(each) in _READS
    )
    around = {*model.ancestors(use)}
    return any(root_of(each) != root_of(use) for each in between if each not in around)


def _is_on_cpu(model: Model, node: ast.expr) -> bool:
    tensor = model.value(node).tensor
    return tensor is not None and tensor.device is Device.CPU


def _is_pinned(value: Value | None) -> bool:
    """True for pinned memory: a copy to other memory on the CPU ends before the call does."""
    tensor = None if value is None else value.tensor
    return tensor is not None and tensor.pinned


def _is_refilled(copy: CallSite) -> bool:
    """True if a loop fills pinned memory again that a copy to the GPU reads, and nothing waits in it."""
    source = copy.argument("src", 0) if last_name(copy.node) == "copy_" else copy.owner
    loop = next(loops_around(copy.model, copy.node), None)
    if source is None or not _is_pinned(copy.value(source)) or not isinstance(loop, LOOPS):
        return False
    names = {last_name(each) for each in calls_in(loop)}
    return is_filled_again(copy, loop) and not names & _READS and not any(map(_WAITS.search, names))
