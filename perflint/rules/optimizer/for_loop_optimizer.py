"""TPF601: an optimizer that updates one parameter after the other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import with_one_more
from perflint.rules._arguments import dropped
from perflint.rules._fused import fused_since, may_be_sparse
from perflint.rules._memory.flows import made
from perflint.rules._methods import in_tests, is_false
from perflint.rules._project_text import names_apple_gpus
from perflint.rules._since import FUSED, FUSED_LATER
from perflint.rules._sources import sources
from perflint.rules.base import Calls, CallSite, Mentions, Rule, shown
from perflint.rules.worth import cost, sentence
from perflint.semantics.model import Model
from perflint.semantics.values import NONE, Const, Device, Instance, Mapping, Sequence, Value

_COMPILED_STEP = r"compile\([\w.]+\.step\b"
_USES_DEVICE = re.compile(r"cuda|device|gpu|accelerat", re.IGNORECASE)

_FOREACH = frozenset(FUSED) | {
    f"torch.optim.{name}"
    for name in ("Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")
}


class ForLoopOptimizer(Rule):
    """An optimizer that updates parameters one by one, or in more kernels than necessary.

    ## What it does
    Finds optimizers of `torch.optim` that are created with `foreach=False`, and `Adam` and `AdamW`
    that are created without `fused=True` for parameters that are not on the CPU; `SGD` and `Adagrad`, which has a
    fused form since torch 2.12, are reported with severity info. The optimizers of a `LightningModule` count,
    because its Trainer takes a GPU if there is one. Finds `fused=device == "cuda"` of a `torch.device`, too, which is
    never true.

    ## Why is this bad
    With `foreach=False` the CPU launches a handful of small kernels for each parameter tensor, and
    with hundreds of them it cannot launch fast enough to keep the GPU busy. The default on CUDA
    handles all tensors in a few kernels, `fused=True` in one. On an H200, a step of Adam over 300
    tensors took 7.2 times as long with `foreach=False` as by default, and 3.2 times as long by
    default as fused. In training of a 124 M parameter GPT, the default AdamW made the whole step 9%
     slower than the fused one, and AdamW with `foreach=False` 15%; in training of a ResNet-50,
    the default SGD 1%.

    ## When it is fine
    - On the CPU the loop is the default.
    - `differentiable=True` needs the loop, and `torch.compile(optimizer.step)` fuses it, as does a compiled
      function that calls `optimizer.step()`. Not reported.
    - Memory is short: the default holds a copy of all parameters for a moment.
    - A few large tensors: the step is bound by memory, and both take the same time. With one or two
      parameters nothing is reported.
    - Parameters that the fused form does not support: integers, complex numbers, subclasses of
      tensors.

    ## Bad
    ```python
    import torch

    def make(model: torch.nn.Module):
        return torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    ```

    ## Good
    ```python
    import torch

    def make(model: torch.nn.Module):
        return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    ```

    ## Fix safety
    Unsafe. `foreach=False` becomes `fused=True` if a fused form exists, and is dropped otherwise.
    Results differ in the last bits; the fused form raises for parameters other than floating point
    tensors on a supported device; the default needs more memory at its peak. Before torch 2.4 the
    fused form also raises if the model is moved to the GPU after the optimizer was created: for
    these versions the fix needs parameters that are known to be on the GPU. GPUs of Apple have fused forms since torch
    2.5, which the fix needs if a file of the project names `mps`. Optimizers that
    Lightning asks for get no fix: its Trainer raises if it clips gradients in float16 and the
    optimizer is fused. `fused` excludes `foreach=True`, `differentiable=True` and sparse gradients: there is no fix if
    one of the arguments is passed or may be hidden in `**options`, and none for `SGD` if a file of the project
    says `sparse=True`.

    ## How a GPU shows it
    A trace records for each optimizer whether its steps updated the parameters one by one, in groups or in fused
    kernels. The first two confirm the finding, fused kernels refute it. A profile shows `_single_tensor_adam`,
    `_multi_tensor_adam` or `_fused_adamw_`.

    ## References
    - [torch.optim: algorithms](https://docs.pytorch.org/docs/stable/optim.html#algorithms)
    - [torch.optim.AdamW](https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html): `foreach`, `fused`
    """

    code, name = "TPF601", "for-loop-optimizer"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    measured = ("adamw-not-fused-gpt", "adamw-for-loop-step-gpt", "adamw-for-loop-default-step-gpt")
    costs = None
    listens = (Calls(*sorted(_FOREACH)),)
    mentions = Mentions(unlike=_COMPILED_STEP)
    since = (2, 0)

    def check(self, site: CallSite) -> Iterator[Finding]:
        confidence = _confidence(site)
        if confidence is None or _steps_compiled(site):
            return
        never = _never_true(site)
        if never is not None:
            yield self._never(site, never)
            return
        if _loops(site):
            yield self._one_by_one(site, confidence)
        elif _is_worth_fusing(site):
            yield self._unfused(site, confidence)

    def _unfused(self, site: CallSite, confidence: Confidence) -> Finding:
        name = _name(site)
        return self.finding(
            site,
            f"`{name}` runs unfused: several kernels for each group of parameters",
            severity=cost("adamw-not-fused-gpt").severity if name in _MEASURED else Severity.INFO,
            help=_fusing(site),
            confidence=confidence,
            heat=Heat.HOT,
            fix=_with_fused(site),
            cost=sentence(_UNFUSED, "adam-not-fused", "adamw-not-fused-gpt") if name in _MEASURED else None,
        )

    def _never(self, site: CallSite, test: ast.expr) -> Finding:
        return self.finding(
            site,
            f"{shown(site, test)} is never true: a `torch.device` is not equal to a text, so that "
            f"`{_name(site)}` runs unfused",
            severity=Severity.WARNING,
            heat=Heat.HOT,
            span=site.model.source.span(test),
            help='Compare the type: `device.type == "cuda"`.',
        )

    def _one_by_one(self, site: CallSite, confidence: Confidence) -> Finding:
        return self.finding(
            site,
            f"`{_name(site)}` with `foreach=False` updates the parameters one by one",
            confidence=confidence,
            # It is made once, but steps each time.
            heat=Heat.HOT,
            help="Pass `fused=True`." if site.target in FUSED else "Remove `foreach`.",
            fix=_without_foreach(site),
            cost=sentence(_ONE_BY_ONE, "adam-for-loop", "adamw-for-loop-step-gpt"),
        )


def _fusing(site: CallSite) -> str:
    if _is_for_lightning(site):
        # Its plugin for float16 raises: a fused optimizer unscales the gradients itself.
        return (
            'Pass `fused=True`, unless the Trainer clips gradients (`gradient_clip_val`) with `precision="16-mixed"`.'
        )
    return "Pass `fused=True`." if site.target in FUSED else "Pass `fused=True`, if torch is 2.12 or newer."


def _never_true(site: CallSite) -> ast.expr | None:
    """The comparison of a `torch.device` with a text that decides about `fused`."""
    given = site.argument("fused")
    test = None if given is None else made(site.model, given)
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq) or len(test.ops) != 1:
        return None
    both = [test.left, test.comparators[0]]
    texts = [each for each in both if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    devices = [each for each in both if each not in texts and _is_device(site.model, each)]
    return given if len(texts) == len(devices) == 1 else None


def _is_device(model: Model, node: ast.expr) -> bool:
    """True if `torch.device` made a value."""
    found = sources(model, node)
    return bool(found) and all(isinstance(each, ast.Call) and model.target(each) == "torch.device" for each in found)


_MEASURED = ("Adam", "AdamW")
"""Of the others the whole step of a ResNet-50 lost no more than 1%, or nothing was measured."""
_UNFUSED = "unfused, the step of Adam for 300 small parameters is {0} slower, and a whole GPT-2 training step {1}"
_ONE_BY_ONE = "one by one, the step of Adam for 300 small parameters is {0} slower, and a whole GPT-2 training step {1}"


def _steps_compiled(site: CallSite) -> bool:
    """True if a compiled function of the file steps an optimizer of this class: the compiler fuses its kernels."""
    model = site.model
    return model.compiles and any(
        model.target(call) == "torch.optim.Optimizer.step" and _is_of(model.call(call).receiver, site.target)
        for call in model.nodes(ast.Call)
        if model.compiled(call) is not None
    )


def _is_of(value: Value | None, cls: str) -> bool:
    members = () if value is None else value.members
    return any(isinstance(each, Instance) and each.cls in (cls, "torch.optim.Optimizer") for each in members)


def _name(site: CallSite) -> str:
    """The name of the class of an optimizer."""
    return site.target.rpartition(".")[2]


def _is_worth_fusing(site: CallSite) -> bool:
    """True if the code uses a GPU, and the optimizer has many parameters and can be fused."""
    if not _may_be_fused(site) or not (site.model.matches(_USES_DEVICE) or _is_for_lightning(site)):
        return False
    return not (_is_small(site) or in_tests(site.model))


def _is_for_lightning(site: CallSite) -> bool:
    """True if Lightning's Trainer asks for the optimizer. It takes a GPU if there is one."""
    function = site.model.function(site.node)
    if not isinstance(function, ast.FunctionDef) or function.name != "configure_optimizers":
        return False
    info = site.model.module.defined_by(function)
    owner = "" if info is None else info.owner
    lineage = site.model.lineage(f"{site.model.module.name}.{owner}") if owner else ()
    return any(cls.rpartition(".")[2] == "LightningModule" for cls in lineage)


def _loops(site: CallSite) -> bool:
    if any(_is_on(site, name) for name in ("fused", "differentiable")):
        return False
    given = site.argument("foreach")
    return given is not None and site.value(given) == Const(False)


def _is_on(site: CallSite, name: str) -> bool:
    """True if an argument is given, and may be other than False or None."""
    given = site.argument(name)
    return given is not None and site.value(given) not in (NONE, Const(False))


def _may_be_fused(site: CallSite) -> bool:
    chosen = any(site.argument(name) is not None for name in ("fused", "foreach", "differentiable"))
    return site.target in FUSED | FUSED_LATER and not chosen and not site.has_unpacking


def _is_small(site: CallSite) -> bool:
    """True if there are only one or two parameters: `[log_alpha]`."""
    given = site.argument("params", 0)
    return isinstance(given, (ast.List, ast.Tuple)) and len(given.elts) <= 2 and not _holds_groups(site, given)


def _holds_groups(site: CallSite, given: ast.List | ast.Tuple) -> bool:
    """True if a list holds groups of parameters, written out, made by `dict(…)` or under a name."""
    return any(isinstance(each, ast.Starred) or isinstance(site.value(each), Mapping) for each in given.elts)


def _confidence(site: CallSite) -> Confidence | None:
    """How sure it is that the parameters are on the device; None if they are on the CPU."""
    given = site.argument("params", 0)
    found = _devices(site.value(given)) if given is not None else set()
    if Device.CPU in found:
        return None
    if found & {Device.CUDA, Device.MODEL, Device.CALLER}:
        return Confidence.HIGH
    return Confidence.MEDIUM if _loops(site) else Confidence.LOW


def _devices(value: Value) -> set[Device]:
    """The devices of the tensors that a value is or holds."""
    found: set[Device] = set()
    for member in value.members:
        if isinstance(member, Sequence):
            for element in member.items if member.items is not None else (member.element,):
                found |= _devices(element)
        elif isinstance(member, Mapping):
            # A group of parameters.
            found |= _devices(member.get("params"))
        elif member.tensor is not None:
            found.add(member.tensor.device)
    return found


def _without_foreach(site: CallSite) -> Fix | None:
    keyword = next(item for item in site.node.keywords if item.arg == "foreach")
    source = site.model.source
    if not is_false(keyword.value) or site.has_unpacking or may_be_sparse(site.model, site.target):
        return None
    if site.target in FUSED and site.argument("fused") is None:
        return Fix(
            "Use the fused form",
            Safety.UNSAFE,
            (Edit(source.span(keyword), "fused=True"),),
            since=fused_since(site.model, site.node, site.target),
        )
    return Fix("Use the default form", Safety.UNSAFE, (dropped(source, site.node, keyword),))


def _with_fused(site: CallSite) -> Fix | None:
    refused = _is_for_lightning(site) or may_be_sparse(site.model, site.target)
    # Whether Adagrad has a fused form on GPUs of Apple is unknown.
    refused = refused or (site.target in FUSED_LATER and names_apple_gpus(site.model))
    edit = None if refused else with_one_more(site.model.source, site.node, "fused=True")
    if edit is None:
        return None
    since = fused_since(site.model, site.node, site.target)
    return Fix("Use the fused form", Safety.UNSAFE, (edit,), since=since)
