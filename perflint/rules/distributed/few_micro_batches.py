"""TPF932: a pipeline with fewer micro-batches than stages."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._numbers import integer
from perflint.rules._sources import sources
from perflint.rules.base import Calls, CallSite, Rule
from perflint.semantics.model import Model

_HOME = "torch.distributed.pipelining."
_NAMES = ("GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble")
_SCHEDULES = tuple(f"{_HOME}{home}Schedule{name}" for home in ("", "schedules.") for name in _NAMES)
_STAGES = (f"{_HOME}PipelineStage", f"{_HOME}stage.PipelineStage")


class FewMicroBatches(Rule):
    """A pipeline has fewer micro-batches than stages.

    ## What it does
    Finds schedules of `torch.distributed.pipelining` whose number of micro-batches is below the number of stages, where
    both are written out.

    ## Why is this bad
    A stage waits until the first micro-batch has come through the stages before it, and again at the end. With s stages
    and m micro-batches, each GPU is idle for (s - 1) of (m + s - 1) turns: for 8 stages, 64% of the time with 4
    micro-batches and 18% with 32. It is a warning because the source shows how many turns are lost, not because of a
    measured cost.

    ## When it is fine
    The memory for the activations of more micro-batches is not there; then make each smaller.

    ## Bad
    ```python
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    def build(module, rank: int, device):
        stage = PipelineStage(module, rank, 8, device)
        return ScheduleGPipe(stage, n_microbatches=4)
    ```

    ## Good
    ```python
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    def build(module, rank: int, device):
        stage = PipelineStage(module, rank, 8, device)
        return Schedule1F1B(stage, n_microbatches=32)
    ```

    ## Fix safety
    No fix: smaller micro-batches may use the GPU less well.

    ## How a GPU shows it
    A timeline shows each GPU idle at the beginning and at the end of a step.

    ## References
    - [Pipeline parallelism](https://docs.pytorch.org/docs/stable/distributed.pipelining.html)
    """

    code, name = "TPF932", "few-micro-batches"
    effect, severity = Effect.PIPELINE, Severity.WARNING
    since = (2, 5)
    listens = (Calls(*_SCHEDULES),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        stage = site.argument("stage", 0)
        stages = None if stage is None else _stages(site.model, stage)
        batches = integer(site.model, site.argument("n_microbatches", 1))
        if stages is None or batches is None or batches >= stages:
            return
        idle = (stages - 1) / (batches + stages - 1)
        yield self.finding(
            site,
            f"{batches} micro-batches for {stages} stages: each GPU is idle for {idle:.0%} of the turns",
            # It is made once, and each step pays for it.
            heat=Heat.HOT,
            help=f"Cut the batch into more parts, {4 * stages} or so.",
        )


def _stages(model: Model, stage: ast.expr) -> int | None:
    """The number of stages of a pipeline, if it is written out."""
    made = sources(model, stage)
    if len(made) != 1 or not isinstance(made[0], ast.Call) or model.target(made[0]) not in _STAGES:
        return None
    return integer(model, model.call(made[0]).argument("num_stages", 2))
