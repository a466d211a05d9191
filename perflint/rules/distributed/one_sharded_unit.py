"""TPF931: a model that is sharded as one unit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules._names import FSDP, FULLY_SHARD
from perflint.rules._operators import operators
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.semantics.around import loops_around
from perflint.semantics.values import Instance

_WHOLES = operators("distributed", "wholes")
_NESTS = re.compile(r"\benable_wrap\b|auto_wrap_policy|apply_fsdp|parallelize")
_WRAP = "torch.distributed.fsdp.wrap.wrap"
_SHARDS = re.compile(r"fully_shard\(|FSDP\(|FullyShardedDataParallel\(")


class OneShardedUnit(Rule):
    """FSDP shards a whole model as one unit.

    ## What it does
    Finds `FullyShardedDataParallel(model)` without `auto_wrap_policy`, and a `fully_shard(model)` that is the only one,
    if no other code of the project shards the layers.

    ## Why is this bad
    A unit is gathered as a whole: before the forward pass, all parameters of the model are copied to each GPU.
    Nothing overlaps with that, and the memory at its peak is that of the whole model, which sharding was to avoid.
    With a unit for each block, one is gathered while the one before computes. It is a matter of memory: a small
    model does not gain time by units. A training step of GPT-2 on two H200s of one host took 55 ms as one unit, and
    100 ms with a unit for each of its 12 blocks, as each unit launches work of its own. The peak of that step, with two
    processes on one H200, was 8.24 GiB as one unit and 7.95 GiB with units.

    ## When it is fine
    - The layers are sharded elsewhere: projects with other calls, and files with a policy, are not reported.
    - Small models, and single layers.

    ## Bad
    ```python
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel

    def build(model: torch.nn.Module):
        return FullyShardedDataParallel(model, device_id=torch.cuda.current_device())
    ```

    ## Good
    ```python
    import torch
    from torch.distributed.fsdp import fully_shard

    def build(model: torch.nn.Module):
        for block in model.layers:
            fully_shard(block)
        return fully_shard(model)
    ```

    ## Fix safety
    No fix: only the author can say which layers are units.

    ## How a GPU shows it
    A profile shows one long `ncclDevKernel_AllGather` before the first kernel of the model.

    ## References
    - [FullyShardedDataParallel](https://docs.pytorch.org/docs/stable/fsdp.html)
    - [fully_shard](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html): "users should apply it
      bottom-up"
    """

    code, name = "TPF931", "one-sharded-unit"
    effect, severity = Effect.PIPELINE, Severity.INFO
    measured = ("one-sharded-unit",)
    listens = (Calls(*FSDP, *FULLY_SHARD),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        model, given = site.model, site.argument("module", 0)
        if given is None or site.has_unpacking or in_tests(model) or next(loops_around(model, site.node), None):
            return
        if _is_layer(site, given) or len(_units(site)) > 1 or "NO_SHARD" in site.text(site.node):
            return
        if site.argument("auto_wrap_policy", 4) is not None or model.matches(_NESTS):
            return
        if len(model.view.matching(_SHARDS)) > 1 or any(model.target(each) == _WRAP for each in model.nodes(ast.Call)):
            return
        yield self.finding(
            site,
            f"{shown(site)} shards the model as one unit: all parameters are gathered at once",
            confidence=Confidence.MEDIUM,
            # It is called once, and each step pays for it.
            heat=Heat.HOT,
            help="Shard each block before the model: a policy, or `fully_shard(block)` in a loop.",
        )


def _units(site: CallSite) -> list[ast.Call]:
    """The calls of the file that shard what may be more than a layer, or the elements of a list of layers."""
    calls = (site.model.call(call) for call in site.model.nodes(ast.Call) if site.model.target(call) == site.target)
    given = [(each, module) for each in calls if (module := each.argument("module", 0)) is not None]
    return [
        each.node
        for each, module in given
        if next(loops_around(site.model, each.node), None) is not None or not _is_layer(each, module)
    ]


def _is_layer(site: CallSite, given: ast.expr) -> bool:
    """True if a module is a single layer of torch."""
    value = site.value(given)
    return isinstance(value, Instance) and value.cls.startswith("torch.nn.") and value.cls not in _WHOLES
