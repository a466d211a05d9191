"""Evaluation that records an autograd graph."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules.base import Rule
from perflint.rules.evaluation._contexts import suspended
from perflint.rules.evaluation._fix import decorate
from perflint.rules.evaluation._inference import fits
from perflint.rules.evaluation._loops import (
    EVALUATING_WORDS,
    GENERATING_WORDS,
    Region,
    confidence,
    defines,
    is_frozen,
    loops_over_data,
    regions,
)
from perflint.rules.evaluation._runs import Run
from perflint.rules.evaluation._scopes import survey
from perflint.semantics.sites import FileSite
from perflint.source.concrete import cst


class EvalWithoutNoGrad(Rule):
    """A model is evaluated while autograd records.

    ## What it does
    Looks for functions and loops that evaluate: they put a model into evaluation mode, or
    are named for evaluation, and run it, with no `backward()`, optimizer or
    `torch.autograd.grad` in sight, outside `torch.no_grad()`, `torch.inference_mode()` and
    `torch.set_grad_enabled(False)`. Callers in the same file that turn autograd off count.

    ## Why is this bad
    Each operation then builds a graph node and keeps its inputs for a backward pass that
    never comes. Activations of the whole forward stay in memory until the output is
    dropped, and all of them add up where outputs are collected in a list. On an H200 a
    ResNet-50 at batch 1 takes 28 % longer and a GPT-2 with one sequence 45 %; with large
    batches, bound by the GPU, the time is the same and only the memory is lost.

    ## When it is fine
    - The evaluation needs gradients: adversarial examples, saliency, forces from energies.
    - A framework wraps the function: Lightning's `validation_step`, a Trainer's hooks.
    - All parameters are frozen, so nothing is recorded.
    - A caller in another file turns autograd off.

    ## Bad
    ```python
    import torch


    def evaluate(model, loader, device):
        model.eval()
        correct = 0
        for images, labels in loader:
            outputs = model(images.to(device))
            correct += (outputs.argmax(1) == labels.to(device)).sum()
        return correct.item()
    ```

    ## Good
    ```python
    import torch


    @torch.inference_mode()
    def evaluate(model, loader, device):
        model.eval()
        correct = 0
        for images, labels in loader:
            outputs = model(images.to(device))
            correct += (outputs.argmax(1) == labels.to(device)).sum()
        return correct.item()
    ```

    ## Fix safety
    Unsafe. The fix decorates the function with `@torch.inference_mode()` where no tensor is
    seen to leave it or where its name says that it predicts or generates, and with
    `@torch.no_grad()` otherwise. What the function returns then has no `grad_fn`: a caller
    that calls `backward()` on it fails. A tensor made in inference mode cannot be saved for
    a backward pass later. A loop inside a longer function gets no fix; put it under
    `with torch.inference_mode():`.

    ## How a GPU shows it
    The output of the model has a `grad_fn` that is released without a backward pass, and
    `torch.cuda.max_memory_allocated()` drops when the fix is applied.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation
    - https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    """

    code, name = "TPF501", "eval-without-no-grad"
    effect, severity = Effect.MEMORY, Severity.WARNING
    measured = ("eval-with-grad-resnet50-1", "eval-with-grad-resnet50-64")
    listens = (FileSite,)

    def nominate(self, site: FileSite) -> bool:
        text = site.model.source.text
        if ".eval()" in text or ".train(False" in text:
            return True
        return defines(text, EVALUATING_WORDS | GENERATING_WORDS) or loops_over_data(text, EVALUATING_WORDS)

    def check(self, node: cst.CSTNode, site: FileSite) -> Iterator[Finding]:
        for region in regions(survey(site.model)):
            run = _recorded(region)
            sure = confidence(region, run) if run is not None else None
            if run is None or sure is None:
                continue
            what = f"`{region.scope.name}`" if region.loop is None else "this loop"
            context = "no_grad" if fits(region.survey, region.scope, region.node) is None else "inference_mode"
            yield self.finding(
                site,
                f"autograd records `{site.text(run.call.func)}(…)` in {what}, which never calls backward(): "
                f"activations stay in memory, and small batches take longer",
                confidence=_capped(region, sure),
                heat=region.heat,
                span=site.model.source.span(run.call),
                help=f"evaluate under `torch.{context}()`",
                fix=decorate(region, context),
            )


def _recorded(region: Region) -> Run | None:
    """The surest run of a region that autograd records, the first of several."""
    recorded = [
        run
        for run in region.runs
        if not is_frozen(region, run) and not suspended(region.survey, region.scope, run.call)
    ]
    return max(recorded, key=lambda run: run.surety, default=None)


def _capped(region: Region, sure: Confidence) -> Confidence:
    """A class of a framework may be called by code that turns autograd off."""
    if not region.is_foreign:
        return sure
    return Confidence.MEDIUM if sure is Confidence.HIGH and region.over_data else Confidence.LOW
