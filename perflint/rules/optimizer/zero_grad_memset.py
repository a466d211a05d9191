"""TPF602: gradients that are filled with zeros instead of dropped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._methods import calls_named, is_false
from perflint.rules._project_text import first_match
from perflint.rules.base import CallSite, Files, FileSite, Rule, often, shown
from perflint.rules.optimizer._graphs import CAPTURES
from perflint.rules.optimizer._parameters import goes_over_parameters
from perflint.semantics.around import loops_around, targets
from perflint.semantics.structure import last_name, names_in


class ZeroGradMemset(Rule):
    """Gradients are filled with zeros, parameter by parameter, instead of being dropped.

    ## What it does
    Finds `zero_grad(set_to_none=False)`, and loops over parameters that call `p.grad.zero_()`.

    ## Why is this bad
    Each gradient is written with zeros, by one kernel for each parameter unless the optimizer was
    created with `foreach=True` or `fused=True`, and the next backward pass reads the zeros and adds
    to them. Dropped gradients cost nothing: the backward pass writes new ones. They also do not
    fill memory while the next forward pass runs. In training of a 124 M parameter GPT it cost 4%
    of the step on an H200.

    ## When it is fine
    - A CUDA graph of the whole step reads and writes gradients at fixed addresses: nothing is
      reported in files that use CUDA graphs.
    - Code reads `p.grad` of parameters that took no part in the step, and expects zeros there. If a
      file of the project writes to gradients itself (`p.grad += g`, `p.grad.data = g`), only the
      audit profile reports it.
    - An optimizer with momentum or weight decay should also move parameters without a gradient.
    - One tensor's gradient (`x.grad.zero_()` for an adversarial example) is not reported.

    ## Bad
    ```python
    def train(model, loader, optimizer):
        for x in loader:
            optimizer.zero_grad(set_to_none=False)
            model(x).sum().backward()
            optimizer.step()
    ```

    ## Good
    ```python
    def train(model, loader, optimizer):
        for x in loader:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    ```

    ## Fix safety
    No fix: `set_to_none=False` is written by intent, and other code may rely on it: code
    that writes gradients only where `p.grad is not None`, code that adds to them, optimizers with momentum or
    weight decay, and graphs that were captured with the gradients in place. Before torch 2.0 the
    default was to fill with zeros, so the rule applies from 2.0 on.

    ## How a GPU shows it
    A trace records the gradients that the call filled with zeros, and their bytes. It refutes the finding if the
    call kept no gradient. A profile shows `aten::zero_` with
    one fill kernel for each parameter below `Optimizer.zero_grad`.

    ## References
    - [torch.optim.Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code, name = "TPF602", "zero-grad-memset"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    measured = ("zero-grad-memset-step-gpt",)
    costs = "zeros written to each gradient cost GPT-2 training {0}"
    listens = (Files("set_to_none", ".zero_()", unlike=CAPTURES),)
    since = (2, 0)

    def check(self, site: FileSite) -> Iterator[Finding]:
        for call in calls_named(site, "zero_grad", "zero_"):
            found = _looped(call) if last_name(call.node) == "zero_" else _filled(call)
            if found is None:
                continue
            written = first_match(site.model, _WRITES)
            yield self.finding(
                call,
                f"{shown(call)} writes zeros to each gradient, and the backward pass adds to them{often(call)}",
                confidence=Confidence.LOW if written else Confidence.MEDIUM if call.heat is Heat.HOT else found,
                help=f"Code on {written} writes to gradients: let it accept None first. {_HELP}" if written else _HELP,
            )


_HELP = (
    "Free the gradients: `zero_grad()` without arguments, or `p.grad = None`. Code that reads `p.grad` then gets None "
    "for parameters that took no part in the step."
)
_WRITES = re.compile(
    r"grad(?<=\.grad)(?:\.data)?\s*"
    r"(?:\.(?:add|sub|copy)_\(|(?:\[[^\]\n]*\]\s*)?(?:[-+*/@]=|=(?!=)(?!\s*None\b)))"
)
"""Code that writes to a gradient, other than by scaling it in place with a method."""


def _set_to_none(site: CallSite) -> ast.expr | ast.keyword | None:
    """The argument of `zero_grad`, as it is written."""
    for keyword in site.node.keywords:
        if keyword.arg == "set_to_none":
            return keyword
    return site.node.args[0] if len(site.node.args) == 1 else None


def _filled(site: CallSite) -> Confidence | None:
    given = _set_to_none(site)
    value = given.value if isinstance(given, ast.keyword) else given
    return Confidence.MEDIUM if is_false(value) else None


def _looped(site: CallSite) -> Confidence | None:
    """`p.grad.zero_()` or `p.grad.data.zero_()` for each `p` of a loop over parameters."""
    owner = _owner_of_gradient(site.node)
    if owner is None or _is_asked_for(site):
        return None
    for loop in loops_around(site.model, site.node):
        for target, over in targets(loop):
            if owner in names_in(target):
                return Confidence.MEDIUM if goes_over_parameters(site.model, over) else None
    return None


def _is_asked_for(site: CallSite) -> bool:
    """True if a branch decides between zeros and None, as `zero_grad` itself does."""
    tests = [outer.test for outer in site.model.ancestors(site.node) if isinstance(outer, ast.If)]
    return any("none" in name for test in tests for name in names_in(test))


def _owner_of_gradient(call: ast.Call) -> str | None:
    assert isinstance(call.func, ast.Attribute)
    node = call.func.value
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    if not (isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.value, ast.Name)):
        return None
    return node.value.id
