"""TPF704: operators whose result has a size that depends on data, in compiled code."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Severity
from perflint.rules.base import Calls, CallSite, SubscriptSite, shown
from perflint.rules.compile._breaks import Break, BreakRule, in_compiled
from perflint.rules.compile._device_blind import device_blind
from perflint.rules.sync._data_sized import FIXED, ONE_HOT, REPEATS, SELECTIONS, UNIQUE, data_sized, indexed
from perflint.rules.sync._indices import parts

_MORE = ("torch.linalg.lstsq",)


class DynamicShapeOp(BreakRule):
    """A compiled function creates a tensor whose size depends on data.

    ## What it does
    Finds `nonzero`, `argwhere`, `masked_select`, `torch.where` with a condition alone, `x[mask]`,
    `x[mask] = tensor`, `unique`, `bincount`, `repeat_interleave` with a tensor of repeats and no
    `output_size`, `one_hot` without `num_classes` and `torch.linalg.lstsq` in functions that run
    under `torch.compile`.

    ## Why is this bad
    `torch.compile` needs to know sizes while it traces, at least as symbols. By default it ends the
    graph at such an operator, runs it eagerly and begins another; the CPU waits for the GPU to
    count. One graph break by a mask in a forward of eight small blocks made it 41% slower on an
    H200.

    ## When it is fine
    Under `fullgraph=True`, which captures all but `one_hot` and `lstsq`, and if
    `torch._dynamo.config.capture_dynamic_output_shape_ops` is set: the size becomes a symbol.
    `x[mask] = number` and three-argument `torch.where` keep the size. `nonzero_static`,
    `num_classes=` and `output_size=` state the size. In functions under `@torch.compiler.disable`.

    ## Bad
    ```python
    import torch

    @torch.compile
    def mean_of_valid(x: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x[valid > 0].mean())
    ```

    ## Good
    ```python
    import torch

    @torch.compile
    def mean_of_valid(x: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        kept = valid > 0
        return torch.tanh(torch.where(kept, x, 0).sum() / kept.sum())
    ```

    ## Fix safety
    No fix: keeping the size changes the order of sums, and the result for an empty mask.

    ## How a GPU shows it
    A trace confirms the finding if a graph ended at this line, or if torch.compile gave up on the function here. It is
    refuted if torch.compile traced the line and no graph ended there.

    `TORCH_LOGS=graph_breaks` prints "Dynamic shape operator" (GB0036), or "Attempted to use
    `torch.nn.functional.one_hot` with data-dependent output shape" (GB0246).

    ## References
    - [Working with graph breaks](https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html)
    - [Graph break GB0036](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0036.html)
    - [isayevlab/aimnetcentral#109](https://github.com/isayevlab/aimnetcentral/pull/109): 41 breaks to 3
    """

    code, name = "TPF704", "dynamic-shape-op"
    severity = Severity.ERROR
    measured = ("break-once-mask",)
    costs = "one such graph break makes a compiled forward of eight small blocks {0} slower"
    listens = (Calls(*SELECTIONS, *(UNIQUE - FIXED), *REPEATS, *ONE_HOT, *_MORE), SubscriptSite)
    mentions = in_compiled(without=("capture_dynamic_output_shape_ops",))
    whole_graphs = True

    def at(self, site: CallSite | SubscriptSite) -> Iterator[Break]:
        confidence = _confidence(site)
        if confidence is not None:
            yield Break(
                site.node,
                f"{shown(site)} {_what(site)}",
                "Keep the size: `torch.where(mask, x, 0)`, a weight of 0, `topk`; or pass it: `num_classes=`,"
                " `output_size=`, `nonzero_static(size=…)`.",
                confidence,
            )


def _what(site: CallSite | SubscriptSite) -> str:
    if isinstance(site, SubscriptSite) and site.mode != "load":
        return "stores as many values as the mask selects"
    if isinstance(site, CallSite) and site.target in _MORE:
        return "has results whose sizes depend on the data"
    return "has a size that depends on the data"


def _confidence(site: CallSite | SubscriptSite) -> Confidence | None:
    blind = device_blind(site)
    if isinstance(site, CallSite) and site.target in _MORE:
        return Confidence.HIGH
    if isinstance(blind, SubscriptSite):
        # A value that is a mask only by its name may be a slice.
        tensors = any(part.value.tensor is not None for part in parts(blind))
        return indexed(blind) if tensors else None
    return data_sized(blind)
