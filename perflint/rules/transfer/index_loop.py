"""TPF208: a Python loop over the index of a tensor that fills another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.frozen import dataclass
from perflint.rules._methods import call_site
from perflint.rules.base import Files, Rule
from perflint.rules.placement import weakest
from perflint.rules.sync._words import often, quoted
from perflint.semantics.model import Model
from perflint.semantics.sites import FileSite, Site, device_confidence
from perflint.semantics.structure import names_in, walk
from perflint.source.concrete import cst


@dataclass(frozen=True, slots=True)
class _Filled:
    """`out[i] = …x[i]…` in a loop whose turns do not need each other."""

    store: ast.Subscript
    read: ast.Subscript
    confidence: Confidence


class IndexLoop(Rule):
    """A loop over an index computes a tensor element by element.

    ## What it does
    Finds `for i in range(n)` loops that store `out[i] = …` from `x[i]`, both on the device, with nothing
    but Python and torch in the body and no turn that needs the one before.

    ## Why is this bad
    Each turn launches several kernels for one row: n times the launches of the same operation on the
    whole tensor, each too small for the device. Maintainers who wrote such loops anew report gains of 12
    to 300 times for the function. It has not been measured here.

    ## When it is fine
    - Recurrences: a turn reads what the one before has written. They are not reported.
    - A function that knows no batches: `torch.func.vmap` may help. Rows of different lengths take a mask.
    - A handful of turns over large rows, to save memory.

    ## Bad
    ```python
    import torch

    class Normalise(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            out = torch.empty_like(x)
            for i in range(x.shape[0]):
                out[i] = x[i] / x[i].norm()
            return out
    ```

    ## Good
    ```python
    import torch

    class Normalise(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            return x / x.flatten(1).norm(dim=1).view(-1, *[1] * (x.dim() - 1))
    ```

    ## Fix safety
    No fix: which operation does it for all rows depends on the body.

    ## How a GPU shows it
    A profile repeats the same short list of operators, `aten::select` first, once for each row.

    ## References
    - [torch.func.vmap](https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html)
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code, name = "TPF208", "index-loop"
    effect, severity = Effect.COMPUTE, Severity.INFO
    listens = (Files("in range("),)

    def check(self, node: cst.CSTNode, site: FileSite) -> Iterator[Finding]:
        for loop in site.model.nodes(ast.For):
            found = _filled(site.model, loop)
            if found is None:
                continue
            at = Site(site.model, found.store)
            yield self.finding(
                at,
                f"{quoted(site.text(found.store))} is computed from {quoted(site.text(found.read))} row by row: each "
                f"turn of the loop launches kernels of its own{often(at)}",
                confidence=found.confidence,
                help="Compute all rows at once, or with `torch.func.vmap`.",
            )


def _filled(model: Model, loop: ast.For) -> _Filled | None:
    if not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, ast.Call):
        return None
    if model.target(loop.iter) != "builtins.range" or not _is_plain(model, loop):
        return None
    index = loop.target.id
    for statement in loop.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Subscript):
            continue
        store = statement.targets[0]
        read = _read(model, statement.value, index)
        if read is None or not _is_at(store, index) or _is_read_too(loop, store):
            continue
        sure = [device_confidence(model.value(node.value)) for node in (store, read)]
        if sure[0] is not None and sure[1] is not None:
            return _Filled(store, read, weakest(sure[0], sure[1]))
    return None


def _is_plain(model: Model, loop: ast.For) -> bool:
    """Whether a body is assignments alone, of Python and torch, with no name that a turn hands to the next."""
    bound: set[str] = set()
    for statement in loop.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        if any(isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom)) for part in walk(statement)):
            return False
        calls = [part for part in walk(statement.value) if isinstance(part, ast.Call)]
        if not all(_is_known(call_site(model, call).target) for call in calls):
            return False
        target = statement.targets[0]
        if isinstance(target, ast.Name):
            if target.id in names_in(statement.value) - bound:
                return False
            bound.add(target.id)
        elif not isinstance(target, ast.Subscript):
            return False
    return not loop.orelse


def _is_known(target: str) -> bool:
    """Whether a call is of Python or of torch itself: modules and operators of others may know no batches."""
    if target == "torch.nn.Module.__call__" or target.startswith("torch.ops."):
        return False
    return target.startswith(("torch.", "builtins.", "math."))


def _read(model: Model, node: ast.expr, index: str) -> ast.Subscript | None:
    """The first tensor in an expression that is read at the loop's index."""
    for part in walk(node):
        if isinstance(part, ast.Subscript) and _is_at(part, index) and model.value(part.value).tensor is not None:
            return part
    return None


def _is_at(node: ast.Subscript, index: str) -> bool:
    """Whether a tensor is indexed by the loop's variable itself: `x[i]`, `x[:, i]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(part, ast.Name) and part.id == index for part in parts)


def _is_read_too(loop: ast.For, store: ast.Subscript) -> bool:
    """Whether the body also reads what it fills, as recurrences do."""
    owner = ast.dump(store.value).replace("Store()", "Load()")
    same = [
        part
        for statement in loop.body
        for part in walk(statement)
        if isinstance(part, ast.expr) and part is not store.value and ast.dump(part) == owner
    ]
    return bool(same)
