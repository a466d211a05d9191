"""TPF709: sizes and counts that are tensors, in compiled code."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.rules.base import Calls, CallSite, SubscriptSite, shown
from perflint.rules.compile._breaks import Break, BreakRule, in_compiled
from perflint.rules.compile._device_blind import device_blind
from perflint.rules.sync._as_numbers import TAKERS, taken_as_numbers


class SizeFromTensor(BreakRule):
    """A compiled function takes a size or a count from a tensor.

    ## What it does
    Finds tensors that are passed as Python numbers in functions that run under `torch.compile`:
    `torch.arange(n)`, `torch.zeros(n)`, `x.view(n, -1)`, `x[:n]`, `x.split(n)`, `range(n)`,
    `math.sqrt(n)`.

    ## Why is this bad
    torch reads the number to create the result, whose size then depends on the data. By default
    `torch.compile` ends the graph, runs the call eagerly and begins another; if it captures the
    number as a symbol, CUDA graphs are not used for the code after it. One graph break by a size in
    a forward of eight small blocks made it 33% slower on an H200.

    ## When it is fine
    Under `fullgraph=True`, and if `torch._dynamo.config.capture_scalar_outputs` is set: the number
    becomes a symbol (not in `range`). Sizes that come from shapes or from settings are known while
    tracing.

    ## Bad
    ```python
    import torch

    @torch.compile
    def positions(lengths: torch.Tensor) -> torch.Tensor:
        longest = lengths.max()
        return torch.arange(longest) * 2
    ```

    ## Good
    ```python
    import torch

    @torch.compile
    def positions(lengths: torch.Tensor, longest: int) -> torch.Tensor:
        return torch.arange(longest) * 2
    ```

    ## Fix safety
    No fix: only the author can say where the CPU knows the number.

    ## How a GPU shows it
    A trace confirms the finding if a graph ended at this line, or if torch.compile gave up on the function here. It is
    refuted if torch.compile traced the line and no graph ended there.

    `TORCH_LOGS=graph_breaks` prints "Data dependent operator" (GB0033) or "Unsupported Tensor.item()
    call" (GB0124).

    ## References
    - [Graph break GB0033](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0033.html)
    - [Dynamic shapes](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_dynamic_shapes.html)
    """

    code, name = "TPF709", "size-from-tensor"
    measured = ("break-once-size",)
    costs = "one such graph break makes a compiled forward of eight small blocks {0} slower"
    listens = (Calls(*TAKERS), SubscriptSite)
    mentions = in_compiled(without=("capture_scalar_outputs",))
    whole_graphs = True

    def at(self, site: CallSite | SubscriptSite) -> Iterator[Break]:
        for _, confidence in taken_as_numbers(device_blind(site))[:1]:
            yield Break(
                site.node,
                f"{shown(site)} uses a tensor as a Python number",
                "Get the number on the CPU, where it is known first: from a shape, the collate function or the "
                "settings.",
                confidence,
            )
