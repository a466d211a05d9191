"""TPF706: autograd's own calls in compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Severity
from perflint.rules.base import Calls, CallSite, Files, FileSite, shown
from perflint.rules.compile._breaks import Break, BreakRule, in_compiled
from perflint.semantics.values import Evidence

_BACKWARD = ("torch.Tensor.backward", "torch.autograd.backward", "torch.autograd.grad")


class AutogradInGraph(BreakRule):
    """A compiled function calls autograd.

    ## What it does
    Finds `loss.backward()`, `torch.autograd.grad`, `x.requires_grad_()` of an argument and
    `x.requires_grad = …` in functions that run under `torch.compile`.

    ## Why is this bad
    `torch.compile` builds the backward graph together with the forward graph, and calls it when
    autograd does. It cannot trace autograd's own work: the graph ends there. A train step that is
    compiled as a whole breaks at `backward()`, so that the optimizer's step begins another graph.
    This takes as long as compiling the model and the step separately.

    ## When it is fine
    In a train step that is compiled as a whole on purpose: one break per step. With
    `torch._dynamo.config.compiled_autograd` or `trace_autograd_ops`, if the file sets these.
    Reading `x.requires_grad`, `x.grad` and `x.grad_fn`; `detach()` and `torch.no_grad()`.

    ## Bad
    ```python
    import torch

    @torch.compile
    def force(x: torch.Tensor) -> torch.Tensor:
        x.requires_grad_(True)
        energy = (x ** 2).sum()
        (gradient,) = torch.autograd.grad(energy, x)
        return -gradient
    ```

    ## Good
    ```python
    import torch

    @torch.compile
    def force(x: torch.Tensor) -> torch.Tensor:
        return -torch.func.grad(lambda moved: (moved ** 2).sum())(x)
    ```

    ## Fix safety
    No fix: `torch.func.grad` needs the energy as a function.

    ## How a GPU shows it
    A trace confirms the finding if a graph ended at this line, or if torch.compile gave up on the function here. It is
    refuted if torch.compile traced the line and no graph ended there.

    `TORCH_LOGS=graph_breaks` prints "Unsupported Tensor.backward() call" (GB0123), "Unsupported
    Tensor.requires_grad_() call" (GB0125) or "using `torch.autograd.grad`" (GB9186).

    ## References
    - [Graph break GB0123](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0123.html)
    - [torch.func.grad](https://docs.pytorch.org/docs/stable/generated/torch.func.grad.html)
    """

    code, name = "TPF706", "autograd-in-graph"
    severity = Severity.INFO
    listens = (Calls(*_BACKWARD, "torch.Tensor.requires_grad_"), Files("compile", also=(".requires_grad = ",)))
    mentions = in_compiled(without=("compiled_autograd", "trace_autograd_ops"))

    def at(self, site: CallSite | FileSite) -> Iterator[Break]:
        if isinstance(site, FileSite):
            yield from _assigned(site)
        elif site.target in _BACKWARD or _is_argument(site):
            yield Break(
                site.node,
                f"{shown(site)} calls autograd",
                "Compile only the code before it, or use `torch.func.grad`.",
                Confidence.HIGH,
            )


def _is_argument(site: CallSite) -> bool:
    """True if a method is called of one of the function's arguments."""
    function = site.model.function(site.node)
    receiver = site.owner
    if function is None or not isinstance(receiver, ast.Name):
        return False
    return receiver.id in {arg.arg for arg in (*function.args.posonlyargs, *function.args.args)}


def _assigned(site: FileSite) -> Iterator[Break]:
    for node in site.model.nodes(ast.Attribute):
        if node.attr != "requires_grad" or not isinstance(node.ctx, ast.Store):
            continue
        tensor = site.model.value(node.value).tensor
        if tensor is not None:
            sure = Confidence.HIGH if tensor.evidence > Evidence.USE else Confidence.MEDIUM
            yield Break(
                node,
                f"{shown(site, node)} is assigned",
                "Set it before the compiled call; inside, use `detach()`.",
                sure,
            )
