"""TPF926: checkpoints that every process writes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._guards import is_condition
from perflint.rules._names import DDP
from perflint.rules._statements import outward
from perflint.rules.base import Calls, CallSite, Mentions, Rule, shown
from perflint.semantics.model import Model

_RANK = re.compile(r"rank|main_process|is_main|is_master|master|primary|world_size|leader|distributed", re.IGNORECASE)
_STARTS = frozenset({"torch.distributed.init_process_group", *DDP})


class UnguardedCheckpoint(Rule):
    """Every process of a distributed program writes the same checkpoint.

    ## What it does
    Finds `torch.save` in functions that start a process group or wrap models in
    `DistributedDataParallel`, if it runs unconditionally and the path does not mention the rank.

    ## Why is this bad
    All processes copy the whole model to the CPU and write it to the same path: the bus and the
    file system carry the same bytes once per process, and the file may end up corrupt. Two processes on one H200 that
    save the weights of GPT-2 to files of their own took 1.4 × as long as the first alone. More of them, or several
    GPUs, were not measured.

    ## When it is fine
    - Each process saves a part of its own, for example sharded states.
    - Under any condition, which may be true only on the first process, and in functions of their
      own, which may be called only there: not reported.

    ## Bad
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def train(model: torch.nn.Module, loader, path: str):
        model = DistributedDataParallel(model)
        for epoch in range(10):
            for x in loader:
                model(x).sum().backward()
            torch.save(model.state_dict(), path)
    ```

    ## Good
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def train(model: torch.nn.Module, loader, path: str):
        model = DistributedDataParallel(model)
        for epoch in range(10):
            for x in loader:
                model(x).sum().backward()
            if torch.distributed.get_rank() == 0:
                torch.save(model.state_dict(), path)
    ```

    ## Fix safety
    No fix: the other processes may have to wait for the file, or to take part in gathering the state.

    ## How a GPU shows it
    The trace of another process than the first confirms the finding if it wrote the file, too, and refutes it if it did
    not come here.

    Traces of all ranks show the same `Memcpy DtoH` of all parameters, and idle devices while files are
    written.

    ## References
    - [Saving and loading with DistributedDataParallel](https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html#save-and-load-checkpoints)
    """

    code, name = "TPF926", "unguarded-checkpoint"
    effect, severity = Effect.PIPELINE, Severity.INFO
    listens = (Calls("torch.save"),)
    mentions = Mentions("init_process_group", "DistributedDataParallel")

    def check(self, site: CallSite) -> Iterator[Finding]:
        function = site.model.function(site.node)
        if not _is_distributed(site.model) or _knows_rank(site) or not any(_starts(site.model, function)):
            return
        yield self.finding(
            site,
            f"{shown(site)} runs in every process, and all write the same file",
            confidence=Confidence.MEDIUM,
            help="Save on the first process only: `if torch.distributed.get_rank() == 0:`.",
        )


def _is_distributed(model: Model) -> bool:
    names = model.symbols
    return any(names.full_name(call.func) in _STARTS for call in model.nodes(ast.Call))


def _starts(model: Model, function: ast.AST | None) -> Iterator[bool]:
    """For each call of a function, True if it starts the process group: then each process runs the function."""
    names = model.symbols
    for call in model.nodes(ast.Call):
        if model.function(call) is function:
            yield names.full_name(call.func) in _STARTS


def _knows_rank(site: CallSite) -> bool:
    """True if the rank may decide whether the call runs, or which file it writes."""
    model = site.model
    for outer, inner in outward(model, site.node):
        if is_condition(outer) and not _counts_alone(outer):
            return True
        for name in ("body", "orelse"):
            block = getattr(outer, name, None)
            if isinstance(block, list) and inner in block:
                before = block[: block.index(inner)]
                if any(
                    isinstance(each, ast.If) and _leaves(each) and _RANK.search(model.source.written(each.test))
                    for each in before
                ):
                    return True
    return _RANK.search(site.text(site.node)) is not None


def _counts_alone(outer: ast.AST) -> bool:
    """True for `if step % 1000 == 0:`, which all processes do alike."""
    test = outer.test if isinstance(outer, ast.If) else None
    if not isinstance(test, ast.Compare) or _RANK.search(ast.unparse(test)):
        return False
    return isinstance(test.left, ast.BinOp) and isinstance(test.left.op, ast.Mod)


def _leaves(branch: ast.If) -> bool:
    return isinstance(branch.body[-1], (ast.Return, ast.Continue))
