"""TPF607: an optimizer that is prepared for a CUDA graph that is never captured."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.rules._arguments import dropped
from perflint.rules._methods import is_true
from perflint.rules.base import Calls, Mentions, Rule
from perflint.rules.optimizer._graphs import CAPTURES, COMPILES
from perflint.semantics.sites import CallSite

_CAPTURABLE = tuple(
    f"torch.optim.{name}"
    for name in ("Adam", "AdamW", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")
)


class CapturableUnneeded(Rule):
    """`capturable=True` without a CUDA graph.

    ## What it does
    Finds optimizers that are created with `capturable=True` in files that neither capture a CUDA
    graph nor compile anything.

    ## Why is this bad
    A capturable optimizer keeps its step counters on the GPU and computes bias corrections there,
    in kernels of a few numbers for each parameter. Outside of a graph that is slower than
    arithmetic on the CPU; the documentation says that it "can impair ungraphed performance". It
    made training of a 124 M parameter GPT 5% slower on an H200.

    ## When it is fine
    - The step is captured, or compiled, in another file.
    - A graph is replayed only for some batches.
    - `fused=True` as well: the fused form counts on the GPU anyway.

    ## Bad
    ```python
    import torch

    def make(model: torch.nn.Module):
        return torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
    ```

    ## Good
    ```python
    import torch

    def make(model: torch.nn.Module):
        return torch.optim.AdamW(model.parameters(), lr=1e-3)
    ```

    ## Fix safety
    Unsafe: without the argument, capturing the step in a graph fails; the counters are tensors on
    the CPU, in checkpoints too, and updates differ in the last bits.

    ## How a GPU shows it
    A trace records whether a CUDA graph captured the step, which refutes the finding. A profile shows
    `aten::_foreach_pow`, `aten::_foreach_sub_` and similar operators on tensors of
    one number below `Optimizer.step`; torch warns once about a capturable optimizer that steps
    outside of a graph.

    ## References
    - [torch.optim.Adam](https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html): `capturable`
    """

    code, name = "TPF607", "capturable-unneeded"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    measured = ("adamw-capturable-step-gpt",)
    costs = "`capturable=True` costs GPT-2 training {0}"
    listens = (Calls(*_CAPTURABLE),)
    mentions = Mentions(unlike=f"{CAPTURES}|{COMPILES}")
    since = (2, 0)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not is_true(site.argument("capturable")) or site.argument("fused") is not None:
            return
        keyword = next(item for item in site.node.keywords if item.arg == "capturable")
        edit = dropped(site.model.source, site.node, keyword)
        yield self.finding(
            site,
            f"`{site.target.rpartition('.')[2]}` counts its steps on the GPU (`capturable=True`), but this file "
            "captures no CUDA graph: each parameter costs small kernels in place of arithmetic on the CPU",
            confidence=Confidence.MEDIUM,
            # It is made once, but steps each time.
            heat=Heat.HOT,
            help="Remove `capturable`.",
            fix=Fix("Leave `capturable` out", Safety.UNSAFE, (edit,)),
        )
