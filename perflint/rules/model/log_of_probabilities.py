"""TPF306: a probability that is computed only for its logarithm."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Safety, Severity
from perflint.frozen import dataclass
from perflint.rules._methods import in_tests
from perflint.rules.base import Files, FileSite, Rule, Site, shown
from perflint.rules.model._attention import SOFTMAX
from perflint.rules.model._flow import source_of
from perflint.semantics.model import Model
from perflint.semantics.values import Instance

_SIGMOID = ("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit", "torch.Tensor.sigmoid")
_LOG = ("torch.log", "torch.special.log", "torch.Tensor.log")


@dataclass(frozen=True, slots=True)
class _Split:
    """A logarithm, the expression in it that stands for a probability, and the call that made that."""

    taker: ast.Call
    argument: ast.expr
    giver: ast.Call
    what: str
    guarded: bool = False
    """True if a small number is added before the logarithm."""


class LogOfProbabilities(Rule):
    """The logarithm of a softmax or sigmoid is computed in two steps.

    ## What it does
    Finds `torch.log(softmax(x))` and `torch.log(sigmoid(x))`, also with a small number added, if
    the probabilities have no other use.

    ## Why is this bad
    The probabilities are written to memory and read again, also in the backward pass: a training
    step of a GPT-2 with 50304 tokens was 10% slower on an H200, with 1.5 GiB more, and the loss by
    itself 1.8 ×. A probability that rounds to 0 gives an infinite loss, and NaN in the gradients; a
    small number added before hides that, and biases confident predictions.

    ## When it is fine
    - The probabilities are read elsewhere too, for a metric or an entropy: not reported.
    - `gumbel_softmax` draws numbers; its logarithm has another meaning.
    - `binary_cross_entropy` of a sigmoid is not reported: it was the faster form on an H200 (0.15
      ms against 0.19 ms with logits). `binary_cross_entropy_with_logits` is still safer, and
      autocast allows only this one.

    ## Bad
    ```python
    import torch
    import torch.nn.functional as F

    def loss(logits: torch.Tensor, classes: torch.Tensor):
        return F.nll_loss(torch.log(F.softmax(logits, dim=1)), classes)
    ```

    ## Good
    ```python
    import torch
    import torch.nn.functional as F

    def loss(logits: torch.Tensor, classes: torch.Tensor):
        return F.nll_loss(F.log_softmax(logits, dim=1), classes)
    ```

    ## Fix safety
    Unsafe: results differ by rounding, and if the old form gave an infinity the new one gives the
    true number. No fix is offered if a number is added before the logarithm, for modules, whose
    constructor is elsewhere, or for a sigmoid.

    ## How a GPU shows it
    A timeline shows a `softmax` kernel followed by a `log` kernel, and both again in the backward pass.
    `benchmarks/rules/models.py log-of-softmax` times both.

    A trace records whether the argument of a logarithm is the result of a softmax or sigmoid, by its autograd graph.
    A logarithm on the CPU refutes the finding.

    ## References
    - [torch.nn.functional.log_softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html):
      "while mathematically equivalent to log(softmax(x)), doing these two operations separately is slower and
      numerically unstable"
    - [torch.nn.functional.logsigmoid](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.logsigmoid.html)
    """

    code, name = "TPF306", "log-of-probabilities"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    measured = ("log-of-softmax-step-gpt",)
    costs = "over a vocabulary of 50304 tokens it makes GPT-2 training {0} slower"
    listens = (Files("softmax", "sigmoid", "Softmax", "Sigmoid", also=("log(",)),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for call in model.nodes(ast.Call):
            split = _logarithm(model, call)
            if split is None:
                continue
            yield self.finding(
                Site(model, call),
                f"{shown(site, call)} computes a {split.what} only for its logarithm: one more pass over "
                "memory, and infinite where a probability rounds to 0",
                # The measurement is of a softmax over a vocabulary.
                severity=self.severity if split.what == "softmax" else Severity.INFO,
                confidence=_confidence(model, split),
                help=f"Use `{'log_softmax' if split.what == 'softmax' else 'logsigmoid'}`, which takes the logits.",
                fix=_fix(model, split),
            )


def _confidence(model: Model, split: _Split) -> Confidence:
    if in_tests(model):
        return Confidence.LOW
    return Confidence.MEDIUM if split.guarded else Confidence.HIGH


def _logarithm(model: Model, call: ast.Call) -> _Split | None:
    argument = _logged(model, call)
    if argument is None:
        return None
    guarded = isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Add)
    inner = _without_guard(argument) if isinstance(argument, ast.BinOp) else argument
    giver = None if inner is None else source_of(model, call, inner)
    if inner is None or giver is None:
        return None
    if _is_call_of(model, giver, SOFTMAX, "softmax", "torch.nn.Softmax"):
        return _Split(call, inner, giver, "softmax", guarded)
    if _is_call_of(model, giver, _SIGMOID, "sigmoid", "torch.nn.Sigmoid"):
        return _Split(call, inner, giver, "sigmoid", guarded)
    return None


def _logged(model: Model, call: ast.Call) -> ast.expr | None:
    """The argument of the logarithm in a call."""
    target = model.target(call)
    func = call.func
    if target == "torch.Tensor.log" or (not target and isinstance(func, ast.Attribute) and func.attr == "log"):
        return func.value if isinstance(func, ast.Attribute) and not call.args and not call.keywords else None
    given = model.call(call).argument("input", 0) if target in _LOG else None
    return given if len(call.args) + len(call.keywords) == 1 else None


def _without_guard(node: ast.BinOp) -> ast.expr | None:
    """The probabilities in `p + 1e-8`."""
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(other, ast.Constant) and isinstance(other.value, float) and 0 < other.value < 1e-3:
            return one
    return None


def _is_call_of(model: Model, call: ast.Call, targets: tuple[str, ...], method: str, module: str) -> bool:
    """True if a call is one of some functions, the method of a tensor, or of a module."""
    target = model.target(call)
    if target == "torch.nn.Module.__call__":
        made = model.value(call.func)
        return isinstance(made, Instance) and made.cls == module
    if target in targets:
        return True
    # An object of an unknown class: `x.softmax(-1)`, but not `self.softmax(x)`.
    if target or not isinstance(call.func, ast.Attribute) or call.func.attr != method:
        return False
    if method == "sigmoid":
        return not call.args and not call.keywords
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return len(given) == 1 and isinstance(given[0], (ast.Constant, ast.UnaryOp))


def _fix(model: Model, split: _Split) -> Fix | None:
    """`torch.log(F.softmax(x, 1))` to `F.log_softmax(x, 1)`: the name, and nothing around it."""
    giver, written = split.giver, model.source.written
    if split.guarded or split.argument is not giver:
        return None
    at_home = model.target(giver) in ("", "torch.softmax", "torch.nn.functional.softmax", "torch.Tensor.softmax")
    if split.what != "softmax" or not at_home or not isinstance(giver.func, ast.Attribute):
        return None
    head, whole = written(giver.func.value), written(giver)
    if not whole.startswith(head):
        return None
    new = head + whole[len(head) :].replace("softmax", "log_softmax", 1)
    return Fix("Use `log_softmax`", Safety.UNSAFE, (Edit(model.source.span(split.taker), new),))
