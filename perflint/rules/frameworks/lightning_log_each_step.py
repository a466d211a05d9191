"""TPF941: Lightning code that reads or exchanges tensors in each step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.rules._memory.flows import behind
from perflint.rules._methods import calls_named, is_false, is_true
from perflint.rules._names import LIGHTNING
from perflint.rules._sources import passed_to
from perflint.rules.base import CallSite, Files, FileSite, Rule, shown
from perflint.semantics.model import Model
from perflint.semantics.values import Const
from perflint.source.quoting import quoted

_MODULE = "lightning.LightningModule"
_PROFILERS = (Const("advanced"), Const("pytorch"))


class LightningLogEachStep(Rule):
    """Lightning code that reads tensors, or exchanges them, in each training step.

    ## What it does
    Finds in `training_step` of Lightning modules: `self.log(name, loss.item())`, `self.log(…,
    prog_bar=True)` and `self.log(…, sync_dist=True)` for each step; and `Trainer(log_every_n_steps=1)`,
    `Trainer(profiler="advanced")` and `Trainer(detect_anomaly=True)`.

    ## Why is this bad
    `.item()` waits in each step, although Lightning accepts tensors and reads them when it logs. A
    value of the progress bar is read after every batch. `sync_dist=True` reduces it over all
    processes each time. `log_every_n_steps=1` reads all logged values in every step. Anomaly
    detection waits after each operation of the backward pass (TPF606). One read between the forward
    and the backward pass cost 3% in training of a 124 M parameter GPT on an H200, and 4% in that
    of a small network.

    ## When it is fine
    - `on_step=False`: the value is accumulated on the GPU and read once per epoch. Not reported.
    - Validation and test steps, whose values are accumulated anyway.
    - Short programs, where seeing each step matters more.

    ## Bad
    ```python
    import lightning as L
    import torch

    class Model(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(8, 1)

        def training_step(self, batch, index):
            loss = self.net(batch).mean()
            self.log("loss", loss.item())
            return loss
    ```

    ## Good
    ```python
    import lightning as L
    import torch

    class Model(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(8, 1)

        def training_step(self, batch, index):
            loss = self.net(batch).mean()
            self.log("loss", loss.detach())
            return loss
    ```

    ## Fix safety
    Unsafe: `loss.item()` becomes `loss.detach()`. Callbacks and loggers get a tensor, and a mean over an
    epoch is computed in float32 on the GPU instead of in double precision.

    ## How a GPU shows it
    A trace confirms the finding if the CPU waited at the line, or in the code of Lightning for the
    progress bar and the logger, in at least half of the steps. `torch.cuda.set_sync_debug_mode("warn")`
    warns at the line, or in Lightning's `result.py`.

    ## References
    - [LightningModule.log](https://lightning.ai/docs/pytorch/stable/extensions/logging.html)
    - [Speed up model training](https://lightning.ai/docs/pytorch/stable/advanced/speed.html)
    """

    code, name = "TPF941", "lightning-log-each-step"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("logged-item-gpt", "logged-item-gpt-host-work", "logged-item-policy")
    listens = (Files("lightning"),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        for call in calls_named(site, "log", "log_dict"):
            if _in_training_step(site.model, call.node):
                yield from self._logged(call)
        for each in site.model.nodes(ast.Call):
            if site.model.target(each) in LIGHTNING:
                yield from self._configured(site.model.call(each))

    def _logged(self, call: CallSite) -> Iterator[Finding]:
        if is_false(call.argument("on_step")):
            return
        for read in _reads(call):
            yield self.finding(
                call,
                f"{shown(call, read)} makes the CPU wait for the GPU, though `self.log` takes tensors",
                confidence=Confidence.HIGH if call.model.target(read) else Confidence.MEDIUM,
                heat=Heat.HOT,
                help="Pass the tensor itself: `.detach()`.",
                fix=_detached(call, read),
            )
        for name, severity, what in (
            ("prog_bar", Severity.INFO, "reads the value after every batch to show it"),
            ("sync_dist", None, "waits for all processes, and reduces the value over them (runs every step)"),
        ):
            if is_true(call.argument(name)):
                yield self.finding(
                    call,
                    f"{shown(call)} {what}",
                    confidence=Confidence.MEDIUM,
                    severity=severity,
                    heat=Heat.HOT,
                    help="Pass `on_step=False, on_epoch=True`, or log it every 100 steps.",
                )

    def _configured(self, site: CallSite) -> Iterator[Finding]:
        every, anomalies = (passed_to(site.model, site.node, name) for name in ("log_every_n_steps", "detect_anomaly"))
        if every is not None and site.value(every) == Const(1):
            yield self.finding(
                site,
                "`log_every_n_steps=1` reads all logged values (runs every step)",
                confidence=Confidence.MEDIUM,
                severity=Severity.INFO,
                heat=Heat.HOT,
                help="Leave it at the default, which logs every 50 steps.",
            )
        profiler = passed_to(site.model, site.node, "profiler")
        if profiler is not None and site.value(profiler) in _PROFILERS:
            yield self.finding(
                site,
                f"{quoted(f'profiler={site.text(profiler)}')} records every call or operation of the training",
                confidence=Confidence.MEDIUM,
                severity=Severity.INFO,
                heat=Heat.HOT,
                help='Turn it on with a flag, for a few steps. `"simple"` times the hooks alone.',
            )
        if is_true(anomalies):
            yield self.finding(
                site,
                "`detect_anomaly=True` keeps a stack for every operation, and the CPU waits after each backward one "
                "to look for NaN",
                confidence=Confidence.HIGH,
                heat=Heat.HOT,
                help="Turn it on with a flag, only while you look for the fault.",
            )


def _in_training_step(model: Model, call: ast.Call) -> bool:
    """True if a call of `self.log` is in the training step of a Lightning module."""
    if not (isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)):
        return False
    function = model.function(call)
    info = model.module.defined_by(function)
    if call.func.value.id != "self" or info is None or info.name != "training_step" or not info.owner:
        return False
    return _MODULE in model.lineage(f"{model.module.name}.{info.owner}")


def _reads(call: CallSite) -> Iterator[ast.Call]:
    """The `.item()` calls among the logged values."""
    given = [*call.node.args[1:2], *(item.value for item in call.node.keywords if item.arg == "value")]
    if isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "log_dict":
        first = call.node.args[0] if call.node.args else None
        given = list(first.values) if isinstance(first, ast.Dict) else []
    for value in (behind(call.model, each) for each in given):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "item":
            # A training step logs tensors. The target is another one if the value is known to be an array.
            if call.model.target(value) in ("torch.Tensor.item", "") and not value.args:
                yield value


def _detached(call: CallSite, read: ast.Call) -> Fix | None:
    assert isinstance(read.func, ast.Attribute)
    text = call.text(read.func.value)
    if "\n" in text:
        return None
    if not isinstance(read.func.value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        text = f"({text})"
    edit = Edit(call.model.source.span(read), f"{text}.detach()")
    return Fix("Log the tensor", Safety.UNSAFE, (edit,))
