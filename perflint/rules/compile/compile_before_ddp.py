"""TPF714: compiling a model before it is wrapped for distributed training."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._names import DDP, FSDP
from perflint.rules._results import COMPILE, result_of
from perflint.rules.base import Calls, CallSite, Mentions, Rule, shown


class CompileBeforeDdp(Rule):
    """A compiled model is wrapped by DDP or FSDP.

    ## What it does
    Finds `DistributedDataParallel(torch.compile(model))` and the same with
    `FullyShardedDataParallel`, also if the compiled model is assigned to a name in between.

    ## Why is this bad
    DDP sends gradients while the backward pass still computes others. The backward of a compiled model is one
    piece: all gradients become ready when it ends, and are sent only then. If the wrapper is compiled instead,
    `torch.compile` recognizes it and cuts the graph at the borders of DDP's buckets, so that sending overlaps with
    computing again. A training step of GPT-2 on two H200s of one host took no longer beyond chance. FSDP must
    gather parameters before each layer, which a single compiled graph does not take into account.

    ## When it is fine
    Each layer is compiled separately, there is only one process, or
    `torch._dynamo.config.optimize_ddp` is off on purpose. `fully_shard` of FSDP2 supports either
    order.

    ## Bad
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model: torch.nn.Module, rank: int):
        model = torch.compile(model.to(rank))
        return DistributedDataParallel(model, device_ids=[rank])
    ```

    ## Good
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model: torch.nn.Module, rank: int):
        model = DistributedDataParallel(model.to(rank), device_ids=[rank])
        return torch.compile(model)
    ```

    ## Fix safety
    No fix: names of parameters in checkpoints change (`module._orig_mod.` becomes
    `_orig_mod.module.`).

    ## How a GPU shows it
    A trace confirms the finding if the wrapped module was a compiled one, and refutes it otherwise.

    A profile of the backward pass has its `ncclDevKernel_AllReduce` kernels after the last compute
    kernel, instead of overlapping with them.

    ## References
    - [DDPOptimizer](https://docs.pytorch.org/docs/stable/notes/ddp.html#torchdynamo-ddpoptimizer)
    - [torch.compile and FSDP](https://docs.pytorch.org/docs/stable/torch.compiler_faq.html#why-is-my-distributed-code-slow)
    """

    code, name = "TPF714", "compile-before-ddp"
    effect, severity = Effect.PIPELINE, Severity.INFO
    measured = ("compile-before-ddp",)
    listens = (Calls(*DDP, *FSDP),)
    mentions = Mentions(without=("optimize_ddp",))
    since = (2, 0)

    def check(self, site: CallSite) -> Iterator[Finding]:
        given = site.argument("module", 0)
        call = None if given is None else result_of(site.model, given, COMPILE)
        if call is None:
            return
        wrapper = site.target.rpartition(".")[2]
        of_ddp = wrapper.startswith("Dist")
        why = "are sent only when all are ready" if of_ddp else "cannot be gathered by layer"
        what = "gradients" if of_ddp else "parameters"
        yield self.finding(
            site,
            f"`{wrapper}` wraps the result of {shown(site, call)} (line {call.lineno}): its {what} {why}",
            heat=Heat.WARM,
            help=f"Compile the wrapper: `torch.compile({wrapper}(model))`.",
        )
