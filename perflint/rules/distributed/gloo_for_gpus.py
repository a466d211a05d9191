"""TPF930: a process group that sends the tensors of GPUs through the CPUs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._guards import is_guarded
from perflint.rules._methods import in_tests
from perflint.rules._names import DDP
from perflint.rules.base import Calls, CallSite, Mentions, Rule, device_confidence
from perflint.semantics.model import Model
from perflint.semantics.structure import is_none
from perflint.semantics.values import Const, Scalar

_REDUCES = tuple(f"torch.distributed.{name}" for name in ("all_reduce", "reduce", "broadcast", "all_gather"))
_OTHERS = r"(?i:win32|windows|\bnt\b)|nccl|ucc|mpi|xccl|hccl|rccl"


class GlooForGpus(Rule):
    """A process group of GPUs uses the gloo backend.

    ## What it does
    Finds `init_process_group("gloo")` without a condition, in files that give GPUs to `DistributedDataParallel`, or
    reduce tensors on a GPU, and that name no other backend.

    ## Why is this bad
    Gloo is made for CPUs. It copies each tensor to the CPU, sends it from there, and copies the result back: all
    gradients, in each step. NCCL sends from GPU to GPU, over NVLink where there is one, while the backward pass
    goes on. A training step of GPT-2 on two H200s of one host takes 10 × as long (332 ms, not 32).

    ## When it is fine
    - Tests on one machine, several processes on one GPU, which NCCL refuses.
    - Windows has no NCCL: files that name it are not reported.
    - A choice between the two: not reported.

    ## Bad
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    def setup(model: torch.nn.Module, rank: int, world: int):
        dist.init_process_group("gloo", rank=rank, world_size=world)
        return DistributedDataParallel(model.cuda(rank), device_ids=[rank])
    ```

    ## Good
    ```python
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    def setup(model: torch.nn.Module, rank: int, world: int):
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", rank=rank, world_size=world)
        return DistributedDataParallel(model.cuda(rank), device_ids=[rank])
    ```

    ## Fix safety
    No fix: each process needs a GPU of its own, and collectives of objects on the CPU need another group.

    ## How a GPU shows it
    A profile shows copies from and to the GPU around each `gloo:all_reduce`, and no NCCL kernel.

    ## References
    - [Which backend to use?](https://docs.pytorch.org/docs/stable/distributed.html#which-backend-to-use): "use the NCCL
      backend for distributed GPU training"
    """

    code, name = "TPF930", "gloo-for-gpus"
    effect, severity = Effect.PIPELINE, Severity.ERROR
    measured = ("gloo-for-gpus",)
    costs = "on two GPUs of one host, a training step of GPT-2 is {0} slower over gloo than over NCCL"
    listens = (Calls("torch.distributed.init_process_group"),)
    mentions = Mentions("gloo", unlike=_OTHERS)

    def check(self, site: CallSite) -> Iterator[Finding]:
        backend = site.argument("backend", 0)
        chosen = None if backend is None else site.value(backend)
        if (chosen.default if isinstance(chosen, Scalar) else chosen) != Const("gloo"):
            return
        if in_tests(site.model) or is_guarded(site.model, site.node) or not _uses_gpus(site.model):
            return
        yield self.finding(
            site,
            "gloo sends the tensors of the GPUs through the CPUs",
            confidence=Confidence.HIGH if isinstance(chosen, Const) else Confidence.MEDIUM,
            # It is said once, and holds for each step.
            heat=Heat.HOT,
            help='Pass "nccl".',
        )


def _uses_gpus(model: Model) -> bool:
    """True if the file gives a GPU to the wrapper of a model, or reduces tensors that are on one."""
    for call in model.nodes(ast.Call):
        target = model.target(call)
        if target in DDP:
            ids = model.call(call).argument("device_ids", 1)
            if (ids is not None and not is_none(ids)) or (call.args and _is_moved(call.args[0])):
                return True
        elif target in _REDUCES and call.args:
            given = call.args[0]
            if device_confidence(model.value(given)) is Confidence.HIGH:
                return True
    return False


def _is_moved(node: ast.expr) -> bool:
    """True for `model.cuda(rank)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda"
