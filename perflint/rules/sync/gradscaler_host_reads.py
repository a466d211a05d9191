"""TPF124: reads of a GradScaler from the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity, lowered, weakest
from perflint.fixes.edits import with_one_more
from perflint.rules._arguments import call_of
from perflint.rules._fused import fused_since, may_be_sparse
from perflint.rules._names import AUTOCAST
from perflint.rules._since import FUSED
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.worth import cost, sentence
from perflint.semantics.model import Model
from perflint.semantics.structure import keyword
from perflint.semantics.values import NONE, Const, Dtype, Instance, Value

_SCALERS = ("torch.amp.GradScaler", "torch.cuda.amp.GradScaler")
_AGAINST_FUSED = ("fused", "foreach", "capturable", "differentiable")
_WHAT = {
    "step": "reads from the GPU whether a gradient is infinite before the optimizer steps",
    "get_scale": "reads the scale from the GPU",
    "state_dict": "reads the scale and its growth from the GPU",
}


class GradscalerHostReads(Rule):
    """
    ## What it does
    Finds calls of a `GradScaler` that make the CPU wait: `get_scale()`, `state_dict()`, and
    `step(optimizer)` with an optimizer that is not fused. `scale`, `unscale_` and `update` do not
    wait.

    ## Why is this bad
    An optimizer that is not fused cannot skip a step by itself, so the scaler reads on the CPU
    whether the step must be skipped. Fused optimizers (`Adam`, `AdamW`, `SGD`) take the answer on
    the GPU, and are faster as well. A comparison of `get_scale()` before and after `update()` waits
    twice more. With bfloat16, which has the range of float32, no scaler is needed.

    ## When it is fine
    The scale is logged once in a while, or saved in a checkpoint. A scheduler that must not step
    when the optimizer did not. An optimizer without a fused form. A scaler with `enabled=False`
    reads nothing.

    ## Bad
    ```python
    import torch

    def train(model, loader):
        optimizer = torch.optim.AdamW(model.parameters())
        scaler = torch.amp.GradScaler()
        for x in loader:
            scaler.scale(model(x).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
    ```

    ## Good
    ```python
    import torch

    def train(model, loader):
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        scaler = torch.amp.GradScaler()
        for x in loader:
            scaler.scale(model(x).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
    ```

    ## Fix safety
    Adds `fused=True` if the same code creates the optimizer. Unsafe: the results differ in the last
    bits, and parameters on a device without fused optimizers raise. `fused` excludes `foreach`, `differentiable` and
    sparse gradients: there is no fix if one of the arguments is passed, and none for `SGD` if a file of the
    project says `sparse=True`.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns inside `torch/amp/grad_scaler.py`; a trace shows
    `aten::item` with a `cudaStreamSynchronize` before the optimizer's kernels.

    ## References
    - [torch.amp](https://docs.pytorch.org/docs/stable/amp.html): `get_scale` "incurs a CPU-GPU sync"
    - [torch.optim.AdamW](https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html): `fused`
    """

    code, name = "TPF124", "gradscaler-host-reads"
    effect, severity = Effect.SYNC, Severity.ERROR
    measured = ("gradscaler-get-scale-gpt", "gradscaler-get-scale-gpt-host-work", "gradscaler-step-gpt")
    listens = (Calls(*(f"{scaler}.{method}" for scaler in _SCALERS for method in _WHAT)),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        confidence = _confidence(site)
        if confidence is None:
            return
        method = _method(site)
        needless = _casts_to_bfloat16(site.model)
        yield self.finding(
            site,
            f"{shown(site)} {_WHAT[method]}: the CPU waits{often(site)}",
            confidence=confidence,
            # A checkpoint needs the numbers.
            severity=Severity.INFO if method == "state_dict" else _severity(site, method),
            help="bfloat16 has the range of float32: remove the scaler." if needless else self._cure(site, method),
            fix=None if needless or method != "step" else _fix(site),
            cost=sentence(_STEP_COST, "gradscaler-step-gpt") if method == "step" else None,
        )

    def _cure(self, site: CallSite, method: str) -> str:
        if method == "step":
            return "Make the optimizer with `fused=True`: it then decides on the GPU."
        return "Read it every 100 steps. bfloat16 needs no scaler."


_STEP_COST = "with an optimizer that is not fused, the step of GPT-2 training is {0} slower"


def _method(site: CallSite) -> str:
    return site.target.rpartition(".")[2]


def _severity(site: CallSite, method: str) -> Severity:
    optimizer = _optimizer(site)
    unfused = method == "step" and optimizer is not None and _unfused(optimizer) is Confidence.HIGH
    return cost("gradscaler-step-gpt" if unfused else "gradscaler-get-scale-gpt-host-work").severity


def _confidence(site: CallSite) -> Confidence | None:
    scaler = _object(site.receiver, _SCALERS)
    if scaler is None:
        return None
    confidence = _active(scaler)
    made = None if confidence is not Confidence.MEDIUM or scaler.arguments is None else call_of(site.model, scaler)
    enabled = None if made is None else keyword(made, "enabled")
    if enabled is not None and site.model.is_off(enabled):
        return None
    if confidence is None or _method(site) != "step":
        return confidence
    optimizer = _optimizer(site)
    unfused = Confidence.MEDIUM if optimizer is None else _unfused(optimizer)
    return None if unfused is None else weakest(confidence, unfused)


def _object(value: Value | None, classes: tuple[str, ...]) -> Instance | None:
    members = value.members if value is not None else ()
    return next((each for each in members if isinstance(each, Instance) and each.cls.startswith(classes)), None)


def _active(scaler: Instance) -> Confidence | None:
    """How sure it is that a scaler does anything on the device."""
    if scaler.arguments is None:
        return Confidence.MEDIUM
    enabled, device = scaler.argument("enabled"), scaler.argument("device")
    if enabled in (Const(False), NONE) or device == Const("cpu"):
        return None
    return Confidence.HIGH if enabled in (None, Const(True)) else Confidence.MEDIUM


def _optimizer(site: CallSite) -> Instance | None:
    given = site.argument("optimizer", 0)
    return None if given is None else _object(site.value(given), ("torch.optim.",))


def _unfused(optimizer: Instance) -> Confidence | None:
    """How sure it is that one of torch's optimizers cannot skip a step by itself."""
    if optimizer.arguments is None:
        return Confidence.MEDIUM
    fused = optimizer.argument("fused")
    if fused == Const(True):
        return None
    return Confidence.HIGH if fused in (None, NONE, Const(False)) else lowered(Confidence.MEDIUM)


def _casts_to_bfloat16(model: Model) -> bool:
    """True if all autocast regions of a file whose dtype is known are in bfloat16."""
    names: set[str] = set()
    for call in model.nodes(ast.Call):
        if model.target(call) in AUTOCAST:
            given = keyword(call, "dtype")
            value = None if given is None else model.value(given)
            names |= {each.name for each in value.members if isinstance(each, Dtype)} if value is not None else {""}
    return names == {"bfloat16"}


def _fix(site: CallSite) -> Fix | None:
    optimizer = _optimizer(site)
    if optimizer is None or optimizer.cls not in FUSED or optimizer.arguments is None:
        return None
    made = call_of(site.model, optimizer)
    if made is None or any(optimizer.argument(name) is not None for name in _AGAINST_FUSED):
        return None
    if may_be_sparse(site.model, optimizer.cls):
        return None
    edit = with_one_more(site.model.source, made, "fused=True")
    since = fused_since(site.model, made, optimizer.cls)
    return None if edit is None else Fix("Fuse the optimizer", Safety.UNSAFE, (edit,), since=since)
