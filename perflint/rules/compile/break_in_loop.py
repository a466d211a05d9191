"""TPF705: a graph break in a loop, which leaves the whole function uncompiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perflint.findings import Finding, Severity
from perflint.rules.compile import (
    autograd_in_graph,
    dynamic_shape_op,
    print_or_log,
    rnn_in_graph,
    scalar_read,
    size_from_tensor,
    tensor_branch,
    untraceable_call,
)
from perflint.rules.compile._breaks import Break, BreakRule, loses_function, report
from perflint.rules.registry import RuleSet
from perflint.semantics.regions.compiled import Compiled
from perflint.semantics.sites import Site

_KINDS: tuple[BreakRule, ...] = (
    scalar_read.ScalarRead(),
    tensor_branch.TensorBranch(),
    print_or_log.PrintOrLog(),
    dynamic_shape_op.DynamicShapeOp(),
    autograd_in_graph.AutogradInGraph(),
    rnn_in_graph.RnnInGraph(),
    untraceable_call.UntraceableCall(),
    size_from_tensor.SizeFromTensor(),
)
_BY_SITE = RuleSet(_KINDS)


class BreakInLoop(BreakRule):
    """A graph break in a loop: the whole function runs eagerly.

    ## What it does
    Finds code that breaks a graph (a read of a number, a branch on a tensor, printing, a size that
    depends on data, a clock) in the body of a loop, in a comprehension or in a `try` of a function
    that runs under `torch.compile`, and in a function that such a loop calls.

    ## Why is this bad
    Elsewhere `torch.compile` ends a graph at a break and continues after it. It cannot do so in a
    loop or in a `try`: it gives up the function, which then runs eagerly as a whole, without a
    warning. One `print` in the loop over the layers of a model leaves that model's `forward`
    uncompiled; only the functions that it calls are tried again, piece by piece. Twelve graph
    breaks, one in each layer of a 124 M parameter GPT, made its compiled forward 1.5 times slower
    on an H200; in a loop over four small blocks breaks cost from 3% (a log call) to 43% (a mask).

    ## When it is fine
    As for the rules of each kind of break (`scalar-read`, `tensor-branch`, `print-or-log` and so
    on): under `fullgraph=True` if that captures it, in functions under `@torch.compiler.disable`,
    and in branches that `torch.compiler.is_compiling()` hides from the compiler. In an `if` that is
    never taken. A loop around the call of a compiled function does not matter.

    ## Bad
    ```python
    import torch

    class Stack(torch.nn.Module):
        def __init__(self, depth: int):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(depth))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
                print(x.shape)
            return x

    model = torch.compile(Stack(4))
    ```

    ## Good
    ```python
    import torch

    class Stack(torch.nn.Module):
        def __init__(self, depth: int):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(depth))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
            return x

    model = torch.compile(Stack(4))
    ```

    ## Fix safety
    No fix: see the rule for the kind of break.

    ## How a GPU shows it
    A trace confirms the finding if a graph ended at this line, or if torch.compile gave up on the function here. It is
    refuted if torch.compile traced the line and no graph ended there.

    `TORCH_LOGS=graph_breaks` prints the break with "Skipping the frame"; `torch._dynamo.explain(f)(x)`
    finds no graph of the function. A profile has no region of it, and no kernel named `triton_…`.

    ## References
    - [Working with graph breaks](https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html)
    - [Skipped functions](https://docs.pytorch.org/docs/stable/compile/programming_model.skipped_functions.html)
    """

    code, name = "TPF705", "break-in-loop"
    severity = Severity.ERROR
    measured = (
        "graph-breaks",
        *(f"break-in-loop-{kind}" for kind in "item branch print debug mask clock random deepcopy size".split()),
    )
    costs = "a graph break in a loop over four layers makes a compiled forward {1} slower"
    listens = tuple(dict.fromkeys(listen for kind in _KINDS for listen in kind.listens))
    replaces = tuple(kind.code for kind in _KINDS)

    def check(self, site: Any) -> Iterator[Finding]:
        for found, compiled in self.breaks(site):
            yield report(self, site, found, compiled, whole=True)

    def breaks(self, site: Site) -> Iterator[tuple[Break, Compiled]]:
        for kind in _BY_SITE.listening(site):
            assert isinstance(kind, BreakRule)
            for found, compiled in kind.breaks(site):
                if loses_function(site.model, found.node, compiled):
                    yield found, compiled
