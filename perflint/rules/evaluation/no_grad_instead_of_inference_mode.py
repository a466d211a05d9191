"""`no_grad` around code that inference mode fits as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.imports import spell
from perflint.rules._since import INFERENCE_MODE
from perflint.rules.base import Files, FileSite, Rule
from perflint.rules.evaluation._inference import fits
from perflint.rules.evaluation._regions import defines, evaluates, loops_over_data
from perflint.rules.evaluation._scopes import Scope, Survey, survey
from perflint.semantics.facts import rule_conventions
from perflint.semantics.heat.training import differentiates
from perflint.semantics.structure import last_name, path_of
from perflint.semantics.values import Name


class NoGradInsteadOfInferenceMode(Rule):
    """`torch.no_grad()` around plain evaluation.

    ## What it does
    Looks for evaluation, prediction and generation code under `torch.no_grad()` whose tensors stay
    inside: only numbers, text or NumPy arrays leave it. If tensors may leave, the finding has low
    confidence.

    ## Why is this bad
    `no_grad` stops the recording of the graph but still keeps version counters and view tracking
    for each tensor. `inference_mode` drops these too. It saves only CPU time, which matters only
    for small batches: 8% for a GPT-2 with one sequence on an H200, 3% or nothing for a ResNet-50
    at batch 1, nothing with large batches. This is advice, not an error.

    ## When it is fine
    - Tensors created here meet autograd later: a teacher's output in a loss, features for a probe,
      parameters that are initialised in place.
    - The code is compiled or exported by a version of torch that does not support this in inference
      mode.
    - The context spans a whole trainer, whose hooks may do anything.

    ## Bad
    ```python
    import torch


    @torch.no_grad()
    def evaluate(model, loader):
        model.eval()
        correct = 0
        for images, labels in loader:
            correct += (model(images).argmax(1) == labels).sum().item()
        return correct
    ```

    ## Good
    ```python
    import torch


    @torch.inference_mode()
    def evaluate(model, loader):
        model.eval()
        correct = 0
        for images, labels in loader:
            correct += (model(images).argmax(1) == labels).sum().item()
        return correct
    ```

    ## Fix safety
    Display only: the replacement is shown and never written. A tensor created in inference mode can
    never enter autograd, and the code that uses it may be far away.

    ## How a GPU shows it
    The CPU time between launches shrinks by well under a microsecond each. A trace sees the calls of modules under
    the context. It refutes the finding if inference mode was already on, or if autograd recorded a call that took one
    of the results. It confirms it without cost if the GPU was still at work when most of the calls returned.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#inference-mode
    """

    code, name = "TPF502", "no-grad-instead-of-inference-mode"
    effect, severity = Effect.COMPUTE, Severity.INFO
    measured = ("no-grad-resnet50-1", "no-grad-resnet50-64")
    costs = "`no_grad` makes inference of a ResNet-50 {0} slower at batch 1, and costs {1} at batch 64"
    listens = (Files("no_grad"),)
    since = (1, 9)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if not (
            model.says(".eval()")
            or defines(model, rule_conventions.names_evaluation, rule_conventions.names_generation)
            or loops_over_data(model)
        ):
            return
        file = survey(site.model)
        for scope, context, within in _contexts(file):
            sure = _fits(file, scope, within)
            if sure is not None:
                yield self._finding(site, file, context, within, sure)

    def _finding(self, site: FileSite, file: Survey, context: ast.expr, within: ast.AST, sure: Confidence) -> Finding:
        spelling = spell(site.model.symbols, "torch.inference_mode", context)
        text = "torch.inference_mode" if spelling is None else spelling.text
        written = f"{text}()" if isinstance(context, ast.Call) else text
        span = site.model.source.span(context)
        escaping = "" if sure is Confidence.HIGH else ", unless autograd uses the results later"
        return self.finding(
            site,
            f"`torch.inference_mode()` is cheaper here than `{site.text(context)}`{escaping}",
            confidence=sure,
            heat=site.model.heat(within),
            span=span,
            help=f"Use `{written}`.",
            fix=None
            if spelling is None
            else Fix(
                f"Replace it with `{written}`",
                Safety.DISPLAY,
                (Edit(span, written),),
                spelling.imports,
                since=INFERENCE_MODE,
            ),
        )


def _contexts(file: Survey) -> Iterator[tuple[Scope, ast.expr, ast.AST]]:
    """The uses of `torch.no_grad`, on a `def` or in a `with`, and the scope that each concerns."""
    for scope in file.scopes:
        if not isinstance(scope.node, ast.Module):
            for decorator in scope.node.decorator_list:
                if _is_no_grad(file, decorator):
                    yield scope, decorator, scope.node
    for node in file.model.nodes(ast.With):
        for item in node.items:
            if _is_no_grad(file, item.context_expr):
                yield file.scope_around(node), item.context_expr, node


def _is_no_grad(file: Survey, expression: ast.expr) -> bool:
    if isinstance(expression, ast.Call) and (expression.args or expression.keywords):
        return False
    called = expression.func if isinstance(expression, ast.Call) else expression
    if last_name(called) != "no_grad":
        return False
    value = file.model.value(called)
    if isinstance(value, Name):
        return value.name.startswith("torch.")
    return path_of(called) in ("torch.no_grad", "no_grad", "torch.autograd.no_grad")


def _fits(file: Survey, scope: Scope, within: ast.AST) -> Confidence | None:
    if differentiates(file.model, within) or not evaluates(file, scope, within):
        return None
    return fits(file, scope, within)
