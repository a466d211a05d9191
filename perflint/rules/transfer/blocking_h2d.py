"""TPF201: blocking copies from the CPU to the GPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Need, Safety, Severity, lowered, weakest
from perflint.fixes.edits import with_one_more
from perflint.rules._advice import uploaded
from perflint.rules._project_text import names_apple_gpus
from perflint.rules._proven import names_cuda
from perflint.rules.base import (
    Calls,
    CallSite,
    ExpressionSite,
    Group,
    Rule,
    SubscriptSite,
    device_confidence,
    often,
    shown,
)
from perflint.rules.placement import (
    MOVES,
    Content,
    Move,
    content,
    creator,
    goes_to_cuda,
    host_confidence,
    is_gpu,
    move,
    place_confidence,
)
from perflint.rules.sync._indices import Index, indices
from perflint.rules.transfer._batches import batch_of, is_only_read, pinning, takes_non_blocking
from perflint.rules.transfer._computed import computed_there
from perflint.rules.worth import sentence
from perflint.semantics.around import loops_around, targets
from perflint.semantics.lattice import union
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.purpose.given import given_on_cpu, values_given
from perflint.semantics.purpose.need import need_of_move
from perflint.semantics.structure import CONSTRUCTORS, FunctionInfo, names_in, path_of
from perflint.semantics.values import NONE, Device, Tensor, Value

_CHOOSES = ("torch.where", "torch.Tensor.where")
_CREATED = (Content.FILLED, Content.NUMBER, Content.DATA)
"""The contents of tensors that are created on the CPU for the copy, which more precise rules report."""
_STREAMS = re.compile(r"\b(?:Stream|stream|set_stream)\(")


class BlockingH2d(Rule):
    """
    ## What it does
    Finds blocking copies of CPU tensors to the GPU: `.to(device)`, `.cuda()` and `.type_as(…)` of
    tensors that are known to be on the CPU, `copy_` from the CPU, and CPU tensors that are stored
    into a GPU tensor or mixed into `torch.where`.

    ## Why is this bad
    A copy without `non_blocking=True` synchronizes: the CPU cannot launch the next kernels, or
    fetch the next batch, until the data has arrived. From pinned memory and with
    `non_blocking=True` the copy runs beside kernels and CPU code, and is itself about three times
    as fast as from pageable memory (38 MB on an H200). Kernels of the same stream still wait for
    the data, so results do not change.

    ## When it is fine
    Copies in set-up code. Tensors of a few bytes that are copied once. Without pinned memory,
    `non_blocking=True` alone saves nothing. A move of a tensor that is on the GPU already copies
    nothing and is not reported.

    ## Bad
    ```python
    import torch
    from torch.utils.data import DataLoader

    def train(model: torch.nn.Module, dataset, optimizer):
        for images, targets in DataLoader(dataset, batch_size=64, pin_memory=True):
            images = images.to("cuda")
            loss = model(images).mean()
            loss.backward()
            optimizer.step()
    ```

    ## Good
    ```python
    import torch
    from torch.utils.data import DataLoader

    def train(model: torch.nn.Module, dataset, optimizer):
        for images, targets in DataLoader(dataset, batch_size=64, pin_memory=True):
            images = images.to("cuda", non_blocking=True)
            loss = model(images).mean()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    `non_blocking=True` is added only if the tensor is the loop variable of a
    `DataLoader(pin_memory=…)`, or a part of it, and the loop only reads it on the CPU: it moves
    it, computes with it, or passes it to functions of the file that do no more. There the fix is
    safe if the GPU is one of CUDA; it is unsafe if other files may pass another loader, or if the code does not show
    the device: copies to GPUs of Apple that do not block may read memory that is free already (torch 2.13). So there is
    no fix for `.to(device)` if a file of the project names `mps`. If the loader is made in the same file
    without `pin_memory`, one unsafe fix adds `pin_memory=torch.cuda.is_available()` to the loader and
    `non_blocking=True` to the copy: a thread of the loader then copies each batch once more, into pages
    that the system cannot swap.

    `(torch.arange(n) * 2).to(x.device)` becomes `torch.arange(n, device=x.device) * 2`, also if a name
    holds the tensor in between. That is unsafe: functions such as `exp` may round differently on the GPU.

    No fix is offered for a batch if the loop writes to the tensor or to a view of it, keeps it, or passes it to
    code outside this file: the CPU memory might be overwritten before the copy has read it.
    There is none for a batch itself, or a part of a tuple, if the loader has a `collate_fn`: objects of other
    classes may have a method `to` of their own. There is also no fix for classes derived from `DataLoader`,
    which may create other tensors after pinning, and none in files with streams of their own, where another
    stream may read the tensor on the GPU before the copy is done.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace shows `Memcpy HtoD` and the
    `cudaStreamSynchronize` that waits for it. Whether the memory was pinned is part of the copy's
    name (`Pinned -> Device`, `Pageable -> Device`).

    ## References
    - [A guide on good usage of non_blocking and
      pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code, name = "TPF201", "blocking-h2d"
    effect, severity = Effect.SYNC, Severity.WARNING
    group = Group.MOVE
    measured = ("blocking-h2d-gpt", "blocking-h2d-gpt-host-work", "blocking-h2d-policy", "copy-pageable-resnet50")
    listens = (Calls(*MOVES, "torch.Tensor.copy_", *_CHOOSES), SubscriptSite)

    def need(self, site: ExpressionSite) -> Need:
        return need_of_move(site)

    def check(self, site: CallSite | SubscriptSite) -> Iterator[Finding]:
        confidence = _confidence(site)
        if confidence is None:
            return
        fix = _fix(site) if isinstance(site, CallSite) else None
        cost = sentence(_PINNED_COST, "copy-pinned-blocking-resnet50") if _is_of_pinned(fix) else None
        yield self.finding(site, _message(site), confidence=confidence, help=self._help(site, fix), fix=fix, cost=cost)

    def _help(self, site: CallSite | SubscriptSite, fix: Fix | None) -> str:
        if _is_of_pinned(fix):
            return "The memory is pinned: pass `non_blocking=True`."
        if isinstance(site, SubscriptSite) or site.target in _CHOOSES:
            return _cure_of_store(site)
        copied = site.argument("src", 0) if site.target == "torch.Tensor.copy_" else None
        if copied is None and isinstance(site.node.func, ast.Attribute):
            copied = site.node.func.value
        return uploaded(site, copied or site.node)


def _cure_of_store(site: CallSite | SubscriptSite) -> str:
    """Advice for a tensor that is copied because it is mixed into one on the GPU."""
    if isinstance(site, SubscriptSite) and site.stored is not None:
        tensor = site.value(site.stored).tensor
        if tensor is None or tensor.rank != 0:
            return "Make the tensor on the GPU, or copy it there before, from pinned memory with `non_blocking=True`."
    return "Make the tensor on the GPU, or use a Python number."


def _is_of_pinned(fix: Fix | None) -> bool:
    return fix is not None and fix.message == _WITHOUT_BLOCKING


_WITHOUT_BLOCKING = "Copy without blocking the CPU"
_PINNED_COST = "blocking copies of pinned images cost training of a ResNet-50 {0}"


def _confidence(site: CallSite | SubscriptSite) -> Confidence | None:
    """How sure it is that the site copies from the CPU to the device and waits."""
    if isinstance(site, SubscriptSite):
        return _stored(site)
    if site.target in _CHOOSES:
        return _chosen(site)
    if not isinstance(site.node.func, ast.Attribute):
        return None
    if site.target == "torch.Tensor.copy_":
        return _copied(site)
    return _moved(site, site.node.func.value)


def _moved(site: CallSite, receiver: ast.expr) -> Confidence | None:
    moved = move(site)
    if moved is None or not moved.blocking:
        return None
    made = creator(site, receiver)
    created = None if made is None else content(site, made, site.model.target(made))
    if created is not None and created not in _CREATED:
        return None
    destination = moved.device or moved.other
    there = None if destination is None else _if_given(site.value(destination))
    value = site.receiver if site.receiver is not None else site.value(receiver)
    source = host_confidence(value, None if destination is None else site.value(destination))
    if source in (None, Confidence.LOW) and _is_given(value) and _is_item(site, receiver):
        # A dict whose elements are all moved is probably a batch of a loader.
        source = Confidence.MEDIUM
    elif source in (None, Confidence.LOW) and value.tensor is not None and given_on_cpu(site.model, receiver):
        source = Confidence.MEDIUM
    elif source is None and _moves_own_table(site, receiver):
        source = Confidence.LOW
    if source is None:
        return None
    place = moved.confidence
    if there is not None and source is not Confidence.LOW:
        # A parameter for the device of a tensor that the CPU makes is there to be used.
        place = place_confidence(there) or place
    # `torch.as_tensor(x)` of unknown data may be a tensor of the GPU already.
    return weakest(lowered(source) if created is Content.DATA else source, place)


def _if_given(place: Value) -> Value | None:
    """The device of a parameter that may be None, if it is not; None for other values."""
    given = [member for member in place.members if member != NONE]
    return union(given) if 0 < len(given) < len(place.members) else None


def _is_given(value: Value) -> bool:
    return value.tensor is not None and value.tensor.device in (Device.CALLER, Device.UNKNOWN)


def _is_item(site: CallSite, node: ast.expr) -> bool:
    """True if a name is bound by a loop over the values of a dict."""
    if not isinstance(node, ast.Name):
        return False
    for loop in loops_around(site.model, site.node):
        for target, over in targets(loop):
            if node.id in names_in(target):
                called = over.func if isinstance(over, ast.Call) else None
                return isinstance(called, ast.Attribute) and called.attr in ("items", "values")
    return False


def _copied(site: CallSite) -> Confidence | None:
    source = site.argument("src", 0)
    if source is None or site.argument("non_blocking", 1) is not None:
        return None
    return _onto(site.value(source), site.receiver)


def _onto(source: Value, destination: Value | None) -> Confidence | None:
    tensor = source.tensor
    if tensor is None or tensor.device is not Device.CPU or destination is None:
        return None
    there, here = device_confidence(destination), host_confidence(source)
    return None if there is None or here is None else weakest(there, here)


def _stored(site: SubscriptSite) -> Confidence | None:
    if site.mode != "store" or site.stored is None:
        return None
    source = site.value(site.stored)
    found = list(indices(site))
    if any(index is Index.MASK for index in found):
        return None
    fills = Index.VIEW in found and all(index in (Index.VIEW, Index.INTEGER) for index in found)
    if fills and source.tensor is not None and source.tensor.rank == 0:
        # A number on the CPU, tensor or not, becomes an argument of the kernel that fills the slice.
        return None
    return _onto(source, site.value(site.node.value))


def _chosen(site: CallSite) -> Confidence | None:
    """`torch.where` takes tensors of no dimensions from the CPU, by copying them."""
    arguments = site.node.args
    if site.target == "torch.where":
        condition, values = arguments[:1], arguments[1:3]
    else:
        condition, values = arguments[:1], arguments[1:2]
    there = [device_confidence(site.value(node)) for node in condition]
    if not there or there[0] is None:
        return None
    for node in values:
        tensor = site.value(node).tensor
        if tensor is not None and tensor.device is Device.CPU and tensor.rank == 0:
            return there[0]
    return None


def _message(site: CallSite | SubscriptSite) -> str:
    if isinstance(site, SubscriptSite):
        assert site.stored is not None
        what = f"storing the CPU tensor {shown(site, site.stored)} copies it to the GPU"
    elif site.target in _CHOOSES:
        what = f"{shown(site)} copies a CPU tensor to the GPU"
    else:
        return f"{shown(site)} is a blocking CPU-to-GPU copy{often(site)}"
    return f"{what}: the CPU waits for the copy{often(site)}"


def _fix(site: CallSite) -> Fix | None:
    """The batch pinned and copied without blocking, or the tensor computed on the GPU."""
    if site.target not in MOVES:
        return None
    return _of_batch(site) or computed_there(site)


def _is_pinned_for_all(site: CallSite) -> bool:
    """True if the batches are those of a plain loader whatever other files pass to the function."""
    if not site.model.relies_on_callers(site.node):
        return True
    other = site.model.for_any_caller.site_like(site)
    if not isinstance(other, CallSite) or not isinstance(other.node.func, ast.Attribute):
        return False
    return batch_of(other, other.node.func.value) is not None


def _may_be_apple(site: CallSite, moved: Move) -> bool:
    """True if a move may go to a GPU of Apple, which may read the memory of an asynchronous copy when it is free."""
    if site.target == "torch.Tensor.cuda" or (moved.device is not None and names_cuda(moved.device)):
        return False
    return names_apple_gpus(site.model)


def _goes_to_cuda(site: CallSite, moved: Move) -> bool:
    """True if a move certainly goes to a GPU of CUDA, also in a function of a program all of whose calls pass one."""
    if goes_to_cuda(site, moved):
        return True
    given = values_given(site.model, moved.device) if moved.device is not None and site.model.module.is_program else []
    return bool(given) and all(is_gpu(member) for value in given for member in value.members)


def _of_batch(site: CallSite) -> Fix | None:
    """`non_blocking=True` for the batches of a loader that pins them, or that can."""
    assert isinstance(site.node.func, ast.Attribute)
    tensor = site.value(site.node.func.value).tensor
    moved = move(site) if site.target in ("torch.Tensor.to", "torch.Tensor.cuda") else None
    if tensor is None or moved is None or moved.non_blocking is not None or site.model.matches(_STREAMS):
        return None
    batch = batch_of(site, site.node.func.value)
    if batch is None or not takes_non_blocking(batch, site.node.func.value) or not is_only_read(site.model, batch):
        return None
    if _may_be_apple(site, moved):
        return None
    edit = with_one_more(site.model.source, site.node, "non_blocking=True")
    if edit is None:
        return None
    if tensor.pinned:
        safety = Safety.SAFE if _is_pinned_for_all(site) and _goes_to_cuda(site, moved) else Safety.UNSAFE
        return Fix(_WITHOUT_BLOCKING, safety, (edit,))
    pins = pinning(site.model, batch)
    if pins is None:
        return None
    message = "Pin the batches of the loader and copy them without blocking the CPU"
    return Fix(message, Safety.UNSAFE, (*pins.edits, edit), pins.imports)


def _moves_own_table(site: CallSite, receiver: ast.expr) -> bool:
    """True if a move may be the first one of an attribute that the constructor leaves on the CPU: it copies it once.

    Any of several methods may run first. An attribute of a module that its class registers moves with the module.
    """
    path = path_of(receiver)
    statement = site.model.parent(site.node)
    if not path.startswith("self.") or path.count(".") != 1 or not isinstance(statement, ast.Assign):
        return False
    if [path_of(target) for target in statement.targets] != [path]:
        return False
    around = site.model.function(site.node)
    info = site.model.module.defined_by(around)
    if info is None or not info.owner or info.name in CONSTRUCTORS:
        return False
    constructed, moved = _assigned(site.model)
    if moved.get((info, path)) is not statement.targets[0]:
        return False
    values = [site.model.value(target) for target in constructed.get((info.owner, path), ())]
    return bool(values) and all(
        isinstance(value, Tensor) and value.device is Device.CPU and not value.leaf for value in values
    )


@once
def _assigned(model: Model) -> tuple[dict[tuple[str, str], list[ast.expr]], dict[tuple[FunctionInfo, str], ast.expr]]:
    """By class and path, the targets of constructors that are attributes of `self`; by method and path, the first
    `self.x = self.x.f()` of each other method."""
    constructed: dict[tuple[str, str], list[ast.expr]] = {}
    moved: dict[tuple[FunctionInfo, str], ast.expr] = {}
    for statement in model.nodes(ast.Assign):
        for target in statement.targets:
            path = path_of(target)
            function = model.function(statement) if path.startswith("self.") else None
            info = model.module.defined_by(function)
            if info is None or not info.owner:
                continue
            if info.name in CONSTRUCTORS:
                constructed.setdefault((info.owner, path), []).append(target)
            elif isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Attribute):
                if path_of(statement.value.func.value) == path:
                    moved.setdefault((info, path), target)
    return constructed, moved
