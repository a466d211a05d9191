"""TPF101: reading one number of a GPU tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile
from typing import TypeGuard

from perflint.findings import Effect, Finding, Fix, Heat, Need, Severity
from perflint.rules._advice import read_later
from perflint.rules._statements import block_of, outward_in_function
from perflint.rules.base import Calls, CallSite, ExpressionSite, Group, Rule, often, shown
from perflint.rules.sync._joined import read_together
from perflint.rules.sync._lists import listed_on_device
from perflint.rules.sync._meters import averaged_on_device
from perflint.rules.sync._scalars import NUMBERS, SCALAR_READ, Read, number_at
from perflint.rules.sync._sums import summed_on_device
from perflint.rules.sync._tested import asked_together
from perflint.semantics.around import inside, loops_around, statement_of
from perflint.semantics.binders import LOOPS
from perflint.semantics.model import Model
from perflint.semantics.purpose.need import need_of_read
from perflint.semantics.structure import calls_in, names_in, stands_in, walk
from perflint.semantics.values import Device, Tensor

_LEAVES = (ast.Break, ast.Return, ast.Continue, ast.Raise)
_TRIES = (ast.Try, ast.TryStar)
_METHODS = ("append", "update")


class ScalarReadInLoop(Rule):
    """
    ## What it does
    Finds `.item()`, `float(t)`, `int(t)`, `complex(t)` and the `.tolist()` of a zero-dimensional
    tensor, if the tensor may be on the GPU.

    ## Why is this bad
    The CPU cannot know the number before the GPU has computed it, so it waits until all queued work
    is done. Until the CPU has queued new work, the GPU is idle. The cost is that idle time, not the
    duration of the call: on an H200 one `loss.item()` per step cost nothing in a launch-bound loop,
    1 to 4% in GPU-bound training of ResNet-50 and of a 124 M parameter GPT, and 41% if 10 ms of
    CPU work (loading, logging) came between the read and the next kernel. In a `torch.compile`d
    function each read breaks the graph: twelve of them made a small forward 1.5 times slower.

    ## When it is fine
    It runs rarely: after the loop, once per epoch, under `if step % 100 == 0`, in set-up and
    checkpointing. The tensor is on the CPU: a batch of a `DataLoader` before it is moved, a random
    permutation, a NumPy scalar, the result of `.cpu()` (that copy is the sync). The next
    steps depend on the number, and only the GPU can compute it. The queue of the GPU never runs dry.

    ## Bad
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        total = 0.0
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total / len(loader)
    ```

    ## Good
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        total = torch.zeros((), device="cuda", dtype=torch.float64)
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total / len(loader)
    ```

    ## Fix safety
    Unsafe. Sums: `total += loss.item()` becomes
    `total += loss.detach().double()`, with `total = float(total)` after the loop. The sum is the
    same, in double precision like a Python float. Some devices other than NVIDIA's and AMD's GPUs
    do not support doubles: if a file of the project names `mps`, it is `.float()`, which may round differently.
    A sum of floats that began as `0` is `0.0` if the loop has no iterations; the error of a failing kernel
    shows up later; a debugger sees a tensor. A sum that began as `0` and may be a whole number gets no fix,
    unless it is only divided. If something in the loop uses the sum in few iterations, as for a log every 100
    steps, it gets `float(total)`; if it does so in each iteration, no fix is offered.

    Lists: `losses.append(loss.item())` becomes `losses.append(loss.detach().clone())`, with
    `losses = torch.stack(losses).tolist() if losses else []` after the loop, if the loop does nothing else with a
    list that is empty before it. The numbers are the same; the GPU keeps a small tensor for each iteration. The same
    is done for `losses += [loss.item()]`.

    Averages: `meter.update(loss.item(), n)` becomes `meter.update(loss.detach().double(), n)` if the class of
    `meter` only computes with the number and formats it, and if nothing in the loop reads its numbers
    in each iteration. `.reshape(())` follows if the tensor may have dimensions. Where the function uses the
    numbers outside of texts, they become `float(meter.avg)`. The averages and the texts are the same; times
    that the loop measures no longer include the wait.

    Sums, lists and averages in a row get these fixes only if all of them do: if one stays, the CPU waits
    there in any case. None gets one if each iteration needs the same number for something else, as in
    `bar.set_postfix(loss=loss.item())`, if the loop reads another number in each iteration to decide if it goes on, or
    in a `try` of the loop that handles errors.

    Three or more reads in neighbouring statements, if none of these is possible: one `torch.stack([…]).tolist()` in
    front of them reads all numbers at once. They must be numbers of one tensor or of tensors on the GPU, of one kind
    of dtype, and must have their values before the first read; no other code that runs between them may
    write to them, but `append` is believed to append only. The numbers are the same. All are computed before
    the first is read, so that none is read if one of them raises; tensors on different GPUs raise.

    Truth values in a row: `a.all().item() and b.all().item()` becomes `(a.all() & b.all()).item()`, as
    truth-of-tensor describes. This fix is safe if all ask one tensor.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line. A profile shows `aten::item` with
    `cudaStreamSynchronize` in it, and a gap between the last kernel before it and the first kernel
    after it. That gap is the cost.

    ## References
    - [Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.Tensor.item](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html)
    """

    code, name = SCALAR_READ, "scalar-read-in-loop"
    group = Group.READ
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("scalar-read-in-loop-gpt", "scalar-read-in-loop-gpt-host-work", "scalar-read-in-loop-policy")
    listens = (Calls(*NUMBERS),)

    def need(self, site: ExpressionSite) -> Need:
        return need_of_read(site)

    def check(self, site: CallSite) -> Iterator[Finding]:
        read = number_at(site)
        if read is None:
            return
        joined = asked_together(site.model, read)
        yield self.finding(
            site,
            f"{shown(site, read.node)} blocks the CPU until the GPU catches up{often(site)}",
            confidence=read.confidence,
            help=read_later(site, read.node, read.tensor),
            fix=_kept_on_device(site, read) or read_together(site, read) or (None if joined is None else joined.fix),
        )


def _kept_on_device(site: CallSite, read: Read) -> Fix | None:
    """The fix for a number that goes into a sum, an average or a list; None if the CPU waits beside it in any case."""
    fix = None if _is_handled(site.model, read.node) else _kept(site, read)
    return None if fix is None or _waits_anyway(site.model, read) else fix


def _waits_anyway(model: Model, read: Read) -> bool:
    """True if the CPU waits in each iteration although a number stays on the GPU."""
    return _waits_beside(model, read.node) or _is_read_again(model, read) or _waits_for_number(model, read.node)


def _is_handled(model: Model, read: ast.expr) -> bool:
    """True if a `try` in the loop handles what the read raises, which is an error of any kernel before it."""
    for outer, inner in outward_in_function(model, read):
        if isinstance(outer, LOOPS):
            return False
        if isinstance(outer, _TRIES) and stands_in(outer.body, inner):
            return bool(outer.handlers)
    return False


def _kept(site: CallSite, read: Read) -> Fix | None:
    return summed_on_device(site, read) or averaged_on_device(site, read) or listed_on_device(site, read)


def _waits_beside(model: Model, read: ast.expr) -> bool:
    """True if a statement of the same kind, in a row with that of a read, needs its number in each iteration."""
    statement = statement_of(model, read)
    if statement is None:
        return False
    block = block_of(model, statement)
    at = block.index(statement)
    row = (*takewhile(_gathers, reversed(block[:at])), *takewhile(_gathers, block[at + 1 :]))
    found = [*calls_in(*row)]
    if any(_is_item(node) and not model.target(node) for node in found):
        # Only tensors and arrays have such numbers: an unknown one may be on the GPU, too.
        return True
    calls = (model.call(node) for node in found)
    numbers = ((call, number_at(call)) for call in calls if call.target in NUMBERS)
    return any(number is not None and _kept(call, number) is None for call, number in numbers)


def _is_read_again(model: Model, read: Read) -> bool:
    """True if each iteration needs the same number elsewhere: `total += loss.item()`, `bar.set(loss.item())`."""
    loop = next((outer for outer in inside(model, read.node) if isinstance(outer, LOOPS)), None)
    if loop is None or not isinstance(read.tensor, ast.Name):
        return False
    uses = model.names(loop, read.tensor.id)
    return any(use is not read.tensor and _needs_number(model, use) for use in uses if model.heat(use) is not Heat.COLD)


def _needs_number(model: Model, use: ast.Name) -> bool:
    """True if the CPU waits for the number of a tensor, and no fix keeps it on the GPU."""
    outer = model.parent(use)
    if isinstance(outer, ast.Attribute):
        outer = model.parent(outer)
    if isinstance(outer, ast.FormattedValue):
        return outer.value is use
    if not isinstance(outer, ast.Call):
        return False
    call = model.call(outer)
    number = number_at(call) if call.target in NUMBERS else None
    return number is not None and number.tensor is use and _kept(call, number) is None


def _gathers(statement: ast.stmt) -> bool:
    """True for `total += …`, `values.append(…)` and `meter.update(…)`."""
    if isinstance(statement, ast.AugAssign):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS


def _waits_for_number(model: Model, node: ast.expr) -> bool:
    """True if the loop around a node reads another number in each iteration, which decides if it goes on."""
    loop = next(loops_around(model, node), None)
    if isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return any(_is_read(model, each) for decides in _decisions(loop) for each in walk(decides) if each is not node)
    return False


def _decisions(loop: ast.For | ast.AsyncFor | ast.While) -> Iterator[ast.expr]:
    """The tests that end a loop or an iteration of it, and the values of the names in its own test."""
    asked = names_in(loop.test) if isinstance(loop, ast.While) else set()
    if isinstance(loop, ast.While):
        yield loop.test
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and any(names_in(target) & asked for target in statement.targets):
            yield statement.value
        if isinstance(statement, ast.If) and any(isinstance(each, _LEAVES) for each in statement.body):
            yield statement.test


def _is_read(model: Model, node: ast.AST) -> bool:
    """True for `x.item()` of anything but a tensor that is known to be on the CPU."""
    if not _is_item(node) or not isinstance(node.func, ast.Attribute):
        return False
    held = model.value(node.func.value)
    return not (isinstance(held, Tensor) and held.device is Device.CPU)


def _is_item(node: ast.AST) -> TypeGuard[ast.Call]:
    """True for a call `x.item()`."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    return isinstance(node.func, ast.Attribute) and node.func.attr == "item"
