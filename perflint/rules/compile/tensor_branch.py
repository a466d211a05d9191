"""TPF702: a branch on a tensor in compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.rules._branches import is_choice
from perflint.rules.base import Calls, CallSite, Site, TruthSite, shown
from perflint.rules.compile._breaks import Break, BreakRule
from perflint.rules.compile._device_blind import device_blind
from perflint.rules.sync._scalars import TRUTHS, read_at
from perflint.semantics.dataflow.destinations import Use


class TensorBranch(BreakRule):
    """A compiled function branches on a tensor.

    ## What it does
    Finds tensors whose truth decides what Python does next in functions that run under
    `torch.compile`: in `if`, `while`, conditional expressions, `and`, `or`, `not`, `in`, `bool(t)`,
    `any(…)` and `all(…)`, and in an `assert` whose message is not a literal. The device of the
    tensor does not matter.

    ## Why is this bad
    A graph is built before anything is computed, and holds one path through the code.
    `torch.compile` ends it at the branch, lets Python decide, and builds another graph for each
    path that is taken. The code before and after the branch is not fused and its tensors go through
    memory; the CPU waits for the GPU. One graph break by a branch in a forward of eight small
    blocks made it 31% slower on an H200.

    ## When it is fine
    Tests of facts that are known while tracing: shapes, `is None`, `isinstance`, flags, numbers of
    the module. `assert t.all()` without a message, or with a literal one, becomes part of the
    graph. Under `@torch.compiler.disable`, and in branches that `torch.compiler.is_compiling()`
    hides from the compiler. A loop that must stop when it has converged cannot be one graph.

    ## Bad
    ```python
    import torch

    @torch.compile
    def clip(x: torch.Tensor) -> torch.Tensor:
        if x.norm() > 1:
            x = x / x.norm()
        return torch.tanh(x)
    ```

    ## Good
    ```python
    import torch

    @torch.compile
    def clip(x: torch.Tensor) -> torch.Tensor:
        x = x / x.norm().clamp(min=1)
        return torch.tanh(x)
    ```

    ## Fix safety
    No fix: `torch.where` computes both branches, and `torch.cond` needs them as functions.

    ## How a GPU shows it
    A trace confirms the finding if a graph ended at this line, or if torch.compile gave up on the function here. It is
    refuted if torch.compile traced the line and no graph ended there.

    `TORCH_LOGS=graph_breaks` prints "Data-dependent branching" (GB0170); with `fullgraph=True` that is
    an error. `torch._dynamo.explain(f)(x)` counts the graphs.

    ## References
    - [Working with graph breaks](https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html)
    - [Graph break GB0170](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html)
    - [torch.cond](https://docs.pytorch.org/docs/stable/higher_order_ops/cond.html)
    """

    code, name = "TPF702", "tensor-branch"
    measured = ("break-once-branch",)
    costs = "one such graph break makes a compiled forward of eight small blocks {0} slower"
    listens = (TruthSite, Calls(*TRUTHS))

    def at(self, site: TruthSite | CallSite) -> Iterator[Break]:
        read = read_at(device_blind(site))
        if read is None or _is_captured(site):
            return
        yield Break(
            read.node,
            f"{shown(site, read.node)} decides by a tensor which code runs next",
            _cure(site),
            read.confidence,
        )


def _cure(site: TruthSite | CallSite) -> str:
    ends = site.model.destinations.ends(site.node)
    decided = [end.node for end in ends if end.use is Use.TEST]
    if all(is_choice(site.model, node) for node in decided):
        return "Compute both and choose with `torch.where`, or use `clamp`, `masked_fill` or `torch.cond`."
    return "Branch outside of the compiled function, or by a value of Python, such as a shape or a setting."


def _is_captured(site: Site) -> bool:
    """True if it is the test of an `assert` whose message is known while tracing."""
    parent = site.model.parent(site.node)
    if not isinstance(parent, ast.Assert) or parent.test is not site.node:
        return False
    return parent.msg is None or isinstance(parent.msg, ast.Constant)
