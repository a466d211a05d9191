"""TPF962: the clock is read while the GPU is still working."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.frozen import dataclass
from perflint.rules._memory.flows import ahead, made
from perflint.rules._operators import operators
from perflint.rules._statements import block_of
from perflint.rules.base import Calls, CallSite, Rule, device_confidence, shown
from perflint.semantics.around import statement_of
from perflint.semantics.model import Model
from perflint.semantics.structure import names_in, walk

_CLOCKS = tuple(f"time.{name}" for name in ("time", "perf_counter", "monotonic", "time_ns", "perf_counter_ns"))
_WAITS = operators("waits", "by_name")
_WAITING_CALLS = frozenset(f"builtins.{name}" for name in ("float", "int", "bool", "print", "str"))


@dataclass(frozen=True, slots=True)
class _Timed:
    """The statements between two readings of the clock, and the reading that ends them."""

    end: ast.BinOp
    work: ast.Call


class TimingWithoutSynchronize(Rule):
    """A time is taken before the GPU has done the work.

    ## What it does
    Finds `start = time.time()`, a call of a module or a backward pass on the GPU, and
    `time.time() - start`, in one block of statements without a wait for the GPU.

    ## Why is this bad
    Calls return when their kernels are queued, not when they are done. The difference is the time
    that queueing took, usually far too short, and the next call that waits seems to be slow. It
    does not slow the program down, but leads to decisions on wrong figures.

    ## When it is fine
    - The CPU time is intended.
    - A loop of many steps is timed, and little is left in the queue at its end: not reported.
    - The model is on the CPU.

    ## Bad
    ```python
    import time

    import torch

    def measure(model: torch.nn.Module, x: torch.Tensor):
        x = x.cuda()
        start = time.perf_counter()
        model(x)
        return time.perf_counter() - start
    ```

    ## Good
    ```python
    import time

    import torch

    def measure(model: torch.nn.Module, x: torch.Tensor):
        x = x.cuda()
        torch.cuda.synchronize()
        start = time.perf_counter()
        model(x)
        torch.cuda.synchronize()
        return time.perf_counter() - start
    ```

    ## Fix safety
    No fix: `synchronize` before both readings measures the right time, but slows down a loop that
    is timed in each step; `torch.cuda.Event(enable_timing=True)` does not.

    ## How a GPU shows it
    A trace refutes the finding if the statement before the reading waited for the GPU.

    A profile shows kernels that run after the clock was read.

    ## References
    - [Asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
    - [torch.utils.benchmark](https://docs.pytorch.org/docs/stable/benchmark_utils.html)
    """

    code, name = "TPF962", "timing-without-synchronize"
    effect, severity = Effect.CORRECTNESS, Severity.INFO
    listens = (Calls(*_CLOCKS),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if (found := _timed(site)) is not None:
            yield self.finding(
                site,
                f"{shown(site, found.end)} is read while {shown(site, found.work)} may still run on the GPU",
                confidence=Confidence.MEDIUM,
                help="Call `torch.cuda.synchronize()` before both readings, or use CUDA events.",
            )


def _timed(site: CallSite) -> _Timed | None:
    """The work that a reading of the clock times, if it ends a difference in the same block as its start."""
    model = site.model
    now = ahead(model, site.node)
    end = model.parent(now)
    if not isinstance(end, ast.BinOp) or not isinstance(end.op, ast.Sub) or end.left is not now:
        return None
    statement = statement_of(model, end)
    if statement is None:
        return None
    block = block_of(model, statement)
    start = made(model, end.right)
    began = statement_of(model, start)
    if not isinstance(start, ast.Call) or model.target(start) not in _CLOCKS or began not in block:
        return None
    between = block[block.index(began) + 1 : block.index(statement)]
    if any(_reads(each, names_in(end.right)) for each in between):
        return None
    work = _work(model, between)
    return None if work is None else _Timed(end, work)


def _reads(statement: ast.stmt, names: set[str]) -> bool:
    """True if a statement reads one of some names."""
    parts = (part for part in walk(statement) if isinstance(part, ast.Name))
    return any(part.id in names and isinstance(part.ctx, ast.Load) for part in parts)


def _work(model: Model, between: Sequence[ast.stmt]) -> ast.Call | None:
    """The last call among some statements that certainly runs on the device; None if anything may wait."""
    found: ast.Call | None = None
    for each in between:
        for part in walk(each):
            if isinstance(part, (ast.For, ast.AsyncFor, ast.While, ast.If, ast.ListComp)):
                return None
            if isinstance(part, ast.Call):
                if _may_wait(model, part):
                    return None
                if _is_work(model, part):
                    found = part
    return found


def _may_wait(model: Model, call: ast.Call) -> bool:
    site = model.call(call)
    if site.target in _WAITING_CALLS:
        return True
    last = (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else call.func.id
        if isinstance(call.func, ast.Name)
        else ""
    )
    # An unknown function may wait: most helpers that run whole models do.
    return last in _WAITS or not site.target.startswith(("torch.", "builtins.", "time."))


def _is_work(model: Model, call: ast.Call) -> bool:
    site = model.call(call)
    if site.target == "torch.nn.Module.__call__":
        return any(_on_device(model, given) for given in call.args)
    if site.target == "torch.Tensor.backward" and isinstance(call.func, ast.Attribute):
        return _on_device(model, call.func.value)
    return False


def _on_device(model: Model, node: ast.expr) -> bool:
    return device_confidence(model.value(node)) in (Confidence.HIGH, Confidence.MEDIUM)
