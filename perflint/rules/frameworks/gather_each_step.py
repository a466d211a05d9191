"""TPF944: values that accelerate gathers from all processes in each training step."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._operators import operators
from perflint.rules._turns import turn_around
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.semantics.heat.training import goes_backward

_GATHERS = operators("distributed", "gathers")


class GatherEachStep(Rule):
    """`accelerator.gather` and similar calls in each training step.

    ## What it does
    Finds `gather`, `gather_for_metrics`, `reduce` and `print` of an `Accelerator` in loops that train.

    ## Why is this bad
    Each gathers over all processes, which wait for the slowest of them, and the result is usually read at once: a
    second wait. For a loss in the log, the mean of one process is enough in most steps. The cost depends on the
    number of processes: on two H200s of one host, training of GPT-2 took no longer.

    ## When it is fine
    - Under an interval, and in evaluation, where metrics need all results: not reported.
    - Losses that need the batch of all processes, for example contrastive ones.

    ## Bad
    ```python
    from accelerate import Accelerator

    def train(model, loader, optimizer):
        accelerator = Accelerator()
        for x in loader:
            loss = model(x).sum()
            accelerator.backward(loss)
            optimizer.step()
            print(accelerator.gather(loss.detach()).mean())
    ```

    ## Good
    ```python
    from accelerate import Accelerator

    def train(model, loader, optimizer):
        accelerator = Accelerator()
        for step, x in enumerate(loader):
            loss = model(x).sum()
            accelerator.backward(loss)
            optimizer.step()
            if step % 100 == 0:
                print(accelerator.gather(loss.detach()).mean())
    ```

    ## Fix safety
    No fix: the source does not show how often the value is needed.

    ## How a GPU shows it
    A trace confirms the finding if the line sent tensors or objects to other processes. In a run of one process it
    costs nothing.

    A profile shows short NCCL kernels at the end of each step, followed by the wait of
    `aten::item`.

    ## References
    - [Accelerator.gather](https://huggingface.co/docs/accelerate/package_reference/accelerator#accelerate.Accelerator.gather)
    """

    code, name = "TPF944", "gather-each-step"
    effect, severity = Effect.PIPELINE, Severity.INFO
    measured = ("gather-each-step",)
    listens = (Calls(*_GATHERS),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        turn = turn_around(site.model, site.node)
        if site.heat is not Heat.HOT or turn is None or not goes_backward(site.model, turn):
            return
        prints = site.target.endswith(".print")
        does = "prints, and reads the values that it prints" if prints else "waits for all processes"
        yield self.finding(
            site,
            f"{shown(site)} {does} (runs every step)",
            confidence=Confidence.LOW if prints else Confidence.MEDIUM,
            help="If the result is only logged, gather every 100 steps.",
        )
