"""TPF934: parameters that FSDP gathers in float32 for a model that computes in half precision."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules._names import FSDP, FULLY_SHARD
from perflint.rules._sources import passed_to, unpacked
from perflint.rules.base import Calls, CallSite, Mentions, Rule, shown

_IS_HALF = (
    r"\.bfloat16\(\)|\.half\(\)|\.to\([^()\n]*(?:float16|dtype)|torch_dtype|set_default_dtype|from_pretrained\(.*dtype"
)


class ShardedInFloat32(Rule):
    """FSDP gathers parameters in float32, and autocast casts them afterwards.

    ## What it does
    Finds `fully_shard(…)` without `mp_policy`, and `FullyShardedDataParallel(…)` without `mixed_precision`, in files
    that compute under `torch.autocast` of the GPU.

    ## Why is this bad
    Each unit gathers its parameters from all processes before it runs, forward and backward, and sends its
    gradients back. Both happen in the type of the parameters, float32, although the computation needs half of the
    bytes. With a policy, FSDP casts each part before it is sent. The cost depends on the network: between two H200s
    of one host, which NVLink joins, a training step of GPT-2 took 8% longer in the median of five runs, but less
    time in one of them.

    ## When it is fine
    - Parameters that are in half precision already: files that cast the model are not reported.
    - A network that is never busy.

    ## Bad
    ```python
    import torch
    from torch.distributed.fsdp import fully_shard

    def train(model: torch.nn.Module, loader, optimizer):
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
        for x in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(x.cuda()).mean()
            loss.backward()
            optimizer.step()
    ```

    ## Good
    ```python
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    def train(model: torch.nn.Module, loader, optimizer):
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for block in model.blocks:
            fully_shard(block, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
        for x in loader:
            loss = model(x.cuda()).mean()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    No fix: operators that autocast keeps in float32 run in half precision under a policy.

    ## How a GPU shows it
    A profile shows `ncclDevKernel_AllGather` for twice the bytes of the half-precision parameters.

    ## References
    - [fully_shard](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html): `MixedPrecisionPolicy`
    - [torchtitan: FSDP](https://github.com/pytorch/torchtitan/blob/main/docs/fsdp.md)
    """

    code, name = "TPF934", "sharded-in-float32"
    effect, severity = Effect.PIPELINE, Severity.INFO
    measured = ("sharded-in-float32",)
    listens = (Calls(*FULLY_SHARD, *FSDP),)
    mentions = Mentions("autocast(", unlike=_IS_HALF)

    def check(self, site: CallSite) -> Iterator[Finding]:
        model = site.model
        is_new = site.target in FULLY_SHARD
        name, position = ("mp_policy", None) if is_new else ("mixed_precision", 6)
        is_hidden = site.has_unpacking and not unpacked(model, site.node)[1]
        is_chosen = passed_to(model, site.node, name, position) is not None
        if is_chosen or is_hidden or in_tests(model) or not _computes_in_half(site):
            return
        function = model.function(site.node)
        calls = [call for call in model.nodes(ast.Call) if model.target(call) in (*FULLY_SHARD, *FSDP)]
        if site.node is not next(call for call in calls if model.function(call) is function):
            # One finding says it for all units.
            return
        argument = "mp_policy=MixedPrecisionPolicy(…)" if is_new else "mixed_precision=MixedPrecision(…)"
        yield self.finding(
            site,
            f"{shown(site)} gathers parameters and reduces gradients in float32, and autocast "
            "computes in half precision",
            confidence=Confidence.MEDIUM,
            # It is called once, and each step pays for it.
            heat=Heat.HOT,
            help=f"Pass `{argument}` with `param_dtype=torch.bfloat16` in place of autocast.",
        )


def _computes_in_half(site: CallSite) -> bool:
    """True if the file computes under autocast of the GPU."""
    names = site.model.symbols
    for call in site.model.nodes(ast.Call):
        full = names.full_name(call.func)
        if full.endswith("autocast") and full.startswith("torch."):
            device = site.model.call(call).argument("device_type", 0)
            if full.startswith("torch.cuda.") or device is None or "cpu" not in ast.unparse(device):
                return True
    return False
