"""Evaluation of a model that is still in training mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.fixes.imports import beginnings
from perflint.rules._methods import in_tests
from perflint.rules.base import FileSite, Rule
from perflint.rules.evaluation._contexts import contexts
from perflint.rules.evaluation._layers import mode_matters, surely_differs
from perflint.rules.evaluation._modules import Holder, is_pretrained, modules
from perflint.rules.evaluation._regions import (
    Region,
    defines,
    is_foreign,
    is_other_code,
    loops_over_data,
    regions,
    trains,
)
from perflint.rules.evaluation._runs import Run, Surety
from perflint.rules.evaluation._scopes import Scope, Survey, assigned_to, reached, survey
from perflint.semantics.facts import rule_conventions
from perflint.semantics.heat.training import differentiates
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, names_in, path_of

_SET_ELSEWHERE = re.compile(
    r"\bfrom_pretrained\b|\bjit\.load\b|eval_mode|set_eval|\beval\b(?!\()|InferenceSession|\bpipeline\("
)
"""Names that show that unseen code may set the mode."""
_LEAVES_MODE = frozenset({"bfloat16", "cpu", "cuda", "double", "float", "half", "load_state_dict", "parameters", "to"})
_PRETRAINED = re.compile(r"\bpretrained\s*=\s*True|\bweights\s*=\s*[^N\s]")


class MissingEvalMode(Rule):
    """A model is evaluated in training mode.

    ## What it does
    Looks for functions with a name that says evaluation, and loops over held-out data, that run a
    model without a call of `eval()` or `train(False)` on it in the function, around it, in its
    class or in its callers of the same file. Also reports models that a file runs after it loaded
    their weights, or created them with weights by torchvision or timm, if the file neither trains
    nor switches a mode. These findings have low confidence if the class is unknown, because many of
    those models behave the same in both modes.

    ## Why is this bad
    The results are wrong: dropout keeps dropping, and batch normalisation normalises with the
    statistics of the batch and updates its running averages from held-out data. It also costs time:
    those updates and the dropout kernels run, and `nn.TransformerEncoder` and
    `nn.MultiheadAttention` have a fast path that needs evaluation mode. It is a warning because
    results are wrong, whatever it costs.

    ## When it is fine
    - Dropout is sampled on purpose (Monte Carlo dropout).
    - A caller in another file sets the mode: a function that other files of the project import, and that
      no function of its own file calls, is reported with low confidence.
    - The model has no layer that the mode changes.

    ## Bad
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 8))


    def train(loader, optimizer):
        for x, y in loader:
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()


    @torch.inference_mode()
    def validate(loader):
        correct = 0
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum()
        return correct.item()
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 8))


    def train(loader, optimizer):
        model.train()
        for x, y in loader:
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()


    @torch.inference_mode()
    def validate(loader):
        model.eval()
        correct = 0
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum()
        return correct.item()
    ```

    ## Fix safety
    No fix: only the author can say where the mode should be set, and set back with `train()`.

    ## How a GPU shows it
    Kernels of dropout and of batch normalisation's training path run during the evaluation, and
    `num_batches_tracked` grows. A trace reads the mode of dropout, batch normalisation and torch's other layers that
    the mode changes at each call of a model. It confirms the finding if one of them was in training mode and no
    backward pass followed. It refutes it if all were in evaluation mode, or if there are none.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html
    """

    code, name = "TPF503", "missing-eval-mode"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (FileSite,)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if not (
            defines(model, rule_conventions.names_evaluation)
            or loops_over_data(model, rule_conventions.names_evaluation)
            or _loads(model)
        ):
            return
        file = survey(site.model)
        told: set[ast.Call] = set()
        for region in regions(file):
            sure = _confidence(region)
            shown = (run for run in region.runs if run.surety is not Surety.PASSED and mode_matters(file, run))
            run = next(shown, None)
            if sure is None or run is None:
                continue
            told.add(run.call)
            yield self._finding(site, run.call, run.receiver, sure, region.heat)
        for call in _runs_of_loaded(file, told):
            heat, name = site.model.heat(call), file.module(call.func)
            # Many models of unknown classes are the same in both modes.
            known = name in _pretrained(file) or surely_differs(file.model, call)
            sure = Confidence.MEDIUM if known else Confidence.LOW
            yield self._finding(site, call, name, sure, Heat.WARM if heat is Heat.COLD else heat)

    def _finding(self, site: FileSite, call: ast.Call, receiver: str, sure: Confidence, heat: Heat) -> Finding:
        name = site.text(call.func)
        return self.finding(
            site,
            f"`{name}` is evaluated in training mode: dropout is active, and batch normalisation updates its "
            "statistics with this data",
            confidence=sure,
            heat=heat,
            span=site.model.source.span(call),
            help=f"Call `{receiver or name}.eval()` before, and `.train()` before training continues.",
        )


def _confidence(region: Region) -> Confidence | None:
    file, scope = region.survey, region.scope
    named = region.loop is not None or region.is_named
    looped = region.loop is not None or any(region.loop_of(run) for run in region.runs)
    if not named or not looped or _is_switched(region) or _samples_on_purpose(scope):
        return None
    if not any(mode_matters(file, run) for run in region.runs):
        return None
    # Of eight findings where the mode may be set elsewhere, none was true: they are not worth an auditor's time.
    if region.is_foreign or _is_set_elsewhere(file) or _switches(file).may_switch(region):
        return None
    if not _some_function_trains(file) and scope not in file.callers:
        # No code of the file can have set the mode; by custom, a loop that evaluates sets it itself.
        customary = not scope.name or (scope.klass is None and region.over_data and region.reduces)
        if customary and _is_imported(file, scope):
            return Confidence.LOW
        return Confidence.MEDIUM if customary else None
    if not _some_function_trains(file) and _is_imported(file, scope):
        # The program that trains calls it from another file.
        return Confidence.LOW
    surest = max(run.surety for run in region.runs)
    return Confidence.HIGH if surest is Surety.PROVEN and region.over_data else Confidence.MEDIUM


@once
def _is_set_elsewhere(file: Survey) -> bool:
    return file.model.matches(_SET_ELSEWHERE)


@once
def _some_function_trains(file: Survey) -> bool:
    return any(differentiates(file.model, other.node) for other in file.scopes[1:])


def _is_imported(file: Survey, scope: Scope) -> bool:
    """True if another file of the project uses a function: it may switch the model before."""
    return bool(scope.name) and bool(file.model.view.importers(file.model.module.name, scope.name))


class _Switches:
    """The modules that a file switches to evaluation, or to a mode that a variable decides."""

    def __init__(self, file: Survey) -> None:
        self._modules = modules(file)
        self._made: set[Holder] = set()
        self._are_all_made = True
        for scope in file.scopes:
            for mode in scope.modes:
                if mode.evaluating is not False:
                    switched = self._modules.holder(scope.node.body[0], mode.receiver)
                    self._made.add(switched)
                    self._are_all_made = self._are_all_made and self._modules.is_made(switched)

    def may_switch(self, region: Region) -> bool:
        """True if one of them may be a model that is run, or hold it, as far as names show."""
        if not self._made:
            return False
        ran = [self._modules.holder(run.call, run.receiver) for run in region.runs if run.surety is not Surety.PASSED]
        if not ran or not self._are_all_made or not all(map(self._modules.is_made, ran)):
            return True
        paths = {switched.path for switched in self._made}
        return any(part in paths for each in ran for part in beginnings(each.path))


@once
def _switches(file: Survey) -> _Switches:
    return _Switches(file)


def _is_switched(region: Region) -> bool:
    """True if a switch may concern the runs: in reach of the function, or in a caller of it."""
    file = region.survey
    switched = file.switched(region.scope)
    if any(run.receiver in each.perhaps_to_evaluation for run in region.runs for each in switched):
        return True
    if region.scope in _reached_by_switches(file):
        return True
    return any(contexts(file).evaluates(run.call) for run in region.runs)


@once
def _reached_by_switches(file: Survey) -> set[Scope]:
    """The functions with a switch to evaluation, and those that such functions call, directly or by others."""
    switching = {scope for scope in file.scopes if any(mode.evaluating is not False for mode in scope.modes)}
    inside = (scope for scope in file.scopes if not switching.isdisjoint(scope.chain))
    return reached(inside, lambda scope: file.callees.get(scope, ()))


def _loads(model: Model) -> bool:
    """True if a file may load the weights of a model; cheap, for a first look."""
    return model.says("load_state_dict(", "torch.load(") or model.matches(_PRETRAINED)


def _runs_of_loaded(file: Survey, told: set[ast.Call]) -> Iterator[ast.Call]:
    """The first call of each model whose weights a file loads, where nothing in it trains or switches a mode.

    A model of which a call is reported already is left out.
    """
    model = file.model
    if not _loads(model) or in_tests(file.model):
        return
    switches = model.matches(_SET_ELSEWHERE) or model.says(".eval()", ".train(")
    if switches or differentiates(file.model, file.model.source.tree):
        yield from (call for call in _runs_of_local(file) if call not in told)
        return
    loaded = _loaded(file) - {file.module(call.func) for call in told}
    for scope in file.scopes:
        if is_other_code(file, scope) or _samples_on_purpose(scope) or file.is_module_class(scope.klass):
            continue
        if scope.name and trains(file, scope):
            continue
        for call in scope.calls:
            run = Run(call, file.module(call.func), Surety.PROVEN)
            if run.receiver in loaded and mode_matters(file, run):
                loaded -= {run.receiver}
                yield call


def _runs_of_local(file: Survey) -> Iterator[ast.Call]:
    """The first run of each model that a function creates, loads and runs itself, and passes to no other code."""
    known = modules(file)
    for scope in file.scopes[1:]:
        if is_other_code(file, scope) or _samples_on_purpose(scope) or trains(file, scope):
            continue
        for name in sorted(_loaded_in(scope)):
            uses = known.uses(known.holder(scope.node.body[0], name))
            run = next((call for call in scope.calls if path_of(call.func) == name), None)
            made = any(isinstance(use, ast.Name) and isinstance(use.ctx, ast.Store) for use in uses)
            if run is None or not made or not all(_stays_here(file, use) for use in uses):
                continue
            if mode_matters(file, Run(run, name, Surety.PROVEN)):
                yield run


def _loaded_in(scope: Scope) -> set[str]:
    """The plain names that get weights in a function."""
    found = {
        path_of(call.func.value)
        for call in scope.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"
    }
    return {name for name in found if name.isidentifier()}


def _stays_here(file: Survey, use: ast.expr) -> bool:
    """True if a use of a local model makes it by its class, moves it, loads it or runs it."""
    around = file.model.parent(use)
    if isinstance(around, ast.Attribute):
        return around.attr in _LEAVES_MODE
    if isinstance(around, ast.Assign) and use in around.targets:
        made = around.value
        while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in _LEAVES_MODE:
            made = made.func.value
        return isinstance(made, ast.Name) or (isinstance(made, ast.Call) and last_name(made)[:1].isupper())
    return isinstance(around, ast.Call) and (around.func is use or last_name(around) in ("print", "_export", "export"))


def _loaded(file: Survey) -> frozenset[str]:
    """The names of models with loaded weights: by `load_state_dict`, as whole objects, or from a factory with weights.

    A class that restores its own state, or has a base that is not seen, leaves the mode to others.
    """
    found: set[str] = set()
    for call in file.model.nodes(ast.Call):
        scope = file.scope_around(call)
        if last_name(call) == "load_state_dict" and isinstance(call.func, ast.Attribute):
            if not is_foreign(file, scope) and not _is_given(scope, call):
                found.add(path_of(call.func.value))
        elif file.model.target(call) == "torch.load":
            around = file.model.parent(call)
            found.update(map(path_of, around.targets) if isinstance(around, ast.Assign) else ())
    return frozenset(found | _pretrained(file)) - {"", "self"}


@once
def _pretrained(file: Survey) -> frozenset[str]:
    """The names of models that torchvision or timm make with weights: all of them drop or normalise."""
    found: set[str] = set()
    for call in file.model.nodes(ast.Call):
        if is_pretrained(file, call) and not is_foreign(file, file.scope_around(call)):
            found.update(assigned_to(file.model, call))
    return frozenset(found)


def _is_given(scope: Scope, call: ast.Call) -> bool:
    """True if the weights come from the caller of a method, which restores the state of an object that others use."""
    if scope.klass is None or isinstance(scope.node, ast.Module):
        return False
    given = {argument.arg for argument in scope.node.args.args}
    return any(names_in(argument) & given - {"self"} for argument in call.args)


def _samples_on_purpose(scope: Scope) -> bool:
    """True if the name of a function says that it samples with dropout: Monte Carlo dropout, ensembles."""
    return any(rule_conventions.samples_dropout(around.name) for around in scope.chain)
