"""TPF136: operators that make the CPU wait by themselves."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator

from perflint.findings import Confidence, Effect, Finding, Need, Severity, lowered, surest
from perflint.rules._operators import words
from perflint.rules.base import Calls, CallSite, Rule, device_confidence, often, shown
from perflint.rules.placement import place_confidence
from perflint.rules.sync._distributions import of_torch
from perflint.rules.sync._written import is_defined_here
from perflint.rules.worth import sentence
from perflint.semantics.facts import distributions
from perflint.semantics.facts.torch_api.waits import Argument, Requirement, Wait, waits
from perflint.semantics.values import NONE, Const, Instance, Scalar, Sequence, Value

_WHY = words("waiting-operator", "why")
_SHORT = words("waiting-operator", "short")
_CURES = words("waiting-operator", "cures")
_SAMPLE = "Use `rsample` under `torch.no_grad()`: it draws the same numbers and does not wait."

_LBFGS = (
    "Each iteration reads the loss and the gradient. `Adam` and `SGD` do not wait; keep `LBFGS` for few steps, or for"
    " small problems on the CPU."
)
_PACKED = (
    "Sort the sequences by length where the batch is made, and pass `enforce_sorted=True`: no order is copied then."
)
_OF_FUNCTIONS = {
    "istft": "It has no form without its check of the windows. Move it out of the step, or to where the CPU waits"
    " anyway.",
    "pack_padded_sequence": _PACKED,
    "pad_packed_sequence": _PACKED,
}
"""The help for functions that have one of their own, by the last part of their names."""
_ALWAYS_WAIT = frozenset({"istft"})
"""Functions that have no form that does not wait."""
_LENGTHS = "Pass both lengths as tensors on the CPU, which saves some of its copies. It has no form that does not wait."


def _listing(library: str) -> str:
    """The operators of a library for the page, by the reason why they wait."""
    lines: list[str] = []
    for why, short in _SHORT.items():
        found: dict[tuple[str, str], set[str]] = {}
        for wait in (wait for rows in waits().values() for wait in rows if wait.why == why):
            home, _, name = _spoken(wait).rpartition(".")
            if not (wait.of or wait.name).startswith(f"{library}."):
                continue
            found.setdefault((home, " and ".join(map(_condition, wait.when))), set()).add(name)
        listed = "; ".join(_group(*key, names) for key, names in sorted(found.items()))
        if not found:
            continue
        lines += textwrap.wrap(f"- {short}: {listed}.", 100, subsequent_indent="  ", break_on_hyphens=False)
    return "\n    ".join(lines)


def _spoken(wait: Wait) -> str:
    """An operator as its users write it; of a metric its class."""
    if not wait.of:
        return wait.name
    method = wait.name.rpartition(".")[2]
    return wait.of if method in ("__call__", "update") else f"{wait.of}.{method}"


def _group(home: str, condition: str, names: set[str]) -> str:
    """Operators of one module that wait under one condition."""
    first, *others = sorted(names)
    listed = ", ".join([f"`{home}.{first}`", *(f"`{name}`" for name in others)])
    return f"{listed} {condition}" if condition else listed


def _condition(requirement: Requirement) -> str:
    name = requirement.field or requirement.argument.name
    if requirement.absent:
        return f"without `{name}`"
    if requirement.unless:
        return f"without `{name}={requirement.value}`"
    return f"with `{name}={requirement.value}`" if requirement.value else f"with `{name}`"


class WaitingOperator(Rule):
    __doc__ = f"""
    ## What it does
    Finds operators, losses and optimizers of torch that make the CPU wait by themselves on GPU tensors, if no
    other rule reports them. The waits were measured on an H200:

    {_listing("torch")}

    The sources of PyTorch Geometric, torchdiffeq and torchvision say that these wait:

    {_listing("torch_geometric")}

    {_listing("torchdiffeq")}

    {_listing("torchvision")}

    Metrics of torchmetrics look at the values of each batch, in `update` and if they are called:

    {_listing("torchmetrics")}

    `sample` of `Normal`, and of distributions built on it, checks the scales as `torch.normal` does.

    ## Why is this bad
    The code does not show it, but the CPU waits until the GPU has done all work that was queued before, and
    queues nothing meanwhile. The cost depends on the step around it: on an H200 `torch.cov` in each layer of
    a GPT-2 made training 9% slower, and `BatchNorm2d(momentum=None)` made that of a ResNet-50 28% slower.
    The copies that `ctc_loss` makes of lengths on the GPU had no measurable cost. The others were not timed.

    ## When it is fine
    Set-up code, data on the CPU, work that is done once in many steps. Similar operators do not wait:
    `multinomial`, `masked_scatter`, `clamp` with tensors, `quantile`, `searchsorted`, `embedding_bag`,
    `linalg.qr`, `linalg.det`, `linalg.slogdet`. TPF128 reports transformers that inspect their mask.
    `istft` has no form that does not wait: its findings are information.

    ## Bad
    ```python
    import torch

    class Whitening(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            return torch.cov(x)
    ```

    ## Good
    ```python
    import torch

    class Whitening(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            centered = x - x.mean(1, keepdim=True)
            return centered @ centered.mT / (x.shape[1] - 1)
    ```

    ## Fix safety
    No fix: the replacement depends on the operator.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace shows a `Memcpy` and a
    `cudaStreamSynchronize` inside the operator.

    ## References
    - [torch.cuda.set_sync_debug_mode](https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_sync_debug_mode.html)
    """

    code, name = "TPF136", "waiting-operator"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = (
        "waiting-operator-gpt",
        "waiting-operator-gpt-host-work",
        "waiting-operator-policy",
        "batch-norm-cumulative-resnet50",
        "batch-norm-cumulative-resnet50-host-work",
        "ctc-lengths",
        "ctc-lengths-host-work",
    )
    costs = None
    listens = (Calls(*waits(), *distributions.sampling()),)

    def need(self, site: CallSite) -> Need:
        return Need.NOW if _name(site) in _ALWAYS_WAIT else Need.OPEN

    def check(self, site: CallSite) -> Iterator[Finding]:
        found = _found(site)
        if found is None:
            return
        confidence, why = found
        yield self.finding(
            site,
            f"{shown(site)} {_WHY[why]}{often(site)}",
            confidence=confidence,
            help=_help(site, why),
            cost=_cost(site),
        )


def _help(site: CallSite, why: str) -> str:
    if site.target in distributions.sampling():
        return _SAMPLE
    if site.target == "torch.optim.Optimizer.step":
        return _LBFGS
    own = _OF_FUNCTIONS.get(_name(site))
    return own or (_LENGTHS if _aligns(site) else _CURES[why])


def _name(site: CallSite) -> str:
    return site.target.rpartition(".")[2]


def _aligns(site: CallSite) -> bool:
    """True for a CTC loss, which has no form that does not wait."""
    made = _object(_owner(site)) if site.target.endswith(".__call__") else None
    return site.target == "torch.nn.functional.ctc_loss" or (made is not None and made.cls == "torch.nn.CTCLoss")


def _cost(site: CallSite) -> str | None:
    """The cost of the one operator that was timed by itself."""
    if site.target != "torch.cov":
        return None
    return sentence("`torch.cov` in each layer costs GPT-2 training {0}", "waiting-operator-gpt")


def _found(site: CallSite) -> tuple[Confidence, str] | None:
    """How sure it is that a call waits, and why it does."""
    if site.target in distributions.sampling():
        made = None if site.receiver is None else of_torch(site, site.receiver, site.target.rpartition(".")[0])
        if made is None or not distributions.using(made, "sample").unchecked:
            return None
        confidence = device_confidence(distributions.tensor([made]))
        if confidence is None:
            return None
        # Other distributions may draw without a wait.
        return confidence if isinstance(site.receiver, Instance) else lowered(confidence), "check"
    if site.has_unpacking or is_defined_here(site):
        return None
    found = [(confidence, wait.why) for wait in waits()[site.target] if (confidence := _confidence(site, wait))]
    if not found:
        return None
    best = surest(*(confidence for confidence, _ in found))
    return next(pair for pair in found if pair[0] is best)


def _confidence(site: CallSite, wait: Wait) -> Confidence | None:
    if wait.of:
        made = _object(_owner(site))
        if made is None or made.cls != wait.of:
            return None
    if not all(_holds(site, requirement) for requirement in wait.when):
        return None
    if wait.operand is None:
        # Parameters of a model, which are on the device where the model is.
        return Confidence.MEDIUM
    if wait.operand.name == "device":
        given = _argument(site, wait.operand)
        return None if given is None else place_confidence(site.value(given))
    value = _value(site, wait.operand)
    return None if value is None else _place(value)


def _place(value: Value) -> Confidence | None:
    """How sure it is that an operand is on the device; for a list, that its elements are."""
    for member in value.members:
        if isinstance(member, Sequence) and member.tensor is None:
            return device_confidence(member.element)
        if isinstance(member, Instance):
            # A packed object is on the device of the tensors that it was made of.
            held = [device_confidence(given) for _, given in member.arguments or ()]
            known = [each for each in held if each is not None]
            return surest(*known) if known else None
    return device_confidence(value)


def _holds(site: CallSite, requirement: Requirement) -> bool:
    if requirement.field:
        value = _value(site, requirement.argument)
        made = _object(value)
        passed = None if made is None else _passed(made, requirement)
    else:
        passed = _value(site, requirement.argument)
    if requirement.absent:
        return passed is None or passed == NONE
    if requirement.unless:
        known = _literal(passed)
        return known is not None and known != Const(ast.literal_eval(requirement.value))
    if requirement.value:
        return passed == Const(ast.literal_eval(requirement.value))
    return passed is not None and passed not in (NONE, Const(False))


def _passed(made: Instance, requirement: Requirement) -> Value | None:
    """The argument of a constructor, by keyword or by position."""
    by_keyword = made.argument(requirement.field)
    return made.argument(str(requirement.at)) if by_keyword is None and requirement.at is not None else by_keyword


def _literal(value: Value | None) -> Value | None:
    """The literal that an argument is or has by default, that of None if it is absent; None if it is unknown."""
    if isinstance(value, Scalar):
        return value.default
    return NONE if value is None else value if isinstance(value, Const) else None


def _owner(site: CallSite) -> Value | None:
    """The object that is called, or whose method is."""
    return site.value(site.node.func) if site.target.endswith(".__call__") else site.receiver


def _value(site: CallSite, argument: Argument) -> Value | None:
    if argument.name == "self":
        return _owner(site)
    given = _argument(site, argument)
    return None if given is None else site.value(given)


def _argument(site: CallSite, argument: Argument) -> ast.expr | None:
    return site.argument(argument.name, argument.position)


def _object(value: Value | None) -> Instance | None:
    members: Iterable[Value] = () if value is None else value.members
    return next((each for each in members if isinstance(each, Instance)), None)
