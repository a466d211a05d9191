"""TPF608: step counters of an optimizer that end up on the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import replace
from perflint.frozen import dataclass
from perflint.rules.base import CallSite, Files, FileSite, Rule, shown
from perflint.rules.optimizer._checkpoint import (
    Loaded,
    feeds_only_state,
    is_for_callers,
    keeps_tensor,
    loaded_onto_device,
    optimizer_confidence,
)
from perflint.rules.placement import MOVES, move
from perflint.rules.worth import sentence
from perflint.semantics.around import loops_around
from perflint.semantics.model import Model
from perflint.semantics.structure import names_in, path_of, walk
from perflint.semantics.values import Instance


@dataclass(frozen=True, slots=True)
class _Moved:
    """A loop that moves all of an optimizer's state to the device."""

    call: CallSite
    optimizer: ast.expr
    confidence: Confidence


_COST = "step counters on the GPU make the step of Adam {0} slower, and a whole GPT-2 training step {1}"


class OptimizerStepOnGpu(Rule):
    """An optimizer's step counters are moved to the GPU, and read back one by one in each step.

    ## What it does
    Finds the two ways in which the `step` counters of Adam and similar optimizers get to the GPU
    after a resume:

    - a loop over `optimizer.state.values()` that moves every tensor to the GPU;
    - `torch.load(…, map_location=device)` of a checkpoint that is passed to
      `optimizer.load_state_dict`: it moves moments to the device of the parameters, but leaves
      `step` where it is.

    ## Why is this bad
    Unless it is fused or capturable, the optimizer computes bias corrections on the CPU, and keeps
    a counter there for each parameter. If the counters are on the GPU, it must read each of them
    with `.item()`, up to twice per step, for the rest of the run: a step of Adam over 300 tensors
    took 3.2 times as long on an H200, and training of a 124 M parameter GPT was 17% slower. A
    resumed run is slower than the same run without a resume, and nothing shows why.

    ## When it is fine
    - `fused=True` and `capturable=True` keep the counters on the GPU on purpose.
    - SGD, RMSprop and Adadelta do not read counters; optimizers of other libraries (apex) may keep none.
    - `map_location="cpu"`, a lambda that returns the storage, or no `map_location` if the
      checkpoint was written by an optimizer with counters on the CPU.
    - The loop leaves `"step"` out, or moves it back.

    ## Bad
    ```python
    import torch

    def resume(model: torch.nn.Module, path: str):
        optimizer = torch.optim.Adam(model.parameters())
        checkpoint = torch.load(path, map_location="cuda")
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        return optimizer
    ```

    ## Good
    ```python
    import torch

    def resume(model: torch.nn.Module, path: str):
        optimizer = torch.optim.Adam(model.parameters())
        checkpoint = torch.load(path, map_location="cpu")
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        return optimizer
    ```

    ## Fix safety
    `map_location` becomes `"cpu"`. It is safe if the whole checkpoint goes, in the same function,
    into `load_state_dict` of modules and optimizers whose classes and parts are all known: these
    copy it to the device of the parameters. It is unsafe otherwise: everything else that is read
    from the checkpoint is on the CPU then, and so is everything that a class with a
    `load_state_dict` of its own, or `assign=True`, keeps as it is, and tensors among the options of the optimizer.
    It is only shown if the function returns or keeps the checkpoint as a whole, if something else
    reads a part of it and the file saves a tensor under the same key, and for a parameter that nothing else
    reads. No fix is offered if
    `map_location` is the result of a call that may do more than name a device. The loop gets no
    fix: it is unnecessary if the state is loaded after the model was moved.

    ## How a GPU shows it
    A trace records in each step whether the counters of the optimizer are on the GPU. Below `Optimizer.step`, a profile
    shows one `aten::item` with a `Memcpy DtoH` and a
    `cudaStreamSynchronize` for each parameter; `torch.cuda.set_sync_debug_mode("warn")` warns in
    `torch/optim/optimizer.py`.

    ## References
    - [UniRL#441](https://github.com/Tencent-Hunyuan/UniRL/pull/441): 19 to 26% of the optimizer's step
    - [pytorch#128208](https://github.com/pytorch/pytorch/issues/128208)
    - [pytorch#74424](https://github.com/pytorch/pytorch/issues/74424)
    - [Lightning#19955](https://github.com/Lightning-AI/pytorch-lightning/issues/19955)
    """

    code, name = "TPF608", "optimizer-step-on-gpu"
    replaces = ("TPF964",)
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("adamw-step-on-device-step-gpt",)
    costs = None
    listens = (
        Files("map_location", also=("load_state_dict",)),
        Files(".state.values()"),
    )
    since = (1, 12)

    def check(self, site: FileSite) -> Iterator[Finding]:
        price = sentence(_COST, "adam-step-on-device", *self.measured)
        for moved in _moved(site):
            yield self.finding(
                moved.call,
                f"{shown(moved.call)} moves the step counters of "
                f"{shown(site, moved.optimizer)} to the GPU: the CPU reads each of them back in every step",
                confidence=moved.confidence,
                # It is done once, and paid for in each step.
                heat=Heat.HOT,
                help='Leave `"step"` where it is, or load the state after the model was moved.',
                cost=price,
            )
        seen: set[ast.Call] = set()
        for found in loaded_onto_device(site):
            if found.load in seen:
                continue
            seen.add(found.load)
            yield self.finding(
                site.model.call(found.load),
                f"{shown(site, found.load)} puts the step counters for "
                f"{shown(found.given_to)} on the GPU: the CPU reads each of them back in "
                "every "
                "step",
                confidence=found.confidence,
                heat=Heat.HOT,
                help='Load with `map_location="cpu"`: `load_state_dict` moves everything else to the parameters.',
                cost=price,
                fix=_fix(site, found),
            )


def _moved(site: FileSite) -> Iterator[_Moved]:
    """Stores of moved tensors into the states that a loop over `optimizer.state.values()` gives."""
    model = site.model
    for store in model.nodes(ast.Assign):
        target = store.targets[0]
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            continue
        call = store.value.body if isinstance(store.value, ast.IfExp) else store.value
        if not isinstance(call, ast.Call):
            continue
        found = _state_loop(model, store, target.value.id)
        if found is None or any(isinstance(part, ast.Constant) and part.value == "step" for part in walk(found)):
            continue
        made = _to_device(model, call)
        optimizer = _optimizer_of(found)
        sure = None if optimizer is None else _sure(model, optimizer)
        if made is not None and optimizer is not None and sure is not None:
            yield _Moved(model.call(call), optimizer, sure)


def _sure(model: Model, optimizer: ast.expr) -> Confidence | None:
    """How sure it is that something whose states are moved is an optimizer with counters."""
    known = any(isinstance(member, Instance) for member in model.value(optimizer).members)
    if known or not path_of(optimizer):
        return optimizer_confidence(model, optimizer)
    # Only an optimizer has states of tensors for each parameter, and loads them.
    loads = (each for each in model.nodes(ast.Attribute) if each.attr == "load_state_dict")
    return Confidence.MEDIUM if any(path_of(each.value) == path_of(optimizer) for each in loads) else None


def _state_loop(model: Model, store: ast.AST, name: str) -> ast.For | None:
    """The loop around a store that binds a name to each state of an optimizer."""
    for loop in loops_around(model, store):
        if isinstance(loop, ast.For) and name in names_in(loop.target):
            return loop if _optimizer_of(loop) is not None else None
    return None


def _optimizer_of(loop: ast.For) -> ast.expr | None:
    """The optimizer of a loop over `optimizer.state.values()` or `….items()`."""
    over = loop.iter
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in ("values", "items"):
        held = over.func.value
        if isinstance(held, ast.Attribute) and held.attr == "state":
            return held.value
    return None


def _to_device(model: Model, call: ast.Call) -> Confidence | None:
    site = model.call(call)
    if site.target not in MOVES:
        # An otherwise unknown value: `.cuda()` is enough evidence by itself.
        named = isinstance(call.func, ast.Attribute) and call.func.attr == "cuda"
        return Confidence.HIGH if named and not site.target else None
    moved = move(site)
    return None if moved is None else moved.confidence


def _fix(site: FileSite, found: Loaded) -> Fix | None:
    source = site.model.source
    if any(isinstance(part, ast.Call) and not _names_device(site.model, part) for part in walk(found.place)):
        # The call may do more than name a device.
        return None
    safety = Safety.SAFE if feeds_only_state(site.model, found) else Safety.UNSAFE
    if keeps_tensor(site.model, found) or is_for_callers(site.model, found):
        safety = Safety.DISPLAY
    return Fix("Load to the CPU", safety, (replace(source, source.span(found.place), '"cpu"'),))


def _names_device(model: Model, call: ast.Call) -> bool:
    return model.target(call) in ("torch.device", "torch.cuda.current_device", "builtins.str")
