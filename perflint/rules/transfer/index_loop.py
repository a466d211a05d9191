"""TPF208: a Python loop over the index of a tensor that fills another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity, Span
from perflint.rules._methods import in_tests
from perflint.rules.base import Files, FileSite, Rule, Site, often, shown
from perflint.rules.placement import LEGACY_CONSTRUCTORS
from perflint.rules.transfer._rows import Rows, joined_rows, rows
from perflint.rules.worth import cost, sentence
from perflint.semantics.model import Model
from perflint.semantics.structure import path_of, walk


class IndexLoop(Rule):
    """A loop over an index computes a tensor element by element.

    ## What it does
    Finds loops over an index (`for i in range(n)`) or over the rows of tensors (`for row in x`,
    `zip(x, y)`) that store `out[i] = …`, append to a list that is stacked or joined, or add up. The
    body must contain only Python and torch, and iterations must not depend on earlier ones. Also
    finds `torch.stack([f(x[i]) for i in range(n)])`, and loops that fill a tensor number by number.
    If the rows are on the CPU the finding has low confidence.

    ## Why is this bad
    Each iteration launches several kernels for one row: n times the launches of the same operation
    on the whole tensor, each too small for the GPU. On an H200 a training step of a ResNet-50 took
    22% longer if its 64 images were normalised one by one, and 33% longer if the loss of a
    segmentation went over 21 classes one by one. A step of a GPT-2 took 7% longer if its mask of
    1024 rows was filled row by row. A small network took 3.4 times as long if the 256 rows of its
    output were read in a loop. Storing a number takes the CPU some 3.5 µs: a GPT-2 whose batches of
    8193 tokens were filled one by one took 1.9 times as long for a step. Maintainers who rewrote
    such loops report gains of 12 to 300 times for the function.

    ## When it is fine
    - Recurrences: an iteration reads a result of an earlier one. They are not reported.
    - Modules and functions of other libraries, which may not support batches: they are not
      reported.
    - Rows whose size depends on data (`nonzero`, `.item()` as a size), or on a list of lengths:
      they need a mask or padding. They are not reported.
    - A handful of iterations over large rows, to save memory. Literal ranges up to eight are not
      reported.

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
    No fix: the operation for all rows depends on the body.

    ## How a GPU shows it
    A trace counts the parts of tensors that the loop reads and stores in a step. It refutes the finding
    if they are on the CPU, and up to two rows a step count as no cost. A profile repeats the same short
    list of operators, `aten::select` first, once for each row.

    ## References
    - [torch.func.vmap](https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html)
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code, name = "TPF208", "index-loop"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = (
        "rows-in-a-loop-resnet50",
        "classes-in-a-loop-segmentation",
        "rows-in-a-loop-policy",
        "mask-row-by-row-gpt",
        "numbers-one-by-one-gpt",
    )
    listens = (Files("for "),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if in_tests(model):
            return
        found: list[ast.For] = []
        for loop in model.nodes(ast.For):
            if any(outer in found for outer in model.ancestors(loop)):
                continue
            each = rows(model, loop)
            if each is not None:
                found.append(loop)
                yield self._finding(site, each, _header(model, loop), Heat.COLD if _is_kept(model, loop) else None)
        for call in model.nodes(ast.Call):
            each = joined_rows(model, call)
            if each is not None and not any(outer in found for outer in model.ancestors(call)):
                yield self._finding(site, each, model.source.span(each.made))

    def _finding(self, site: FileSite, found: Rows, span: Span, heat: Heat | None = None) -> Finding:
        at = Site(site.model, found.made)
        of = "" if found.read is None else f" from {shown(site, found.read)}"
        frequency = "" if heat is Heat.COLD else often(at)
        made = shown(site, found.made)
        by_row = f"is computed{of} row by row: each iteration of the loop launches its own kernels"
        return self.finding(
            at,
            f"{made} {_BY_NUMBER if found.by_number else by_row}{frequency}",
            confidence=found.confidence,
            severity=_severity(found),
            heat=heat,
            span=span,
            help=_cure(site.model, found),
            cost=_cost(found),
        )


_BY_NUMBER = "is stored number by number: each costs as much CPU time as an operation on the whole tensor"


def _cure(model: Model, found: Rows) -> str:
    if found.by_number:
        return "Collect the numbers in a list and make one tensor of it: `torch.tensor(numbers)`."
    if found.read is not None:
        return "Compute all rows at once, or with `torch.func.vmap`."
    statement = model.parent(found.made)
    stored = statement.value if isinstance(statement, ast.Assign) else None
    if any(isinstance(part, ast.Call) and model.target(part) in _OF_DATA for part in walk(stored or found.made)):
        return "Fill the rows on the CPU, and copy all of them to the GPU at once."
    return "Compute all rows at once, in one operation on the whole tensor."


_OF_DATA = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy", *LEGACY_CONSTRUCTORS})


def _cost(found: Rows) -> str:
    """The cost of the program that a loop is most like."""
    if found.by_number:
        return sentence("8193 numbers stored one by one make GPT-2 training {0} slower", "numbers-one-by-one-gpt")
    if found.read is None:
        return sentence("a mask of 1024 rows filled one by one costs GPT-2 training {0}", "mask-row-by-row-gpt")
    return sentence("images normalised one by one cost training of a ResNet-50 {0}", "rows-in-a-loop-resnet50")


def _severity(found: Rows) -> Severity:
    """As it was measured: for rows that are computed, for those that are only filled, for numbers."""
    if found.by_number:
        # Thousands of numbers took half of a step; how many they are here is not known.
        return Severity.WARNING
    if found.confidence is Confidence.LOW:
        # Rows on the CPU were not timed.
        return Severity.INFO
    return Severity.ERROR if found.read is not None else cost("mask-row-by-row-gpt").severity


def _header(model: Model, loop: ast.For) -> Span:
    """From `for` to the end of the loop's iterable."""
    start, end = model.source.span(loop), model.source.span(loop.iter)
    return Span(start.line, start.column, end.end_line, end.end_column)


def _is_kept(model: Model, loop: ast.For) -> bool:
    """True if a loop only runs where an attribute is not there yet, which the branch sets: once."""
    for outer in model.ancestors(loop):
        if isinstance(outer, ast.If) and {path_of(part) for part in walk(outer.test)} & {"hasattr"}:
            return True
        if isinstance(outer, ast.If) and any(
            isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Is) for part in walk(outer.test)
        ):
            return any(isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) for part in walk(outer))
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
    return False
