"""TPF359: training in float16 without a scaler of the loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._methods import is_false
from perflint.rules._names import AUTOCAST_OF_MODULE
from perflint.rules.base import Calls, CallSite, Mentions, Rule, shown
from perflint.semantics.structure import calls_in, last_name, walk
from perflint.semantics.values import Const, Dtype, Instance

_SCALES = r"(?i:scaler|loss_scale|\.scale\(|accelerat|fabric|lightning|deepspeed|apex)"

_CASTS = ("torch.nn.Module.half", "torch.nn.Module.to")


class Float16WithoutScaler(Rule):
    """Training under float16 autocast scales no loss.

    ## What it does
    Finds functions that compute under `torch.autocast` in float16, call `backward()` and step an optimizer, in files
    without a `GradScaler`; as a decorator, in files that train. Finds `model.half()` and `model.to(torch.float16)` in
    code that trains, too.

    ## Why is this bad
    Small gradients become zero in float16, whose smallest number is 6e-8: layers stop learning, without an error.
    A scaler multiplies the loss first, and divides the gradients before the step. bfloat16 has the range of float32 and
    needs none. It is a warning because results are wrong, not because of what it costs.

    ## When it is fine
    - bfloat16, and regions that are off.
    - Another library scales the loss: files that mention a scale or a scaler are not reported.

    ## Bad
    ```python
    import torch

    def train(model, loader, optimizer):
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = model(x.cuda(), y.cuda())
            loss.backward()
            optimizer.step()
    ```

    ## Good
    ```python
    import torch

    def train(model, loader, optimizer):
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(x.cuda(), y.cuda())
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    No fix: the two ways, a scaler and bfloat16, round in different ways.

    ## How a GPU shows it
    Many gradients are exactly zero, and more of them the deeper the layer.

    ## References
    - [Automatic mixed precision: gradient scaling](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling)
    """

    code, name = "TPF359", "float16-without-scaler"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Calls(*AUTOCAST_OF_MODULE, *_CASTS),)
    mentions = Mentions("backward(", unlike=_SCALES)

    def check(self, site: CallSite) -> Iterator[Finding]:
        model = site.model
        if site.target in _CASTS:
            yield from self._of_model(site)
            return
        code = _served(site)
        if code is None or not _is_float16(site):
            return
        calls = {last_name(part): part for part in calls_in(code)}
        if not {"backward", "step"} <= calls.keys():
            return
        is_decorator = code is model.source.tree
        yield self.finding(
            site if is_decorator else model.call(calls["backward"]),
            f"small gradients become zero under {shown(site)}: nothing scales the loss",
            # It is said once, and holds for each step.
            heat=Heat.HOT if is_decorator else None,
            help="Use `dtype=torch.bfloat16`, or a `torch.amp.GradScaler`.",
        )

    def _of_model(self, site: CallSite) -> Iterator[Finding]:
        """A module whose weights are float16, in code that trains it."""
        around = [each for each in site.model.ancestors(site.node) if isinstance(each, (ast.FunctionDef, ast.ClassDef))]
        calls = {last_name(part) for part in walk(around[-1]) if isinstance(part, ast.Call)} if around else set()
        if {"backward", "step", "zero_grad"} <= calls and _casts_to_float16(site):
            yield self.finding(
                site,
                f"{shown(site)} makes the weights float16: small gradients and small changes of weights become zero",
                confidence=Confidence.MEDIUM,
                # It is said once, and holds for each step.
                heat=Heat.HOT,
                help="Keep the weights in float32, under `torch.autocast`, or make them bfloat16.",
            )


def _served(site: CallSite) -> ast.AST | None:
    """The code that trains what a region computes: the function around a block, or the file, for a decorator."""
    user = site.model.parent(site.node)
    if isinstance(user, ast.withitem):
        return site.model.function(site.node)
    is_decorator = isinstance(user, ast.FunctionDef) and site.node in user.decorator_list
    return site.model.source.tree if is_decorator else None


def _casts_to_float16(site: CallSite) -> bool:
    """True for `model.half()` and `model.to(torch.float16)` of a module."""
    if not isinstance(site.receiver, Instance) or not site.model.is_module(site.receiver):
        return False
    given = [site.value(each) for each in (*site.node.args, *(each.value for each in site.node.keywords))]
    names = [each.name for each in given if isinstance(each, Dtype)]
    return names in (["float16"], ["half"]) or site.target.endswith(".half")


def _is_float16(site: CallSite) -> bool:
    """True if a region of a GPU is in float16, which is its default."""
    is_old = site.target == "torch.cuda.amp.autocast"
    device = None if is_old else site.argument("device_type", 0)
    enabled = site.argument("enabled", 0 if is_old else 2)
    dtype = site.argument("dtype", 1)
    if site.has_unpacking or is_false(enabled) or (enabled is not None and site.value(enabled) != Const(True)):
        return False
    if device is not None and site.value(device) != Const("cuda"):
        return False
    value = None if dtype is None else site.value(dtype)
    return value is None or (isinstance(value, Dtype) and value.name in ("float16", "half"))
