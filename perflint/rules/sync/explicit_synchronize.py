"""TPF122: explicit synchronization with the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._operators import operators
from perflint.rules._statements import block_of
from perflint.rules.base import Calls, CallSite, Rule, device_confidence, often, shown
from perflint.rules.sync._waiting import is_needed
from perflint.semantics.around import repeats
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, last_name, path_of

_SYNCHRONIZE = tuple(sorted(operators("waits", "synchronize")))
_EVENTS = frozenset(f"torch.{name}.synchronize" for name in ("Event", "cuda.Event", "cuda.streams.Event"))
_READS = frozenset(("item", "cpu", "numpy", "tolist"))
"""Methods that wait for a result."""


class ExplicitSynchronize(Rule):
    """
    ## What it does
    Finds `torch.cuda.synchronize()`, `stream.synchronize()` and `event.synchronize()` that run in a loop or
    on a hot path.

    ## Why is this bad
    The CPU waits for everything that it has queued, and the GPU then waits for the CPU. PyTorch
    orders work on a stream by itself and waits wherever the CPU reads a result, so correctness does
    not need such a call. One per step made training of a 124 M parameter GPT 2.6% slower on an
    H200, and more if CPU work follows it.

    ## When it is fine
    `event.synchronize()` waits only for the work queued before the event: it is reported by the
    audit profile only, unless the event was recorded right before. Next to a clock or an event
    timer, in profiling and benchmarks. Before the CPU reads memory that a `non_blocking` copy
    fills, or fills memory that such a copy reads; a copy to the GPU needs no wait. Before the capture of
    CUDA graphs; their replay needs none. Between streams, processes or libraries
    that share memory without events. Once, at the end. Such code counts if it runs as often as the wait:
    a clock around the whole epoch does not need one in each step.

    ## Bad
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            torch.cuda.synchronize()
    ```

    ## Good
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()
    ```

    ## Fix safety
    No fix: the source does not show why the call is there.

    ## How a GPU shows it
    A profile shows `cudaDeviceSynchronize`, `cudaStreamSynchronize` or `cudaEventSynchronize` below
    the line, and no kernel until the CPU resumes. Torch's sync debug mode does not warn about all
    of them. A trace records each call of `synchronize` of `torch.cuda`, its streams and its events, and
    refutes none: a line that ran without one called another function.

    ## References
    - [CUDA semantics: asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
    - [torch.cuda.Event](https://docs.pytorch.org/docs/stable/generated/torch.cuda.Event.html)
    """

    code, name = "TPF122", "explicit-synchronize"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("explicit-synchronize-gpt", "explicit-synchronize-gpt-host-work", "explicit-synchronize-policy")
    listens = (Calls(*_SYNCHRONIZE),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not (repeats(site) or _is_all(site)) or is_needed(site):
            return
        sure, awaited = Confidence.HIGH if site.heat is Heat.HOT else Confidence.MEDIUM, "all work of the GPU"
        if site.target.endswith("Stream.synchronize"):
            awaited = "all work of the stream"
        is_alone = not repeats(site) and not _is_before_work(site)
        if is_alone or _is_helper(site) or _is_of_optimizer(site):
            # It is unknown how often the function runs, or its only purpose is to wait: its callers decide.
            sure = Confidence.LOW
        if site.target in _EVENTS and _was_just_recorded(site):
            awaited = "all work of the stream so far, as the event was recorded right before"
        elif site.target in _EVENTS:
            # The code waits for an event that it chose; often the work before that is done already.
            sure, awaited = Confidence.LOW, "the work before the event"
        yield self.finding(
            site,
            f"{shown(site)} makes the CPU wait for {awaited}{often(site)}",
            confidence=sure,
            help=_cure(site),
        )


def _cure(site: CallSite) -> str:
    """The advice, by the code around that gives the GPU its work."""
    function = site.model.function(site.node)
    calls = calls_in(function) if function is not None else ()
    if any(site.model.target(call).startswith("torch.distributed.") for call in calls):
        return (
            "Remove it: the GPU waits for collectives by itself, for asynchronous ones from `wait()` of the handle on."
        )
    return (
        "Remove it: a stream keeps the order of its work, and `wait_stream` lets one wait for another. To measure time "
        "on the GPU, record events and read them later."
    )


def _was_just_recorded(site: CallSite) -> bool:
    """True if the statement before records the event that is waited for."""
    statement = site.model.parent(site.node)
    if not isinstance(statement, ast.Expr) or not isinstance(site.node.func, ast.Attribute):
        return False
    block = block_of(site.model, statement)
    at = block.index(statement)
    before = block[at - 1] if at else None
    if not isinstance(before, ast.Expr) or not isinstance(before.value, ast.Call):
        return False
    func = before.value.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr == "record"
        and path_of(func.value) == path_of(site.node.func.value) != ""
    )


def _is_helper(site: CallSite) -> bool:
    """True if a function does nothing but wait: `def sync(): if is_available(): torch.cuda.synchronize()`."""
    function = site.model.function(site.node)
    if not isinstance(function, ast.FunctionDef):
        return False
    done = [each for each in function.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    while len(done) == 1 and isinstance(done[0], ast.If) and not done[0].orelse:
        done = done[0].body
    return len(done) == 1 and done[0] is site.model.parent(site.node)


def _is_of_optimizer(site: CallSite) -> bool:
    """True if an optimizer waits in its own step: a step on the CPU needs gradients that have arrived."""
    function = site.model.function(site.node)
    owner = site.model.parent(function) if function is not None else None
    if not isinstance(owner, ast.ClassDef) or not isinstance(function, ast.FunctionDef) or function.name != "step":
        return False
    names = [owner.name, *(path_of(base).rpartition(".")[2] for base in owner.bases)]
    return any(name.endswith(("Optimizer", "Adam", "AdamW", "SGD")) for name in names)


def _is_all(site: CallSite) -> bool:
    """True if a call that may run each step waits for the whole device."""
    if site.heat is not Heat.WARM or site.target in _EVENTS or site.target.endswith("Stream.synchronize"):
        return False
    function, statement = site.model.function(site.node), site.model.parent(site.node)
    # At the end of a function it may run once.
    return not (isinstance(function, ast.FunctionDef) and function.body[-1] is statement)


def _is_before_work(site: CallSite) -> bool:
    """True if the function that waits computes on the GPU next, which runs in order without a wait.

    Not if it first reads a result, as the CPU would then wait there.
    """
    model, statement = site.model, site.model.parent(site.node)
    if not isinstance(statement, ast.Expr) or not isinstance(model.function(site.node), ast.FunctionDef):
        return False
    block = block_of(model, statement)
    for after in block[block.index(statement) + 1 :]:
        if not isinstance(after, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)):
            return False
        calls = [*calls_in(after)]
        if any(last_name(call) in _READS for call in calls):
            return False
        if any(_computes(model, call) for call in calls):
            return True
    return False


def _computes(model: Model, call: ast.Call) -> bool:
    """True if a call of torch makes a tensor that may be on the GPU."""
    return model.target(call).startswith("torch.") and device_confidence(model.value(call)) is not None
