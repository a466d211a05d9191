"""TPF105: the truth of a GPU tensor in Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._branches import tested
from perflint.rules.base import Calls, CallSite, Group, Rule, Site, TruthSite, device_confidence, often, shown
from perflint.rules.sync._asserts import async_assert
from perflint.rules.sync._elements import element_read
from perflint.rules.sync._scalars import TRUTH_OF_TENSOR, TRUTHS, read_at
from perflint.rules.sync._tested import Joined, asked_together
from perflint.semantics.around import statement_of
from perflint.semantics.dataflow.destinations import Use
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.regions.compile_calls import is_skipped
from perflint.semantics.structure import last_name
from perflint.source.quoting import quoted

_DECIDES = {
    "and": "this `and`",
    "or": "this `or`",
    "not": "this `not`",
    "comprehension": "which elements this comprehension keeps",
    "case": "a `case`",
    "conditional expression": "this conditional expression",
    "chained comparison": "the next comparison",
}


class TruthOfTensor(Rule):
    """
    ## What it does
    Finds tensors whose truth decides what Python does next: in `if`, `while`, `assert`, `and`,
    `or`, `not`, conditional expressions, chained comparisons and `in`, and in `bool(t)`, `any(…)`
    and `all(…)`.

    ## Why is this bad
    The CPU waits until the GPU has computed the answer, and the GPU then waits for the CPU to queue
    more work. A branch in each layer made a training step of a 124 M parameter GPT 3% slower on an
    H200. It also breaks the graph of `torch.compile` and rules out CUDA graphs.

    ## When it is fine
    Tests of facts that the CPU knows: shapes, `is None`, `isinstance`, flags. Tensors on the CPU,
    NumPy arrays. Tests that run rarely, and under `torch.compiler.is_compiling()`. Argument checks
    under `not is_compiling()`, which wait on purpose in eager runs: low confidence. A loop that
    must stop when it has converged: test every 10 iterations instead.

    ## Bad
    ```python
    import torch

    class Clamp(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.max() > 1:
                x = x / x.max()
            return x
    ```

    ## Good
    ```python
    import torch

    class Clamp(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / x.max().clamp(min=1)
    ```

    ## Fix safety
    In an `assert`, `torch._assert_async(condition)` is unsafe: it checks on the GPU
    without waiting; `assert not x.any()` becomes the check of `~x.any()`. When the condition fails, the
    error comes later, at some other call, and the
    CUDA context cannot be used any more; `python -O` does not remove the check. No fix is offered
    if the code around the `assert` handles its error, none in a notebook, whose session it would end, and
    none for findings of low confidence.

    Tests in a row become one: `a.any() or b.any()` becomes `a.any() | b.any()`, and
    `not a.any() and not b.any()` becomes `not (a.any() | b.any())`. The answer is the same. The later
    tests run even if the first one decides, which takes time and memory on the GPU, so they may only compare and
    reduce, and must not need the first one: `m.any() and x[m].max() > 1` stays. They must be on the device of the
    first one, or give one truth value each in a file that names no second GPU: on different GPUs they raise. That is
    safe if all tests ask one tensor, by `any`, `all`, `isnan`, `isinf`, `isfinite` and comparisons with numbers from
    0 to 127. It is unsafe elsewhere: a later test may raise an error that the first one prevented before.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a profile shows `aten::is_nonzero` and
    `aten::item` there. `torch._dynamo.explain` reports a data-dependent branch.

    ## References
    - [Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.where](https://docs.pytorch.org/docs/stable/generated/torch.where.html)
    """

    code, name = TRUTH_OF_TENSOR, "truth-of-tensor"
    group = Group.DECISION
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("truth-of-tensor-gpt", "truth-of-tensor-gpt-host-work", "truth-of-tensor-policy")
    listens = (TruthSite, Calls(*TRUTHS))

    def check(self, site: TruthSite | CallSite) -> Iterator[Finding]:
        read = read_at(site)
        if read is None:
            return
        joined = asked_together(site.model, read)
        yield self.finding(
            site,
            f"{shown(site, read.node)} {_what(site)}{often(site)}",
            confidence=Confidence.LOW if _is_eager_check(site) else read.confidence,
            help=_cure(site, joined),
            fix=async_assert(site.model, read) or (None if joined is None else joined.fix),
        )


def _is_eager_check(site: Site) -> bool:
    """True if it only decides to raise, in code that `is_compiling()` keeps for eager runs: kept knowingly."""
    branch = statement_of(site.model, site.node)
    if not isinstance(branch, ast.If) or not all(isinstance(each, ast.Raise) for each in branch.body):
        return False
    return is_skipped(site.model.module, site.node)


def _what(site: TruthSite | CallSite) -> str:
    if isinstance(site, CallSite):
        return "makes the CPU wait for the GPU to decide"
    if site.construct == "in":
        return "compares on the GPU: the CPU waits for the answer"
    decides = _DECIDES.get(site.construct, f"this `{site.construct}`")
    if isinstance(site.node, ast.Compare) and len(site.node.ops) > 1:
        return f"compares a tensor: the CPU waits for the GPU to decide {decides}"
    return f"is a tensor: the CPU waits for the GPU to decide {decides}"


def _cure(site: TruthSite | CallSite, joined: Joined | None) -> str:
    ends = site.model.destinations.ends(site.node)
    decided = next((end.node for end in ends if end.use is Use.TEST), None)
    if joined is not None and len(joined.text) <= _LONGEST and "\n" not in joined.text:
        if not isinstance(decided, (ast.Assert, ast.While)):
            return f"Ask the GPU once: {quoted(joined.text)}. Or test a value that is already on the CPU."
    return _read_before_loop(site) or _kept_on_gpu(site) or tested(site.model, decided or site.node)


def _read_before_loop(site: TruthSite | CallSite) -> str:
    """The advice for a test of the numbers of a tensor that a loop iterates over; empty for other tests."""
    node = site.node
    for operand in [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node]:
        element = element_read(site.model, node, operand) if isinstance(operand, ast.Name) else None
        tensor = None if element is None else site.value(element.whole).tensor
        if element is not None and tensor is not None and tensor.rank in (1, None):
            return f"Read all of {shown(site, element.whole)} once, before the loop, with `.tolist()`."
    return ""


def _kept_on_gpu(site: TruthSite | CallSite) -> str:
    """The form of an expression that gives its answer as a tensor; empty if there is none."""
    if isinstance(site, CallSite):
        function = last_name(site.node)
        return f"Ask the GPU once, for all of them: `torch.stack([…]).{function}()`." if function != "bool" else ""
    if site.construct == "chained comparison":
        return "Join the comparisons with `&`: the answer then stays on the GPU."
    if site.construct == "in":
        return "Compare on the GPU (`(x == y).any()`, `torch.isin`), and read the answer when it is needed."
    around = site.model.parent(site.node)
    if site.construct in _OPERATORS and isinstance(around, ast.BoolOp) and _are_tensors(site.model, around):
        return f"Write `{_OPERATORS[site.construct]}`: the answer then stays on the GPU."
    return ""


@once_per_node
def _are_tensors(model: Model, test: ast.BoolOp) -> bool:
    """True if all operands of an `and` or `or` may be on a GPU."""
    return all(device_confidence(model.value(each)) is not None for each in test.values)


_OPERATORS = {"and": "&", "or": "|"}
_LONGEST = 80
"""Characters of a condition in a help."""
