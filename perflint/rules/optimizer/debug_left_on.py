"""TPF606: debugging of autograd that stayed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.rules._guards import is_guarded
from perflint.rules._methods import in_tests, is_true
from perflint.rules._operators import operators
from perflint.rules._statements import removal
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.rules.worth import sentence
from perflint.semantics.around import loops_around
from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import rule_conventions
from perflint.semantics.structure import calls_in, keyword, last_name, walk
from perflint.semantics.values import NONE, Const

_SWITCHES = ("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly")
_CONTEXTS = ("torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly")
_GRADCHECKS = operators("checks", "gradients")
_RANGES = tuple(f"torch.autograd.profiler.{name}" for name in ("emit_nvtx", "emit_itt"))
_PROFILES = ("torch.profiler.profile", "torch.profiler.profiler.profile", "torch.autograd.profiler.profile")
_UNMEASURED = frozenset((*_GRADCHECKS, *_RANGES, *_PROFILES))
"""Debugging whose cost has not been measured."""


class DebugLeftOn(Rule):
    """Anomaly detection or other debugging of autograd is always on.

    ## What it does
    Finds `torch.autograd.set_detect_anomaly(True)` and `torch.autograd.detect_anomaly()` that no flag
    guards, `gradcheck` in code that runs each step, and `emit_nvtx()` around it. Finds profilers without a `schedule`
    around all steps of a training.

    ## Why is this bad
    Anomaly detection stores a Python stack for every operation of the forward pass. In the backward
    pass it checks the result of each operation for a NaN, which makes the CPU wait for the GPU each
    time. It made training of a 124 M parameter GPT 4.5 times slower on an H200; users found the
    switch in code that they had inherited. `gradcheck` runs the function twice for each number of
    its inputs. `emit_nvtx` records an event for each operation, and so does a profiler, which keeps them all in memory.

    ## When it is fine
    - A flag of the command line or of a configuration turns it on, or a function for debugging does.
    - Tests, and a current search for a NaN.
    - Profilers of a few steps: with a schedule, or around a loop that ends by `break`. Not reported.
    - `check_nan=False` keeps the stacks, but does not wait.

    ## Bad
    ```python
    import torch

    torch.autograd.set_detect_anomaly(True)
    ```

    ## Good
    ```python
    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--detect-anomaly", action="store_true")
    torch.autograd.set_detect_anomaly(parser.parse_args().detect_anomaly)
    ```

    ## Fix safety
    Unsafe: the fix removes the statement. A NaN in the backward pass no longer raises an error.

    ## How a GPU shows it
    A trace counts the backward passes that ran under anomaly detection, by the place that switched it on, and times
    them. Such passes confirm the finding; it is refuted if all passes ran without.

    A profile shows `aten::isnan`, `aten::any` and `aten::item` with a `cudaStreamSynchronize` after each
    backward operation; `torch.cuda.set_sync_debug_mode("warn")` warns in `loss.backward()`.

    ## References
    - [Anomaly detection](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection)
    - [Performance tuning guide: disable debugging APIs](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Lightning warns of it too](https://github.com/Lightning-AI/pytorch-lightning/pull/17380)
    """

    code, name = "TPF606", "debug-left-on"
    effect, severity = Effect.SYNC, Severity.ERROR
    measured = ("detect-anomaly-step-gpt",)
    costs = None
    listens = (Calls(*_SWITCHES, *_CONTEXTS, *_GRADCHECKS, *_RANGES, *_PROFILES),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not _is_left_on(site):
            return
        yield self.finding(
            site,
            f"{shown(site)} {_what(site)}",
            severity=Severity.INFO if site.target in _UNMEASURED else None,
            confidence=_confidence(site),
            # It is said once, and holds for every step.
            heat=Heat.HOT,
            help="Record a few steps: pass a `schedule`, and call `step()` of the profiler after each one."
            if site.target in _PROFILES
            else "Turn it on with a flag, only while you look for the fault.",
            fix=_fix(site),
            cost=None
            if site.target in _UNMEASURED
            else sentence("anomaly detection makes GPT-2 training {0} slower", *self.measured),
        )


def _is_left_on(site: CallSite) -> bool:
    """True if a check runs in each step, or a switch is on whatever the settings are."""
    if site.target in _GRADCHECKS:
        return site.heat is Heat.HOT
    if site.target in _PROFILES and not _records_training(site):
        return False
    return _is_on(site) and not is_guarded(site.model, site.node) and not _turns_it_on(site)


def _records_training(site: CallSite) -> bool:
    """True if a profiler records each iteration of a loop that trains."""
    around = next((each for each in site.model.ancestors(site.node) if isinstance(each, ast.With)), None)
    if around is None or keyword(site.node, "schedule") is not None or site.has_unpacking:
        return False
    if not any(last_name(call) == "backward" and site.model.heat(call) is Heat.HOT for call in calls_in(*around.body)):
        return False
    loops = [*loops_around(site.model, site.node), *(part for part in walk(around) if isinstance(part, LOOPS))]
    return not any(isinstance(part, ast.Break) for loop in loops for part in walk(loop))


def _turns_it_on(site: CallSite) -> bool:
    """True in a function that is named for debugging: its callers ask for it."""
    functions = (outer for outer in site.model.ancestors(site.node) if isinstance(outer, ast.FunctionDef))
    return any(rule_conventions.tries_out(outer.name) for outer in functions)


def _what(site: CallSite) -> str:
    if site.target in _GRADCHECKS:
        return "checks gradients by finite differences (runs every step)"
    if site.target in (*_RANGES, *_PROFILES):
        return "records an event for every operation of every step"
    return "keeps a stack for every operation, and the CPU waits after each backward one to look for NaN"


def _is_on(site: CallSite) -> bool:
    if site.target in _SWITCHES:
        return is_true(site.argument("mode", 0)) and site.argument("check_nan", 1) is None
    if site.target in _CONTEXTS:
        given = site.argument("check_nan", 0)
        return given is None or site.value(given) == Const(True)
    given = None if site.target.startswith("torch.profiler.") else site.argument("enabled", 0)
    return given is None or site.value(given) in (Const(True), NONE)


def _confidence(site: CallSite) -> Confidence:
    if in_tests(site.model):
        return Confidence.LOW
    return Confidence.MEDIUM if site.target in (*_RANGES, *_PROFILES) else Confidence.HIGH


def _fix(site: CallSite) -> Fix | None:
    statement = site.model.parent(site.node)
    if site.target not in _SWITCHES or not isinstance(statement, ast.Expr):
        return None
    edit = removal(site.model, statement)
    return None if edit is None else Fix("Remove the call", Safety.UNSAFE, (edit,))
