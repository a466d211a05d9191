"""TPF933: a checkpoint that all processes load to one GPU."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._ddp import has_ddp
from perflint.rules._guards import is_guarded
from perflint.rules._methods import in_tests
from perflint.rules._states import is_state
from perflint.rules.base import Calls, CallSite, Mentions, Rule, shown


class CheckpointOnOneGpu(Rule):
    """Each process of a program for several GPUs loads a checkpoint where it was saved.

    ## What it does
    Finds `torch.load(path)` without `map_location` for `load_state_dict`, in files that wrap a model in
    `DistributedDataParallel`.

    ## Why is this bad
    `torch.load` restores each tensor to the device that it was saved from. If that is the first GPU, all processes put
    a copy of the checkpoint there: its memory fills up, and each process keeps a context on it. The weights of GPT-2
    (0.5 GB) took 1.2 GiB of the first GPU for each further process, and 8.2 GiB for seven, on an H200.

    ## When it is fine
    - The checkpoint was saved from the CPU.
    - One process loads it and sends it to the others: calls under a condition are not reported.

    ## Bad
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def build(model: torch.nn.Module, path: str, rank: int):
        model.load_state_dict(torch.load(path))
        return DistributedDataParallel(model.cuda(rank), device_ids=[rank])
    ```

    ## Good
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def build(model: torch.nn.Module, path: str, rank: int):
        model.load_state_dict(torch.load(path, map_location="cpu", mmap=True))
        return DistributedDataParallel(model.cuda(rank), device_ids=[rank])
    ```

    ## Fix safety
    No fix: states of optimizers may rely on the device.

    ## How a GPU shows it
    `nvidia-smi` shows all processes on the first GPU.

    ## References
    - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html): `map_location`
    """

    code, name = "TPF933", "checkpoint-on-one-gpu"
    effect, severity = Effect.MEMORY, Severity.INFO
    listens = (Calls("torch.load"),)
    mentions = Mentions("DistributedDataParallel", also=("load_state_dict",))

    def check(self, site: CallSite) -> Iterator[Finding]:
        model = site.model
        if site.argument("map_location", 1) is not None or site.has_unpacking or in_tests(model):
            return
        if is_guarded(model, site.node) or not is_state(model, site.node) or not has_ddp(model):
            return
        yield self.finding(
            site,
            f"{shown(site)} puts tensors where they were saved from: all processes load to one GPU",
            confidence=Confidence.MEDIUM,
            heat=Heat.WARM,
            help='Pass `map_location="cpu"`.',
        )
