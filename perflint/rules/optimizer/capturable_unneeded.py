"""TPF607: an optimizer that is prepared for a CUDA graph that is never captured."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.rules._arguments import dropped
from perflint.rules._methods import is_true
from perflint.rules._project_text import project_says
from perflint.rules.base import Calls, Rule
from perflint.rules.optimizer._graphs import CAPTURES, COMPILES
from perflint.rules.optimizer._hyperparameters import has_tensors
from perflint.semantics.sites import CallSite

_CAPTURABLE = tuple(
    f"torch.optim.{name}"
    for name in ("Adam", "AdamW", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")
)


class CapturableUnneeded(Rule):
    """`capturable=True` without a CUDA graph.

    ## What it does
    Finds optimizers that are created with `capturable=True` in projects of which no file captures a
    CUDA graph or compiles anything.

    ## Why is this bad
    A capturable optimizer keeps its step counters on the GPU and computes bias corrections there,
    in kernels of a few numbers for each parameter. Outside of a graph that is slower than
    arithmetic on the CPU; the documentation says that it "can impair ungraphed performance". It
    made training of a 124 M parameter GPT 5% slower on an H200.

    ## When it is fine
    - The step is captured, or compiled, outside of the project.
    - A hyperparameter is a tensor (`lr=torch.tensor(1e-3)`): without the argument, torch updates
      the parameters one by one, or raises with `foreach=True`.
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
    the CPU, in checkpoints too, and updates differ in the last bits. CUDA graphs, the compiler and tensors as
    hyperparameters (`lr`, `betas`, also in groups of parameters or set later) rely on the argument: there is no
    finding if a file of the project has one of them.

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
    since = (2, 0)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not is_true(site.argument("capturable")) or site.argument("fused") is not None:
            return
        if has_tensors(site) or project_says(site.model, _GRAPHS):
            return
        keyword = next(item for item in site.node.keywords if item.arg == "capturable")
        edit = dropped(site.model.source, site.node, keyword)
        yield self.finding(
            site,
            f"`{site.target.rpartition('.')[2]}` counts its steps on the GPU (`capturable=True`), but no file of the "
            "project captures a CUDA graph: each parameter costs small kernels in place of arithmetic on the CPU",
            confidence=Confidence.MEDIUM,
            # It is made once, but steps each time.
            heat=Heat.HOT,
            help="Remove `capturable`.",
            fix=Fix("Leave `capturable` out", Safety.UNSAFE, (edit,)),
        )


_GRAPHS = re.compile(f"{CAPTURES}|{COMPILES}")
