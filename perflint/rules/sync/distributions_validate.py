"""TPF127: distributions that validate their arguments on the CPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity, lowered
from perflint.fixes.edits import with_one_more
from perflint.rules._project_text import some_file_says
from perflint.rules._statements import swallows
from perflint.rules.base import Calls, CallSite, Files, FileSite, Rule, device_confidence, often, shown
from perflint.rules.sync._distributions import of_torch
from perflint.semantics.facts import distributions
from perflint.semantics.values import NONE, Const, Instance
from perflint.source.quoting import quoted

_SWITCH = "set_default_validate_args"
SWITCHED_OFF = re.compile(
    r"\b(?:set_default_validate_args\(\s*(?:value\s*=\s*)?|Distribution\._validate_args\s*=\s*)False\b"
)
"""`set_default_validate_args(False)`, or the same by hand: `Distribution._validate_args = False`."""


class DistributionsValidate(Rule):
    """
    ## What it does
    Finds distributions of `torch.distributions` that are built from GPU tensors with validation on.
    The constructor, `log_prob` and `cdf` check their arguments. Also finds
    `Normal.set_default_validate_args = False`, which overwrites the method instead of calling it
    and switches nothing off.

    ## Why is this bad
    Each check asks the GPU whether all values are allowed, and the CPU waits for the answer: once
    for `Categorical`, twice for `Normal`, up to nine times for others, and once more for each
    `log_prob`. A Python number next to a tensor is also copied to the GPU with a blocking copy. On
    an H200 a validated `Normal` in each layer of a GPT-2 made training 13% slower, and one at the
    end of a step 15%.

    ## When it is fine
    Distributions on the CPU, tests, debugging, `validate_args=False`, a program that calls
    `Distribution.set_default_validate_args(False)` or sets `Distribution._validate_args = False` in
    one of its files, and Python with `-O`, which turns the checks off by default.

    ## Bad
    ```python
    import torch
    from torch.distributions import Normal

    class Policy(torch.nn.Module):
        def forward(self, mean: torch.Tensor, std: torch.Tensor, action: torch.Tensor):
            return Normal(mean, std).log_prob(action)
    ```

    ## Good
    ```python
    import torch
    from torch.distributions import Normal

    class Policy(torch.nn.Module):
        def forward(self, mean: torch.Tensor, std: torch.Tensor, action: torch.Tensor):
            return Normal(mean, std, validate_args=False).log_prob(action)
    ```

    ## Fix safety
    Adds `validate_args=False` to the constructor, or turns the assignment into a call. Unsafe:
    parameters and values that are not allowed, such as NaN of a policy that diverges, raise no
    error any more. No fix is offered if the code around the constructor handles that error, or if a parameter or
    an attribute holds the class: callers may pass another one.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns inside `torch/distributions/distribution.py`; a trace
    shows `aten::_is_all_true` or `aten::all`, then `aten::item` with a `cudaStreamSynchronize`.

    ## References
    - [torch.distributions](https://docs.pytorch.org/docs/stable/distributions.html): "Validation may be
      expensive, so you may want to disable it once a model is working"
    """

    code, name = "TPF127", "distributions-validate"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("distributions-validate-gpt", "distributions-validate-gpt-host-work", "distributions-validate-policy")
    listens = (Calls(*distributions.constructors(), *distributions.members()), Files(_SWITCH))

    def check(self, site: CallSite | FileSite) -> Iterator[Finding]:
        if isinstance(site, FileSite):
            yield from self._assigned(site)
            return
        confidence = _confidence(site)
        if confidence is None:
            return
        made, member = _distribution(site)
        assert made is not None
        text = shown(site)
        if member:
            what = f"{text} checks its argument: the CPU waits for the GPU to answer"
        else:
            count = distributions.constructing(made).validated + distributions.copied_numbers(made)
            times = "" if count == 1 else " twice" if count == 2 else f" {count} times"
            what = f"{text} checks its arguments: the CPU waits{times} for the GPU to answer"
        yield self.finding(
            site,
            what + often(site),
            confidence=confidence,
            help=(
                "Pass `validate_args=False` to the constructor, or call "
                "`Distribution.set_default_validate_args(False)` once."
            ),
            fix=None if member else _fix(site, made),
        )

    def _assigned(self, site: FileSite) -> Iterator[Finding]:
        """Assignments of False to the switch, which is a method: they switch nothing off."""
        source = site.model.source
        for node in site.model.nodes(ast.Assign):
            target = node.targets[0]
            if not (isinstance(target, ast.Attribute) and target.attr == _SWITCH):
                continue
            if len(node.targets) != 1 or not (isinstance(node.value, ast.Constant) and node.value.value is False):
                continue
            text = source.written(target)
            yield self.finding(
                site,
                f"{quoted(site.text(target) + ' = False')} replaces the method and turns no checks off",
                heat=Heat.WARM,
                span=source.span(node),
                help="Call it: `Distribution.set_default_validate_args(False)`.",
                fix=Fix("Call the method", Safety.UNSAFE, (Edit(source.span(node), f"{text}(False)"),)),
            )


def _distribution(site: CallSite) -> tuple[Instance | None, str]:
    """The distribution that a call makes or uses, as one of torch's classes, and the method that it calls."""
    cls, member = site.target, ""
    if cls in distributions.constructors():
        value = site.value(site.node)
    elif site.receiver is not None:
        value = site.receiver
        cls, _, member = cls.rpartition(".")
    else:
        return None, ""
    return of_torch(site, value, cls), member


def _confidence(site: CallSite) -> Confidence | None:
    made, member = _distribution(site)
    if made is None:
        return None
    waits = distributions.using(made, member) if member else distributions.constructing(made)
    if waits.validated <= waits.unchecked:
        return None
    operands = [made, *(site.value(argument) for argument in site.node.args)] if member else [made]
    confidence = device_confidence(distributions.tensor(operands))
    given = _checked(made).argument("validate_args")
    if confidence is None or given == Const(False):
        return None
    if given is None or given == NONE:
        return None if some_file_says(site.model, SWITCHED_OFF) else confidence
    return confidence if given == Const(True) else lowered(confidence)


def _checked(made: Instance) -> Instance:
    """The distribution that checks: `Independent` leaves it to the one that it is made of."""
    base = made.argument("base_distribution")
    return _checked(base) if made.cls.endswith(".Independent") and isinstance(base, Instance) else made


def _fix(site: CallSite, made: Instance) -> Fix | None:
    if site.has_unpacking or made.argument("validate_args") is not None or swallows(site.model, site.node):
        return None
    if not site.model.symbols.full_name(site.node.func):
        # A class that a parameter or an attribute holds may be another one, without this argument.
        return None
    edit = with_one_more(site.model.source, site.node, "validate_args=False")
    return None if edit is None else Fix("Leave the checks out", Safety.UNSAFE, (edit,))
