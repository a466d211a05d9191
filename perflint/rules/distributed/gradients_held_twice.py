"""TPF935: gradients that DDP holds twice."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules._names import DDP
from perflint.rules.base import Calls, CallSite, Mentions, Rule


class GradientsHeldTwice(Rule):
    """`DistributedDataParallel` keeps a copy of all gradients.

    ## What it does
    Finds `DistributedDataParallel(…)` without `gradient_as_bucket_view`.

    ## Why is this bad
    DDP reduces gradients in buckets. By default each gradient is a tensor of its own: it is copied into its bucket,
    and the reduced values are copied back. With `gradient_as_bucket_view=True`, gradients are views of the buckets,
    and the memory of one copy, as large as the model in float32, is free after the first step. It is a matter of
    memory: a training step of GPT-2 on two H200s took 36.3 ms without it and 36.0 ms with it, which is within the
    variation between runs. Where activations decide the peak, it stays: 9.15 GiB in both, in that step with two
    processes on one H200.

    ## When it is fine
    - Memory to spare.
    - Code that calls `detach_()` on gradients, which fails for views: files with `detach_()` are not reported.

    ## Bad
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model: torch.nn.Module, rank: int):
        return DistributedDataParallel(model.cuda(rank), device_ids=[rank])
    ```

    ## Good
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model: torch.nn.Module, rank: int):
        return DistributedDataParallel(model.cuda(rank), device_ids=[rank], gradient_as_bucket_view=True)
    ```

    ## Fix safety
    No fix: other code may replace gradients, which then lose their place in the bucket.

    ## How a GPU shows it
    `torch.cuda.memory_allocated()` in front of the optimizer's step is lower by the size of the gradients.

    ## References
    - [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html):
      `gradient_as_bucket_view`
    """

    code, name = "TPF935", "gradients-held-twice"
    effect, severity = Effect.MEMORY, Severity.INFO
    measured = ("gradients-held-twice",)
    listens = (Calls(*DDP),)
    mentions = Mentions("DistributedDataParallel", without=("detach_()",))
    since = (1, 7)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if site.argument("gradient_as_bucket_view") is not None or site.has_unpacking or in_tests(site.model):
            return
        yield self.finding(
            site,
            "each gradient is held twice: as a tensor of its own, and in a bucket",
            confidence=Confidence.MEDIUM,
            # It is made once, and each step holds them.
            heat=Heat.HOT,
            help="Pass `gradient_as_bucket_view=True`.",
        )
