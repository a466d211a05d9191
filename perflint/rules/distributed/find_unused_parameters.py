"""TPF922: a search for unused parameters in each step."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.rules._arguments import dropped
from perflint.rules._methods import is_true
from perflint.rules.base import Calls, Mentions, Rule
from perflint.semantics.sites import CallSite

_WRAPPERS = (
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "accelerate.DistributedDataParallelKwargs",
    "accelerate.utils.DistributedDataParallelKwargs",
    "lightning.pytorch.strategies.DDPStrategy",
    "pytorch_lightning.strategies.DDPStrategy",
)
_TRAINS = ("backward", "optim", "Strategy", "strategy", "Accelerat", "accelerat", "wrap")


class FindUnusedParameters(Rule):
    """`find_unused_parameters=True` traverses the graph in each step.

    ## What it does
    Finds `DistributedDataParallel(…, find_unused_parameters=True)`, and the same of the wrappers of
    accelerate and Lightning.

    ## Why is this bad
    Before each backward pass the CPU traverses the whole autograd graph to find parameters that it
    does not reach, and the processes exchange which ones were used. If all parameters are used,
    this work is wasted, and torch warns about it once. The cost depends on the model; it has not
    been measured here.

    ## When it is fine
    - Some parameters take no part in some steps: branches, experts, heads that are selected.
      Without the flag the reduction waits for them forever, or raises.
    - `static_graph=True` finds them once.
    - Inference: files without a backward pass and an optimizer are not reported.

    ## Bad
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model: torch.nn.Module, rank: int):
        return DistributedDataParallel(model, device_ids=[rank], find_unused_parameters=True)
    ```

    ## Good
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model: torch.nn.Module, rank: int):
        return DistributedDataParallel(model, device_ids=[rank])
    ```

    ## Fix safety
    No fix is written, but the change is shown: only torch's warning in a run shows whether the
    argument can be removed. perflint does not check whether parameters are unused. If some are, the
    second step raises "Expected to have finished reduction in the prior iteration".

    ## How a GPU shows it
    A trace reads torch's own statistics after the first steps. If all parameters took part, the finding is confirmed;
    unused parameters refute it.

    Torch's own warning says that the flag was not needed. A profile shows the CPU in `prepare_for_backward`
    before each backward pass.

    ## References
    - [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    - [Distributed data parallel: internal design](https://docs.pytorch.org/docs/stable/notes/ddp.html)
    """

    code, name = "TPF922", "find-unused-parameters"
    effect, severity = Effect.PIPELINE, Severity.INFO
    listens = (Calls(*_WRAPPERS),)
    mentions = Mentions(*_TRAINS)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not is_true(site.argument("find_unused_parameters")) or is_true(site.argument("static_graph")):
            return
        keyword = next(item for item in site.node.keywords if item.arg == "find_unused_parameters")
        edit = dropped(site.model.source, site.node, keyword)
        yield self.finding(
            site,
            "`find_unused_parameters=True` searches the whole graph after each forward pass for parameters that "
            "take no part",
            # Only a run shows whether it is needed.
            confidence=Confidence.LOW,
            heat=Heat.HOT,
            help=(
                "Remove it if all parameters take part; pass `static_graph=True` if the same ones are unused in "
                "each step."
            ),
            fix=Fix("Leave it out", Safety.DISPLAY, (edit,)),
        )
