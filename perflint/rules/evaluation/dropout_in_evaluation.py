"""TPF505: dropout of a module that evaluation mode does not switch off."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._memory.flows import made
from perflint.rules._sources import sources
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.semantics.structure import last_name, path_of, walk
from perflint.semantics.values import Const, Instance, Scalar

_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
_DROPS = tuple(f"torch.nn.functional.{name}" for name in ("dropout", "dropout1d", "dropout2d", "dropout3d"))


class DropoutInEvaluation(Rule):
    """A module drops values in evaluation mode, too.

    ## What it does
    Finds `scaled_dot_product_attention(…, dropout_p=p)` and `F.dropout(x, p)` in methods of a module, if neither their
    arguments nor a condition around them depends on `self.training`.

    ## Why is this bad
    These functions do not read the mode of the module: `F.dropout` drops unless it gets `training=False`, and the
    attention always drops. After `model.eval()` the results are random and wrong, and the work for it, random
    numbers and a mask, is done in each step. The results matter more than the time: dropout of attention costs a
    forward pass of GPT-2 6%.

    ## When it is fine
    - The probability is zero, or set to zero for an evaluation.
    - Values are dropped in evaluation on purpose: pass `training=True`, which is not reported.

    ## Bad
    ```python
    import torch.nn.functional as F
    from torch import nn

    class Attention(nn.Module):
        def forward(self, q, k, v):
            return F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)
    ```

    ## Good
    ```python
    import torch.nn.functional as F
    from torch import nn

    class Attention(nn.Module):
        def forward(self, q, k, v):
            return F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0.0)
    ```

    ## Fix safety
    No fix: the results of an evaluation change, and published numbers may rest on them.

    ## How a GPU shows it
    Two runs of the model in evaluation mode give different results. A profile shows `fused_dropout` kernels, or an
    attention kernel with dropout.

    ## References
    - [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html):
      "this function always applies dropout according to the specified `dropout_p` argument"
    - [torch.nn.functional.dropout](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html)
    """

    code, name = "TPF505", "dropout-in-evaluation"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    measured = ("dropout-in-evaluation-gpt",)
    costs = "dropout of attention makes a forward pass of GPT-2 {0} slower"
    listens = (Calls(_ATTENTION, *_DROPS),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        is_attention = site.target == _ATTENTION
        given = site.argument("dropout_p", 4) if is_attention else site.argument("p", 1)
        if not _is_of_module(site) or site.has_unpacking or (not is_attention and site.argument("training", 2)):
            return
        confidence = Confidence.HIGH if given is None else _drops(site, given)
        if confidence is None or (is_attention and given is None) or _asks_for_mode(site, given):
            return
        what = "dropout_p=p if self.training else 0.0" if is_attention else "training=self.training"
        yield self.finding(
            site,
            f"{shown(site)} drops values in evaluation mode, too",
            confidence=confidence,
            help=f"Pass `{what}`.",
        )


def _is_of_module(site: CallSite) -> bool:
    """True in a method of a module, which has a mode, or in a function inside of one."""
    model, function = site.model, site.model.function(site.node)
    while function is not None:
        info = model.module.defined_by(function)
        if info is not None and info.owner and model.is_module(Instance(f"{model.module.name}.{info.owner}")):
            return True
        function = model.function(function)
    return False


def _drops(site: CallSite, given: ast.expr) -> Confidence | None:
    """How sure it is that a probability is not zero; None if it may well be, or if callers choose it."""
    value = site.value(given)
    if isinstance(value, Const):
        return Confidence.HIGH if value.value else None
    if not isinstance(given, ast.Attribute) or not (_is_setting(site, given) or isinstance(value, Scalar)):
        return None
    if isinstance(value, Scalar) and (value.type != "float" or value.default == Const(0.0)):
        return None
    return Confidence.MEDIUM


def _is_setting(site: CallSite, given: ast.Attribute) -> bool:
    """True for an attribute of the module that comes from the settings of the program: `self.rate = config.rate`."""
    made = sources(site.model, given)
    return path_of(given).startswith("self.") and bool(made) and all(isinstance(each, ast.Attribute) for each in made)


def _asks_for_mode(site: CallSite, given: ast.expr | None) -> bool:
    """True if the mode decides about the probability or the call."""
    asked = [] if given is None else [given, made(site.model, given)]
    conditions = [outer.test for outer in site.model.ancestors(site.node) if isinstance(outer, (ast.If, ast.IfExp))]
    return any(last_name(part) == "training" for each in (*asked, *conditions) for part in walk(each))
