"""Evaluation that records an autograd graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity, surest
from perflint.rules.base import FileSite, Rule
from perflint.rules.evaluation._contexts import contexts
from perflint.rules.evaluation._fix import context_of, decorate, under_no_grad
from perflint.rules.evaluation._flow import flows
from perflint.rules.evaluation._graph import Fate
from perflint.rules.evaluation._modules import modules
from perflint.rules.evaluation._regions import (
    Region,
    confidence,
    defines,
    is_called_in_training,
    loops_over_data,
    regions,
    trains,
)
from perflint.rules.evaluation._runs import Run, mode_before
from perflint.rules.evaluation._scopes import Scope, Survey, reached, survey
from perflint.rules.evaluation._wasted import Wasted, Why, wasted
from perflint.semantics.around import statement_of
from perflint.semantics.facts import rule_conventions
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import grouped

_ELSEWHERE = Fate.PASSED | Fate.STORED


class EvalWithoutNoGrad(Rule):
    """A model is evaluated while autograd records.

    ## What it does
    Looks for functions and loops that evaluate. They put a model into evaluation mode, have a name
    that says evaluation, or take results of a `from_pretrained` model in a file that trains
    nothing, and run the model outside `torch.no_grad()`, `torch.inference_mode()` and
    `torch.set_grad_enabled(False)`, without `backward()`, optimizer, gradient scaler or
    `torch.autograd.grad`. Callers in the same file count: those that turn autograd off, and those
    that call `backward()` on the result. If a caller that trains passes the result to unknown code,
    the finding has low confidence and no fix.

    In any code, training too, it also follows the results of models. It reports runs whose result
    only reaches the CPU, `detach()` or operations without a gradient: actions in an environment,
    samples that are saved, the generator in the step of its discriminator. A result that is
    returned, stored or passed to unknown code may be trained on, and is not reported. A run whose
    result nothing uses is reported if the file computes no gradient: it calibrates or warms up. It also
    reports target networks, averages and teachers that run on inputs without a gradient. These
    modules only copy the parameters of a trained module, or stay as they were loaded while others
    are trained. If only its name says that a model is a teacher or reference, confidence is low.

    ## Why is this bad
    Each operation then builds a graph node and keeps its inputs for a backward pass that never
    comes. Activations of the whole forward stay in memory until the output is dropped, and they add
    up if outputs are collected in a list. On an H200 a ResNet-50 at batch 1 takes 28% longer and a
    GPT-2 with one sequence 45%; with large, GPU-bound batches the time is the same and only the
    memory is lost.

    ## When it is fine
    - The evaluation needs gradients: adversarial examples, saliency, forces from energies.
    - A framework wraps the function: Lightning's `validation_step`, a Trainer's hooks.
    - All parameters are frozen, so nothing is recorded.
    - A gradient flows through a copy to its input, as in the loss of an actor.
    - The loss comes from a hook or an attribute of the model, not from the result of the run.
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
    Risky: nothing can be trained through the code any more. So the fix is offered only with a
    proof: no value that may have a gradient leaves the code as a result, in an attribute, in a
    container from elsewhere, in a closure or as an argument of unknown code, and unknown code does
    not get the model. Methods that a subclass of the project overrides, or that are only declared,
    count as unknown code. A file that registers forward hooks gets no fix, since a hook may keep the output
    of a layer. Then the fix decorates the function with `@torch.inference_mode()`, or with
    `@torch.no_grad()` if tensors leave it. A run in the middle of other code is put under
    `with torch.no_grad():` with its statement: a target network's parameters then get no gradient,
    which no optimizer reads. It gets none if the statements in front of it call `model.train()`, or if the
    result is printed as a whole, which shows its `grad_fn`. A loop inside a longer function gets no fix.
    Transformer layers in evaluation mode take a faster path without autograd, and round differently. There is no fix
    if a part of the model hooks or computes gradients, nor for a model of an unknown class in a project with such
    hooks. A model of an unknown class that computes gradients in its own `forward` fails.

    ## How a GPU shows it
    A trace watches the output of each call of a module. It confirms the finding if the graph is freed, or still
    there at the end, without a backward pass through it, and shows the memory that the call left allocated. It also
    confirms it if a backward pass came, but no input required a gradient and no optimizer read those of the module.
    The finding is refuted if any other backward pass came, if autograd was off, or if nothing required a gradient.
    What happens outside of the recorded steps counts as well, because evaluations have no steps of an optimizer.
    `torch.cuda.max_memory_allocated()` drops when the fix is applied.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation
    - https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    """

    code, name = "TPF501", "eval-without-no-grad"
    effect, severity = Effect.MEMORY, Severity.WARNING
    measured = ("eval-with-grad-resnet50-1", "eval-with-grad-resnet50-64")
    costs = "autograd makes inference of a ResNet-50 {0} slower at batch 1, and costs {1} at batch 64"
    listens = (FileSite,)

    def check(self, site: FileSite) -> Iterator[Finding]:
        if not _may_evaluate(site.model):
            return
        file = survey(site.model)
        lost = wasted(file)
        inside = _by_statement(site, lost)
        told: set[ast.AST] = set()
        for region in regions(file):
            run = _recorded(region)
            sure = confidence(region, run) if run is not None else None
            if run is None or sure is None:
                continue
            own = inside.get(region.node, [])
            sure = surest(_capped(region, run, sure), *(each.sure for each in own))
            told.update(each.call for each in own)
            yield self._evaluation(site, region, run, sure)
        for each in lost:
            # One finding for each statement, and for each function that does nothing else.
            what = each.scope.node if each.is_alone else statement_of(site.model, each.call) or each.call
            if each.call not in told and what not in told:
                told.add(what)
                yield self._waste(site, file, each)

    def _evaluation(self, site: FileSite, region: Region, run: Run, sure: Confidence) -> Finding:
        what = f"`{region.scope.name}`" if region.loop is None else "this loop"
        return self.finding(
            site,
            f"autograd records `{site.text(run.call.func)}(…)`, but {what} never calls backward(): "
            f"the graph keeps all activations in memory",
            confidence=sure,
            heat=region.heat,
            span=site.model.source.span(run.call),
            help=_advice(region, run),
            fix=None if _may_train(region, run) else decorate(region),
        )

    def _waste(self, site: FileSite, file: Survey, each: Wasted) -> Finding:
        name = site.text(each.call.func)
        if each.why is Why.UNTRAINED:
            why = "but no optimizer trains that model, and no gradient is seen to come in"
        elif each.why is Why.DROPPED:
            why = "but nothing uses the result"
        else:
            why = "but the result is only read or detached: no backward pass uses the graph"
        return self.finding(
            site,
            f"autograd records `{name}(…)`, {why}",
            confidence=each.sure,
            heat=site.model.heat(each.call),
            span=site.model.source.span(each.call),
            help="Call it under `with torch.no_grad():`.",
            fix=under_no_grad(file, each.scope, each.call, each.why is Why.UNTRAINED) if each.is_proven else None,
        )


def _may_evaluate(model: Model) -> bool:
    """True if a file may call a model without a backward pass, by its text."""
    if model.says(".eval()", ".train(False", ".detach()", ".item()", ".data.", ".from_pretrained("):
        return True
    if model.says("parameters()") and model.says("optim"):
        return True
    return defines(model, rule_conventions.names_evaluation, rule_conventions.names_generation) or loops_over_data(
        model, rule_conventions.names_evaluation
    )


def _by_statement(site: FileSite, lost: list[Wasted]) -> dict[ast.AST, list[Wasted]]:
    """The wasted runs inside each function and loop that holds any."""
    return grouped((outer, each) for each in lost for outer in site.model.ancestors(each.call))


def _recorded(region: Region) -> Run | None:
    """The surest run of a region that autograd records and that nothing is trained through; the first of several."""
    survey, scope = region.survey, region.scope
    flow, known = flows(survey).of(scope), modules(survey)
    left_by = Fate.GRADIENT
    if scope in _differentiated(survey):
        left_by |= Fate.RETURNED
    recorded = [
        run
        for run in region.runs
        if mode_before(scope, run) is not False
        and not known.is_frozen(known.holder(run.call, run.receiver))
        and not contexts(survey).suspended(scope, run.call)
        and not flow.fate(run.call) & left_by
        and not any(seen.asks or seen.suspends for seen in flows(survey).callees.classes(run.call.func))
        and (_evaluates(region, run) or not _may_train(region, run))
    ]
    return max(recorded, key=lambda run: run.surety, default=None)


def _may_train(region: Region, run: Run) -> bool:
    """True if the result of a run goes, through a caller that trains, to unknown code."""
    if region.scope not in _perhaps_differentiated(region.survey):
        return False
    return Fate.RETURNED in flows(region.survey).of(region.scope).fate(run.call)


def _evaluates(region: Region, run: Run) -> bool:
    """True if a region puts the model into evaluation mode, or is a loop of a function that is named for evaluation.

    `evaluate(state, action)` of an agent has the name, and no loop.
    """
    return mode_before(region.scope, run) is True or (region.is_named and region.loop_of(run) is not None)


def _is_validation(region: Region, run: Run) -> bool:
    """True if a function named for evaluation loops over data, and returns the model to training mode after that.

    The results of many batches in evaluation mode are scores: a trainer may report them, but does not train with them.
    """
    if not (region.is_named and region.switched and region.over_data):
        return False
    return any(mode.line > run.call.lineno and not mode.evaluating for mode in region.scope.modes_of(run.receiver))


def _capped(region: Region, run: Run, sure: Confidence) -> Confidence:
    """The confidence in a region, lower if code that is not seen may turn autograd off or train.

    A class of a framework may be called by code that turns autograd off. Training may use the results of a function
    that only its name calls an evaluation: `evaluate(state, action)` of an agent returns log-probabilities.
    """
    if _may_train(region, run):
        return Confidence.MEDIUM if _is_validation(region, run) else Confidence.LOW
    is_returned = Fate.RETURNED in flows(region.survey).of(region.scope).fate(run.call)
    if is_returned and region.loop is None and not region.switched:
        return Confidence.LOW
    if not region.is_foreign or is_called_in_training(region.survey, region.scope):
        return sure
    return Confidence.MEDIUM if sure is Confidence.HIGH and region.over_data else Confidence.LOW


def _advice(region: Region, run: Run) -> str:
    """The advice at the place of a region."""
    context = f"torch.{context_of(region)}()"
    if region.loop is not None:
        return f"Put this loop under `with {context}:`."
    if Fate.RETURNED in flows(region.survey).of(region.scope).fate(run.call):
        return f"Decorate `{region.scope.name}` with `@{context}`, unless a caller trains through its result."
    return f"Decorate `{region.scope.name}` with `@{context}`."


@once
def _differentiated(survey: Survey) -> set[Scope]:
    """The functions whose result reaches a backward pass in a caller."""
    return _returning(survey, {scope for scope, _, fate in _results(survey) if Fate.GRADIENT in fate})


@once
def _perhaps_differentiated(survey: Survey) -> set[Scope]:
    """The functions whose result goes to unknown code in a caller that trains: it may reach a backward pass there."""
    found = {
        scope
        for scope, caller, fate in _results(survey)
        if fate & _ELSEWHERE and caller.name and trains(survey, caller)
    }
    return _returning(survey, found)


@once
def _results(survey: Survey) -> list[tuple[Scope, Scope, Fate]]:
    """The functions that others of the file call, with the caller and the fate of the result there."""
    return [
        (scope, caller, flows(survey).of(caller).fate(call))
        for scope, calls in survey.callers.items()
        for caller, call in calls
    ]


def _returning(survey: Survey, found: set[Scope]) -> set[Scope]:
    """Some functions, and those whose results these return."""
    returned = grouped((caller, scope) for scope, caller, fate in _results(survey) if Fate.RETURNED in fate)
    return reached(found, lambda scope: returned.get(scope, ()))
