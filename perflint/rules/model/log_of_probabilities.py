"""TPF306: a probability that is computed for its logarithm alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity, Span
from perflint.frozen import dataclass
from perflint.rules.base import Files, Rule
from perflint.rules.model._flow import source_of
from perflint.rules.sync._words import quoted
from perflint.semantics.model import Model
from perflint.semantics.sites import FileSite, Site
from perflint.semantics.values import Instance
from perflint.source.concrete import cst

_SOFTMAX = ("torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax", "torch.Tensor.softmax")
_SIGMOID = ("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit", "torch.Tensor.sigmoid")
_LOG = ("torch.log", "torch.special.log", "torch.Tensor.log")
_ENTROPY = "torch.nn.functional.binary_cross_entropy"


@dataclass(frozen=True, slots=True)
class _Split:
    """A logarithm or loss, the expression in it that stands for a probability, and the call that made that."""

    taker: ast.Call
    argument: ast.expr
    giver: ast.Call
    what: str
    guarded: bool = False
    """Whether a small number is added before the logarithm."""


class LogOfProbabilities(Rule):
    """A logarithm is taken of a softmax or sigmoid that was computed for it alone.

    ## What it does
    Finds `torch.log(softmax(x))` and `torch.log(sigmoid(x))`, also with a small number added, and
    `binary_cross_entropy(torch.sigmoid(x), y)` or `nn.BCELoss` of a sigmoid, where nothing else reads the
    probabilities.

    ## Why is this bad
    The probabilities are written to memory and read again, in the backward pass too. A probability that rounds
    to 0 gives an infinite loss, and NaN in the gradients; a small number added before hides that, and biases
    what was confident. Under autocast `binary_cross_entropy` raises an error; its form with logits is safe.

    ## When it is fine
    - The probabilities are read elsewhere too, for a metric or an entropy: not reported.
    - `gumbel_softmax` draws numbers; its logarithm is something else.
    - A model whose `forward` returns probabilities, for whoever serves it.

    ## Bad
    ```python
    import torch
    import torch.nn.functional as F

    def loss(logits: torch.Tensor, classes: torch.Tensor, bits: torch.Tensor):
        first = F.nll_loss(torch.log(F.softmax(logits, dim=1)), classes)
        second = F.binary_cross_entropy(torch.sigmoid(logits), bits)
        return first + second
    ```

    ## Good
    ```python
    import torch
    import torch.nn.functional as F

    def loss(logits: torch.Tensor, classes: torch.Tensor, bits: torch.Tensor):
        first = F.nll_loss(F.log_softmax(logits, dim=1), classes)
        second = F.binary_cross_entropy_with_logits(logits, bits)
        return first + second
    ```

    ## Fix safety
    Unsafe: results differ by rounding, and where the old form gave an infinity (or, in
    `binary_cross_entropy`, its limit of -100 for a logarithm) the new one gives the true number. There is none
    where a number is added before the logarithm, nor for modules, whose constructor stands elsewhere.

    ## How a GPU shows it
    A timeline shows a `softmax` kernel followed by a `log` kernel, and both again in the backward pass.
    `benchmarks/rules/models.py log-of-softmax sigmoid-then-bce` times both.

    ## References
    - [torch.nn.functional.log_softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html):
      "while mathematically equivalent to log(softmax(x)), doing these two operations separately is slower and
      numerically unstable"
    - [torch.nn.BCEWithLogitsLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html)
    - [Autocast: prefer binary_cross_entropy_with_logits](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code, name = "TPF306", "log-of-probabilities"
    effect, severity = Effect.COMPUTE, Severity.INFO
    listens = (Files("softmax", "sigmoid", "Softmax", "Sigmoid"),)

    def nominate(self, site: FileSite) -> bool:
        text = site.model.source.text
        return "log(" in text or "binary_cross_entropy" in text or "BCELoss" in text

    def check(self, node: cst.CSTNode, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for call in model.nodes(ast.Call):
            split = _logarithm(model, call) or _entropy(model, call)
            if split is None:
                continue
            heat = model.heat(call)
            yield self.finding(
                Site(model, call),
                f"{quoted(site.text(call))} computes {split.what} for the logarithm alone, which is one more pass over "
                "memory and infinite where a probability rounds to 0",
                confidence=Confidence.MEDIUM if split.guarded or heat is Heat.COLD else Confidence.HIGH,
                help=f"Use `{_cure(split)}`, which takes the logits.",
                fix=_fix(model, split),
            )


def _cure(split: _Split) -> str:
    if split.what == "a softmax":
        return "log_softmax"
    if _called_name(split.taker) == "log":
        return "logsigmoid"
    return f"{_ENTROPY.rpartition('.')[2]}_with_logits" if _is_functional(split.taker) else "BCEWithLogitsLoss"


def _is_functional(call: ast.Call) -> bool:
    return _called_name(call) == "binary_cross_entropy"


def _logarithm(model: Model, call: ast.Call) -> _Split | None:
    argument = _logged(model, call)
    if argument is None:
        return None
    guarded = isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Add)
    inner = _without_guard(argument) if isinstance(argument, ast.BinOp) else argument
    giver = None if inner is None else source_of(model, call, inner)
    if inner is None or giver is None:
        return None
    if _is_call_of(model, giver, _SOFTMAX, "softmax", "torch.nn.Softmax"):
        return _Split(call, inner, giver, "a softmax", guarded)
    if _is_call_of(model, giver, _SIGMOID, "sigmoid", "torch.nn.Sigmoid"):
        return _Split(call, inner, giver, "a sigmoid", guarded)
    return None


def _logged(model: Model, call: ast.Call) -> ast.expr | None:
    """What a call takes the logarithm of."""
    target = model.target(call)
    func = call.func
    if target == "torch.Tensor.log" or (not target and isinstance(func, ast.Attribute) and func.attr == "log"):
        return func.value if isinstance(func, ast.Attribute) and not call.args and not call.keywords else None
    return call.args[0] if target in _LOG and len(call.args) == 1 else None


def _without_guard(node: ast.BinOp) -> ast.expr | None:
    """The probabilities in `p + 1e-8`."""
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(other, ast.Constant) and isinstance(other.value, float) and 0 < other.value < 1e-3:
            return one
    return None


def _entropy(model: Model, call: ast.Call) -> _Split | None:
    if model.target(call) == "torch.nn.Module.__call__":
        made = model.value(call.func)
        if not isinstance(made, Instance) or made.cls != "torch.nn.BCELoss":
            return None
    elif model.target(call) != _ENTROPY:
        return None
    argument = next((keyword.value for keyword in call.keywords if keyword.arg == "input"), None)
    if argument is None and call.args and not isinstance(call.args[0], ast.Starred):
        argument = call.args[0]
    giver = None if argument is None else source_of(model, call, argument)
    if argument is None or giver is None or not _is_call_of(model, giver, _SIGMOID, "sigmoid", "torch.nn.Sigmoid"):
        return None
    return _Split(call, argument, giver, "a sigmoid")


def _is_call_of(model: Model, call: ast.Call, targets: tuple[str, ...], method: str, module: str) -> bool:
    """Whether a call is one of some functions, the method of a tensor, or of a module."""
    target = model.target(call)
    if target == "torch.nn.Module.__call__":
        made = model.value(call.func)
        return isinstance(made, Instance) and made.cls == module
    if target in targets:
        return True
    # Of an object whose class nobody wrote down: `x.softmax(-1)`, but not `self.softmax(x)`.
    if target or not isinstance(call.func, ast.Attribute) or call.func.attr != method:
        return False
    if method == "sigmoid":
        return not call.args and not call.keywords
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return len(given) == 1 and isinstance(given[0], (ast.Constant, ast.UnaryOp))


def _fix(model: Model, split: _Split) -> Fix | None:
    if split.guarded or split.argument is not split.giver or "#" in model.source.segment(_span(model, split.taker)):
        return None
    return _fix_of_log(model, split) if split.what == "a softmax" else _fix_of_entropy(model, split)


def _span(model: Model, node: ast.expr) -> Span:
    return model.source.span(node)


def _fix_of_log(model: Model, split: _Split) -> Fix | None:
    """`torch.log(F.softmax(x, 1))` to `F.log_softmax(x, 1)`: the name, and nothing around it."""
    giver, text = split.giver, model.source.segment
    at_home = model.target(giver) in ("", "torch.softmax", "torch.nn.functional.softmax", "torch.Tensor.softmax")
    if not at_home or not isinstance(giver.func, ast.Attribute):
        return None
    head, whole = text(_span(model, giver.func.value)), text(_span(model, giver))
    if not whole.startswith(head):
        return None
    new = head + whole[len(head) :].replace("softmax", "log_softmax", 1)
    return Fix("Use `log_softmax`", Safety.UNSAFE, (Edit(_span(model, split.taker), new),))


def _fix_of_entropy(model: Model, split: _Split) -> Fix | None:
    """`F.binary_cross_entropy(torch.sigmoid(x), y)` to the form with logits."""
    logits = _logits(split.giver)
    if logits is None or not _is_functional(split.taker) or not isinstance(split.taker.func, ast.Attribute):
        return None
    func, text = _span(model, split.taker.func), model.source.segment
    edits = (
        Edit(func, f"{text(func)}_with_logits"),
        Edit(_span(model, split.giver), text(_span(model, logits))),
    )
    return Fix("Use `binary_cross_entropy_with_logits`", Safety.UNSAFE, edits)


def _logits(giver: ast.Call) -> ast.expr | None:
    if len(giver.args) == 1 and not giver.keywords and not isinstance(giver.args[0], ast.Starred):
        return giver.args[0]
    if not giver.args and not giver.keywords and isinstance(giver.func, ast.Attribute):
        simple = isinstance(giver.func.value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        return giver.func.value if simple else None
    return None


def _called_name(call: ast.Call) -> str:
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
