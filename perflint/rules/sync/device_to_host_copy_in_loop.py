"""TPF109: copying a GPU tensor to the CPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Need, Severity
from perflint.rules._advice import copied_later, source_of
from perflint.rules._statements import block_of, outward
from perflint.rules.base import Calls, CallSite, ExpressionSite, Group, Rule, SubscriptSite, often, shown
from perflint.rules.sync._indices import Index, indices
from perflint.rules.sync._lists import gathered_on_device
from perflint.rules.sync._scalars import DEVICE_TO_HOST_COPY, TOLIST, confidence_at, list_at
from perflint.rules.sync._written import WRITES, written
from perflint.semantics.around import repeats, statement_of
from perflint.semantics.binders import defaults
from perflint.semantics.dataflow.origins import Source
from perflint.semantics.purpose.need import need_of_copy
from perflint.semantics.structure import names_in, walk
from perflint.semantics.values import Const, Device, Evidence, Sequence, Tensor, Value

_NUMPY = "torch.Tensor.numpy"
_CPU = "torch.Tensor.cpu"
_COPY = "torch.Tensor.copy_"
_TO = "torch.Tensor.to"
_MOVES = (_TO, "torch.Tensor.type", "torch.Tensor.type_as")


class DeviceToHostCopyInLoop(Rule):
    """
    ## What it does
    Finds blocking copies from the GPU to the CPU: `.cpu()`, `.to("cpu")`, `.tolist()`,
    `.numpy(force=True)`, `host.copy_(t)` and `host[i] = t` of tensors that may be on the GPU. Also functions
    that write or draw such tensors and copy them to the CPU for that, as information: `torch.save`, `save_image`,
    `ToPILImage`, `SummaryWriter.add_image`, `wandb.Image`.

    ## Why is this bad
    The CPU waits until the GPU has computed the tensor and sent it. Meanwhile the CPU queues no
    work, so the GPU runs dry afterwards. In a loop this happens on each iteration. A `.numpy()`
    after a `.cpu()` adds no cost.

    ## When it is fine
    One bulk copy after the loop: it is the cure for many small ones. Results that do not fit into
    GPU memory, or that are consumed at once. Arrays that NumPy works on in an evaluation, since
    these must be copied: they are reported as info. A copy of a whole chunk before a loop over its
    elements is reported as info, unless the code runs each step. Tensors that are on the CPU
    already. Copies in a function that the project calls only outside of trainings, once for a run, and arrays
    that only functions of another library or of the project take, outside of training: these are info, too.
    `non_blocking=True` into pinned memory, with an event that the CPU waits for before it
    reads.

    ## Bad
    ```python
    import torch

    def predict(model: torch.nn.Module, loader):
        outputs = []
        for x in loader:
            y = model(x.cuda())
            outputs.append(y.cpu())
        return torch.cat(outputs)
    ```

    ## Good
    ```python
    import torch

    def predict(model: torch.nn.Module, loader):
        outputs = []
        for x in loader:
            outputs.append(model(x.cuda()))
        return torch.cat(outputs)
    ```

    ## Fix safety
    Unsafe. `outputs.append(y.cpu())` becomes `outputs.append(y.clone())`, with
    `outputs = [each.cpu() for each in outputs]` after the loop, if the loop does nothing else with a list that is
    empty before it; `.clone()` is left out if nothing else can hold or change the tensor. The list has the same
    tensors afterwards, but all of them take memory of the GPU until then: check whether they fit. A tensor that is
    on the CPU already is copied, so that a later write to it does not show in the list. The error of a failing
    kernel shows up after the loop. If it is unknown how many dimensions the tensors have, the fix is only shown: they
    may be images, which do not fit. No fix is offered for tensors that are known to have three or more dimensions,
    in a loop that calls `empty_cache` or uses streams, and for other copies: with `non_blocking=True` alone the
    CPU may read memory that is not written yet.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a profile shows `Memcpy DtoH` and
    the CPU in `cudaStreamSynchronize`, on each iteration.

    ## References
    - [Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [A guide on good usage of non_blocking and pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code, name = DEVICE_TO_HOST_COPY, "device-to-host-copy-in-loop"
    group = Group.COPY
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = (
        "device-to-host-copy-in-loop-gpt",
        "device-to-host-copy-in-loop-gpt-host-work",
        "device-to-host-copy-in-loop-policy",
    )
    listens = (Calls(TOLIST, _NUMPY, _CPU, _COPY, *_MOVES, *WRITES), SubscriptSite)

    def need(self, site: ExpressionSite) -> Need:
        return need_of_copy(site)

    def check(self, site: CallSite | SubscriptSite) -> Iterator[Finding]:
        if isinstance(site, SubscriptSite):
            yield from self._stores(site)
            return
        if site.target in WRITES:
            yield from self._writes(site)
            return
        confidence = _confidence(site)
        if confidence is None:
            return
        is_bulk = (site.heat is not Heat.HOT and _feeds_loop(site)) or (
            confidence is not Confidence.HIGH and _is_gone_over(site)
        )
        yield self.finding(
            site,
            f"{shown(site)} is a blocking GPU-to-CPU copy{often(site)}",
            confidence=confidence,
            severity=None if repeats(site) and not is_bulk else Severity.INFO,
            help=copied_later(site),
            fix=gathered_on_device(site) if _is_plain(site) else None,
        )

    def _writes(self, site: CallSite) -> Iterator[Finding]:
        if (confidence := written(site)) is not None:
            yield self.finding(
                site,
                f"{shown(site)} copies its tensors to the CPU: the CPU waits for the GPU{often(site)}",
                confidence=confidence,
                severity=Severity.INFO,
                help="Files and pictures need the data on the CPU: write them rarely.",
            )

    def _stores(self, site: SubscriptSite) -> Iterator[Finding]:
        confidence = _stored(site)
        if confidence is None or site.stored is None:
            return
        yield self.finding(
            site,
            f"Storing {shown(site, site.stored)} in {shown(site)} is a blocking GPU-to-CPU copy{often(site)}",
            confidence=confidence,
            severity=None if repeats(site) else Severity.INFO,
            help="Make the tensor that is filled on the GPU, and copy it once afterwards.",
        )


def _is_plain(site: CallSite) -> bool:
    """True for `.cpu()` and `.to("cpu")`."""
    given = [*site.node.args, *(each.value for each in site.node.keywords if each.arg == "device")]
    if len(given) != len(site.node.args) + len(site.node.keywords):
        return False
    return site.target == _CPU if not given else site.target == _TO and len(given) == 1 and _names_host(site)


def _stored(site: SubscriptSite) -> Confidence | None:
    """How sure it is that a store copies a tensor of the device into one that the CPU made."""
    if site.mode != "store" or site.stored is None:
        return None
    held = site.value(site.node.value)
    is_made = isinstance(held, Tensor) and held.device is Device.CPU and held.evidence is Evidence.CERTAIN
    if not is_made or not all(index in (Index.VIEW, Index.INTEGER) for index in indices(site)):
        return None
    value = site.value(site.stored)
    if isinstance(value, Sequence) and value.type == "batch":
        # The result of a model: only a tensor can be stored.
        value = value.element
    # What fills a tensor of the CPU is often on the CPU, too: the place that callers chose proves nothing.
    is_there = isinstance(value, Tensor) and value.device in (Device.CUDA, Device.MODEL)
    confidence = confidence_at(site, value) if is_there else None
    return None if confidence is Confidence.LOW else confidence


def _confidence(site: CallSite) -> Confidence | None:
    """How sure it is that a call copies from the device and waits; None if it does not."""
    if site.target == TOLIST:
        read = list_at(site)
        return None if read is None else read.confidence
    if _is_true(site, "non_blocking") or not isinstance(site.node.func, ast.Attribute):
        return None
    if site.target == _COPY:
        source = site.argument("src", 0)
        if source is None or not _is_on_host(_receiver(site)):
            return None
        confidence = confidence_at(site, site.value(source))
        is_made = source_of(site, site.node.func.value).source is Source.MADE
        is_sure = is_made or all(member.tensor is not None for member in _receiver(site).members)
        return confidence if is_sure or confidence is None else Confidence.LOW
    if site.target == _NUMPY and not _is_true(site, "force"):
        # Without `force` it raises an error for a tensor on the device, so this one is on the CPU.
        return None
    if site.target in _MOVES and not _is_on_host(site.value(site.node)):
        return None
    confidence = confidence_at(site, _receiver(site))
    if site.target in _MOVES and confidence is not None and _goes_to_default(site):
        return Confidence.LOW
    if site.target in _MOVES and confidence is Confidence.LOW and not _names_host(site):
        # Only a difference shows that the tensor is not on the destination already.
        return Confidence.MEDIUM if _differs(site) else None
    return confidence


def _goes_to_default(site: CallSite) -> bool:
    """True if the destination is a parameter with a default, which callers replace: `def f(x, device="cpu")`."""
    function = site.model.function(site.node)
    destination = site.argument("device", 0)
    return function is not None and isinstance(destination, ast.Name) and destination.id in defaults(function)


def _differs(site: CallSite) -> bool:
    """True if a test has found that the tensor is elsewhere: `if x.device != host.device`."""
    assert isinstance(site.node.func, ast.Attribute)
    name = site.text(site.node.func.value)
    tests = [outer.test for outer in site.model.ancestors(site.node) if isinstance(outer, ast.If)]
    compared = [node for test in tests for node in walk(test) if isinstance(node, ast.Compare)]
    return any(
        isinstance(node.ops[0], ast.NotEq) and f"{name}.device" in map(site.text, (node.left, *node.comparators))
        for node in compared
    )


def _feeds_loop(site: CallSite) -> bool:
    """True if a later loop reads the copy: then one bulk copy replaces many small ones."""
    statement = statement_of(site.model, site.node)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    block, name = block_of(site.model, statement), statement.targets[0].id
    later = block[block.index(statement) + 1 :]
    return any(isinstance(each, (ast.For, ast.While)) and name in names_in(each) for each in later)


def _is_gone_over(site: CallSite) -> bool:
    """True if a loop iterates over the copy right here: `for one, other in zip(xs.cpu(), ys.cpu())`."""
    if site.target == TOLIST:
        return False
    for outer, inner in outward(site.model, site.node):
        if isinstance(outer, ast.comprehension):
            return inner is outer.iter
        if isinstance(outer, ast.stmt):
            return False
    return False


def _names_host(site: CallSite) -> bool:
    """True if the destination is written out: `"cpu"` or `torch.device("cpu")`."""
    given = [*site.node.args, *(keyword.value for keyword in site.node.keywords)]
    return any(isinstance(node, ast.Constant) and node.value == "cpu" for part in given for node in walk(part))


def _receiver(site: CallSite) -> Value:
    assert isinstance(site.node.func, ast.Attribute)
    return site.value(site.node.func.value) if site.receiver is None else site.receiver


def _is_true(site: CallSite, name: str) -> bool:
    given = site.argument(name)
    return given is not None and site.value(given) != Const(False)


def _is_on_host(value: Value) -> bool:
    return value.tensor is not None and value.tensor.device is Device.CPU
