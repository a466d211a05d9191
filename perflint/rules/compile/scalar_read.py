"""TPF701: reading a number from a tensor in compiled code."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Severity
from perflint.rules.base import Calls, CallSite, shown
from perflint.rules.compile._breaks import Break, BreakRule, in_compiled
from perflint.rules.compile._device_blind import device_blind
from perflint.rules.sync._scalars import NUMBERS, read_at

_COMPARED = ("torch.equal", "torch.allclose", "torch.Tensor.equal", "torch.Tensor.allclose")


class ScalarRead(BreakRule):
    """A compiled function reads a number from a tensor.

    ## What it does
    Finds `.item()`, `.tolist()`, `float(t)`, `int(t)`, `complex(t)`, `torch.equal` and
    `torch.allclose` in functions that run under `torch.compile`: decorated with it, passed to it,
    the `forward` of a module that is compiled, or called from these. The device of the tensor does
    not matter.

    ## Why is this bad
    A graph is built before anything is computed, so it cannot hold a Python number that depends on
    the data. `torch.compile` ends the graph, runs the read eagerly, and begins another graph: the
    code before and after it is not fused, its tensors go through memory, and each graph is guarded
    and called separately. The CPU also waits for the GPU. Twelve such breaks made the compiled
    forward of a 124 M parameter GPT 1.5 times slower on an H200.

    ## When it is fine
    Under `fullgraph=True`, because `torch.compile` then captures the number as a symbol, and if
    `torch._dynamo.config.capture_scalar_outputs` is set. In functions under
    `@torch.compiler.disable`, and in branches that `torch.compiler.is_compiling()` hides from the
    compiler. Shapes, `len(t)` and `t.numel()` do not read the tensor.

    ## Bad
    ```python
    import torch

    @torch.compile
    def normalise(x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().max().item()
        return torch.tanh(x / scale)
    ```

    ## Good
    ```python
    import torch

    @torch.compile
    def normalise(x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().max()
        return torch.tanh(x / scale)
    ```

    ## Fix safety
    No fix: the use of the number decides whether a tensor can replace it.

    ## How a GPU shows it
    A trace confirms the finding if a graph ended at this line, or if torch.compile gave up on the function here. It is
    refuted if torch.compile traced the line and no graph ended there.

    `TORCH_LOGS=graph_breaks` prints "Unsupported Tensor.item() call with capture_scalar_outputs=False"
    (GB0124), or "Data dependent operator" (GB0033); `torch._dynamo.explain(f)(x)` counts it. A trace
    of perflint records it with its line.

    ## References
    - [Working with graph breaks](https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html)
    - [Graph break GB0124](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0124.html)
    """

    code, name = "TPF701", "scalar-read"
    severity = Severity.ERROR
    measured = ("graph-breaks", "break-once-item")
    costs = "12 such graph breaks make a compiled GPT-2 forward {0} slower"
    listens = (Calls(*NUMBERS, *_COMPARED),)
    mentions = in_compiled(without=("capture_scalar_outputs",))
    whole_graphs = True

    def at(self, site: CallSite) -> Iterator[Break]:
        cure = "Continue with the tensor: torch broadcasts a tensor of one number."
        if site.target in _COMPARED:
            tensors = [site.value(argument) for argument in site.node.args]
            if any(value.tensor is not None for value in (*tensors, *([site.receiver] if site.receiver else []))):
                yield Break(site.node, f"{shown(site)} compares tensors and reads the answer",
                            cure, Confidence.HIGH)  # fmt: skip
            return
        read = read_at(device_blind(site))
        if read is not None:
            yield Break(read.node, f"{shown(site, read.node)} reads a number from a tensor", cure, read.confidence)
