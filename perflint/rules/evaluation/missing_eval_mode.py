"""Evaluation of a model that is still in training mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules.base import Rule
from perflint.rules.evaluation._contexts import in_context_that_evaluates
from perflint.rules.evaluation._loops import (
    EVALUATING_WORDS,
    Region,
    defines,
    is_other_code,
    loops_over_data,
    regions,
    wants_gradient,
)
from perflint.rules.evaluation._runs import Run, Surety, modes
from perflint.rules.evaluation._scopes import Scope, Survey, dotted, last_name, survey, words
from perflint.semantics.project import Module
from perflint.semantics.sites import FileSite
from perflint.semantics.structure import walk
from perflint.semantics.values import Const, Instance, Sequence, Value
from perflint.source.concrete import cst

_SET_ELSEWHERE = re.compile(
    r"\bfrom_pretrained\b|\bjit\.load\b|eval_mode|set_eval|\beval\b(?!\()|InferenceSession|\bpipeline\("
)
_SAMPLED = frozenset({"bayes", "bayesian", "dropout", "ensemble", "mc", "montecarlo", "stochastic", "uncertainty"})
_MODAL = re.compile(r"Dropout|BatchNorm|Transformer|RReLU")
_MODAL_FUNCTION = re.compile(r"(?:F|(?:torch\.)?nn\.functional|torch)\.(?:\w*dropout\w*|rrelu\w*|batch_norm)")
_DROPS_IF_ASKED = re.compile(r"(?:LSTM|GRU|RNN|MultiheadAttention)$")
"""Layers whose dropout is off by default."""
_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict"})


class MissingEvalMode(Rule):
    """A model is evaluated in training mode.

    ## What it does
    Looks for functions named for evaluation, and loops over held-out data, that run a model
    although nothing in the function, around it, in its class or in its callers of the same
    file calls `eval()` or `train(False)` on it. Also models whose weights a file loads and which
    it runs, while nothing in it trains and nothing switches a mode.

    ## Why is this bad
    First of all the results are wrong: dropout keeps dropping, and batch normalisation
    normalises with the statistics of the batch and updates its running averages from held-out
    data. It also costs time: those updates and the dropout kernels run, and
    `nn.TransformerEncoder` and `nn.MultiheadAttention` have a fast path that needs evaluation
    mode. It is a warning because results are wrong, whatever it costs.

    ## When it is fine
    - Dropout is sampled on purpose (Monte Carlo dropout).
    - A caller in another file sets the mode.
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
    No fix: where the mode is to be set, and set back with `train()`, is the author's to say.

    ## How a GPU shows it
    Kernels of dropout and of batch normalisation's training path run in the evaluation, and
    `num_batches_tracked` grows.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html
    """

    code, name = "TPF503", "missing-eval-mode"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (FileSite,)

    def nominate(self, site: FileSite) -> bool:
        text = site.model.source.text
        return defines(text, EVALUATING_WORDS) or loops_over_data(text, EVALUATING_WORDS) or _loads(text)

    def check(self, node: cst.CSTNode, site: FileSite) -> Iterator[Finding]:
        file = survey(site.model)
        for region in regions(file):
            sure = _confidence(region)
            shown = (run for run in region.runs if run.surety is not Surety.PASSED and _mode_matters(file, run))
            run = next(shown, None)
            if sure is None or run is None:
                continue
            yield self._finding(site, run.call, run.receiver, sure, region.heat)
        for call in _runs_of_loaded(file):
            heat = site.model.heat(call)
            yield self._finding(
                site, call, dotted(call.func), Confidence.MEDIUM, Heat.WARM if heat is Heat.COLD else heat
            )

    def _finding(self, site: FileSite, call: ast.Call, receiver: str, sure: Confidence, heat: Heat) -> Finding:
        name = site.text(call.func)
        return self.finding(
            site,
            f"`{name}` is evaluated in training mode: dropout drops and batch normalisation learns from this data",
            confidence=sure,
            heat=heat,
            span=site.model.source.span(call),
            help=f"call `{receiver or name}.eval()` before, and `.train()` when training goes on",
        )


def _loads(text: str) -> bool:
    return "load_state_dict(" in text or "torch.load(" in text


def _runs_of_loaded(file: Survey) -> Iterator[ast.Call]:
    """The first call of each model whose weights a file loads, where nothing in it trains or switches a mode."""
    text = file.model.source.text
    if not _loads(text) or _SET_ELSEWHERE.search(text) or ".eval()" in text or ".train(" in text:
        return
    if in_tests(file.model) or wants_gradient(file, file.model.source.tree):
        return
    loaded = _loaded(file)
    for scope in file.scopes:
        if is_other_code(file, scope) or _samples_on_purpose(scope):
            continue
        for call in scope.calls:
            run = Run(call, dotted(call.func), Surety.PROVEN)
            if run.receiver in loaded and _mode_matters(file, run):
                loaded = loaded - {run.receiver}
                yield call


def _loaded(file: Survey) -> frozenset[str]:
    """The names of what gets weights: by `load_state_dict`, or as a whole by `torch.load`."""
    found: set[str] = set()
    for call in file.all(ast.Call):
        around = file.model.parent(call)
        if last_name(call) == "load_state_dict" and isinstance(call.func, ast.Attribute):
            found.add(dotted(call.func.value))
        elif file.model.target(call) == "torch.load" and isinstance(around, ast.Assign):
            found.update(map(dotted, around.targets))
    return frozenset(found - {"", "self"})


def _confidence(region: Region) -> Confidence | None:
    file, scope = region.survey, region.scope
    named = region.loop is not None or region.is_named
    looped = region.loop is not None or any(region.loop_of(run) for run in region.runs)
    if not named or not looped or _is_switched(region) or _samples_on_purpose(scope):
        return None
    if not any(_mode_matters(file, run) for run in region.runs):
        return None
    # Of eight findings where the mode may be set elsewhere, none was true: they are not worth an auditor's time.
    if region.is_foreign or _SET_ELSEWHERE.search(file.model.source.text):
        return None
    if any(mode.evaluating is not False for other in file.scopes for mode in other.modes):
        return None
    if not any(wants_gradient(file, other.node) for other in file.scopes[1:]) and scope not in file.callers:
        # Nobody in the file can have set the mode; by custom, a loop that evaluates sets it itself.
        customary = not scope.name or (scope.klass is None and region.over_data and region.reduces)
        return Confidence.MEDIUM if customary else None
    surest = max(run.surety for run in region.runs)
    return Confidence.HIGH if surest is Surety.PROVEN and region.over_data else Confidence.MEDIUM


def _is_switched(region: Region) -> bool:
    """Whether a switch may concern the runs: in reach of the function, or in a caller of it."""
    receivers = {run.receiver for run in region.runs}
    if any(mode.evaluating is not False and mode.receiver in receivers for mode in modes(region.survey, region.scope)):
        return True
    if any(mode.evaluating is not False for mode in region.scope.modes):
        return True
    if any(in_context_that_evaluates(region.survey, run.call) for run in region.runs):
        return True
    return _callers_switch(region.survey, region.scope, 4)


def _callers_switch(file: Survey, scope: Scope, depth: int) -> bool:
    for caller, _ in file.callers.get(scope, ()) if depth else ():
        if any(mode.evaluating is not False for around in caller.chain for mode in around.modes):
            return True
        if caller is not scope and _callers_switch(file, caller, depth - 1):
            return True
    return False


def _samples_on_purpose(scope: Scope) -> bool:
    return any(_SAMPLED.intersection(words(around.name)) for around in scope.chain)


def _mode_matters(file: Survey, run: Run) -> bool:
    """Whether the mode may change what a model does: not where its class is seen to lack such layers."""
    made = [member for member in file.model.value(run.call.func).members if isinstance(member, Instance)]
    return not made or any(_is_changed_by_mode(file, instance) for instance in made)


def _is_changed_by_mode(file: Survey, instance: Instance, depth: int = 4) -> bool:
    """Whether a module is a layer that the mode changes, or may hold one."""
    if not instance.cls.startswith("torch.nn."):
        found = _class(file, instance.cls)
        return found is None or _holds_modal_layer(*found)
    if instance.cls.rpartition(".")[2] in _CONTAINERS:
        if not depth or instance.arguments is None:
            return True
        parts = [part for _, value in instance.arguments for part in _parts(value)]
        return any(not isinstance(part, Instance) or _is_changed_by_mode(file, part, depth - 1) for part in parts)
    if _DROPS_IF_ASKED.search(instance.cls):
        rate = instance.argument("dropout")
        return instance.arguments is None or (rate is not None and rate not in (Const(0), Const(0.0)))
    return _MODAL.search(instance.cls) is not None


def _parts(value: Value) -> tuple[Value, ...]:
    """What a container is made of: modules, or a list of them."""
    if isinstance(value, Sequence):
        return value.items if value.items is not None else (value.element,)
    return value.members


def _class(file: Survey, name: str) -> tuple[Module, ast.ClassDef] | None:
    """A class of the project by its full name, and the module that it is in."""
    module, _, qualname = name.rpartition(".")
    home = file.model.project.loaded(module)
    info = home.klass(qualname) if home is not None else None
    return None if home is None or info is None else (home, info.node)


def _holds_modal_layer(home: Module, node: ast.ClassDef, depth: int = 4) -> bool:
    """Whether a module class holds layers that the mode changes, or parts that are not torch's own."""
    for inner in walk(node):
        if isinstance(inner, ast.Attribute) and (inner.attr == "training" or _MODAL_FUNCTION.fullmatch(dotted(inner))):
            return True
        if isinstance(inner, ast.Call) and last_name(inner)[:1].isupper():
            name = dotted(inner.func)
            if name.startswith(("nn.", "torch.nn.")):
                if _DROPS_IF_ASKED.search(name):
                    if any(keyword.arg in ("dropout", None) for keyword in inner.keywords):
                        return True
                elif _MODAL.search(name):
                    return True
                continue
            part = home.klass(name) if name and depth else None
            if part is None or _holds_modal_layer(home, part.node, depth - 1):
                return True
    return False
