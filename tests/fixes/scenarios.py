"""Code that runs before and after fixes, and what is equal and what is not.

Beside a rule's fixture, `NAME.run.py` is what its safe fixes must keep, and `NAME.change.py` what its
unsafe and risky ones change and what they keep. Both hold functions `case_…` without parameters, which are run
as they are and as the fixes leave them. Functions `kept_…` look alike, but no fix may touch them.

A case of a safe fix returns tensors (compared with their gradients, strides and devices), modules
(with their state and gradients), optimizers, numbers, and containers of these. All of it stays the
same, bit for bit; so do what is printed, the error that is raised and how many random numbers are drawn.

A case of an unsafe or risky fix returns a dictionary. `change_…` of the same name quotes in its docstring the
words of the page's section "Fix safety" that it shows, with … between quotations. Its parameters name the
entries that differ, and each gets the pair of values before and after; every other entry stays the same,
bit for bit. A case without `change_…` shows where nothing does. Entries that each case has: `printed`;
`error`, None or its type and text, beside which the others do not count; `random`, the state of the
generator of random numbers in the end; `waits`, how often the host would have waited for the simulated
GPU, which may become less, and never more.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from perflint.findings import WRITABLE, Finding, Safety
from perflint.fixes.apply import apply_fixes
from perflint.tracer import syncs
from tests.rules.harness import Case, lint, sections, source_cases

SAFE = (Safety.SAFE,)
ALL = WRITABLE
RAISED = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a case may raise, which is part of what it does."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One function that is run before and after."""

    case: Case
    name: str
    safe: bool
    """True if only safe fixes are applied."""

    def __str__(self) -> str:
        return f"{self.case}-{self.name.removeprefix('case_')}{'' if self.safe else '-changes'}"

    @property
    def path(self) -> Path:
        """The file."""
        return runs(self.case) if self.safe else changes(self.case)


def runs(case: Case) -> Path:
    """What safe fixes must keep."""
    return case.fixture.with_suffix(".run.py")


def changes(case: Case) -> Path:
    """What unsafe and risky fixes change."""
    return case.fixture.with_suffix(".change.py")


def scenarios(safe: bool) -> list[Scenario]:
    """Those of all rules."""
    return [
        Scenario(case, name, safe)
        for case in source_cases()
        for path in [runs(case) if safe else changes(case)]
        if path.exists()
        for name in functions(path.read_text(encoding="utf-8"))
    ]


def functions(text: str, prefix: str = "case_") -> dict[str, str]:
    """The functions of a file whose names start alike, each as the text of its tree."""
    return {
        node.name: ast.dump(node)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith(prefix)
    }


@cache
def fixed(case: Case, text: str, safeties: tuple[Safety, ...]) -> str:
    """A text after the fixes of a rule."""

    def relint(now: str) -> list[Finding]:
        return lint(now, [case.rule], "audit")

    return apply_fixes(text, relint(text), relint, safeties).text


def needs_plain_cpu(path: Path) -> bool:
    """True if a file says that what it does cannot be simulated."""
    return "ON_A_GPU = False" in path.read_text(encoding="utf-8").splitlines()


@dataclass(slots=True)
class Done:
    """What a case did."""

    values: dict[str, Any]
    leaves: dict[str, object]


def verdict(scenario: Scenario) -> str:
    """What is wrong with a scenario; empty where it is as it says. Needs torch."""
    before = scenario.path.read_text(encoding="utf-8")
    after = fixed(scenario.case, before, SAFE if scenario.safe else ALL)
    if wrong := _untouched(scenario, before, after):
        return wrong
    first, again, second = (_run(scenario, text) for text in (before, before, after))
    if _differences(first.leaves, again.leaves):
        return f"it is not the same twice by itself: {sorted(_differences(first.leaves, again.leaves))}"
    return _compared(scenario, first, second)


def _compared(scenario: Scenario, first: Done, second: Done) -> str:
    """What is wrong with how two runs differ."""
    change = None if scenario.safe else _change(scenario)
    said = set() if change is None else set(inspect.signature(change).parameters)
    differ = {key.partition(".")[0].partition("[")[0] for key in _differences(first.leaves, second.leaves)}
    if first.values["error"] != second.values["error"]:
        differ &= {"error", "printed"}
    waits, later = first.values["waits"], second.values["waits"]
    if (later > waits and not second.values["error"]) or ("waits" in said and later != waits):
        differ.add("waits")
    if differ != said:
        return _told(first, second, f"these differ: {sorted(differ)}; these were said to: {sorted(said)}")
    return "" if change is None else _misquoted(scenario, change) or _misjudged(change, first, second)


def _untouched(scenario: Scenario, before: str, after: str) -> str:
    """Why the fixes have nothing to do with a scenario; empty where they have."""
    name = scenario.name
    if not scenario.safe:
        return "no unsafe or risky fix applies" if fixed(scenario.case, before, SAFE) == after else ""
    return "the safe fixes leave it as it is" if functions(before)[name] == functions(after)[name] else ""


def _differences(one: dict[str, object], other: dict[str, object]) -> set[str]:
    return {key for key in one.keys() | other.keys() if one.get(key, ...) != other.get(key, ...)}


def _told(first: Done, second: Done, message: str) -> str:
    lines = [
        f"{key}: {first.leaves.get(key)!r} became {second.leaves.get(key)!r}"[:400]
        for key in sorted(_differences(first.leaves, second.leaves))
    ]
    return "\n".join([message, *lines])


def _run(scenario: Scenario, text: str) -> Done:
    """What a case of a text does."""
    import torch

    waits: list[str] = []
    end = syncs.listen(lambda kind, frame: waits.append(kind))
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as printed:
            # What is deprecated warns; that is why it is fixed.
            warnings.simplefilter("ignore")
            namespace: dict[str, Any] = {"__name__": "scenario"}
            exec(_compiled(text, scenario.path), namespace)
            seed()
            waits.clear()
            values = _values(namespace[scenario.name])
            count = len(waits)
    finally:
        end()
    compared = values | {"printed": printed.getvalue(), "random": torch.get_rng_state()}
    found = {path: part for name, value in compared.items() for path, part in leaves(name, value)}
    return Done(compared | {"waits": count}, found)


@cache
def _compiled(text: str, path: Path) -> CodeType:
    """The code of a file, which holds many scenarios."""
    return compile(text, str(path), "exec")


def seed() -> None:
    """Seed all generators. `torch.manual_seed` also formats a stack for each kind of device that is missing."""
    import torch

    for generator in (torch.default_generator, *torch.cuda.default_generators):
        generator.manual_seed(0)


def _values(function: Callable[[], object]) -> dict[str, object]:
    try:
        value = function()
    except RAISED as error:
        return {"error": f"{type(error).__name__}: {error}"}
    named = value if isinstance(value, dict) else {"result": value}
    return {**named, "error": None}


def _change(scenario: Scenario) -> Callable[..., None] | None:
    """What says how a case differs."""
    namespace: dict[str, Any] = {"__name__": "scenario"}
    exec(_compiled(scenario.path.read_text(encoding="utf-8"), scenario.path), namespace)
    return namespace.get("change_" + scenario.name.removeprefix("case_"))


def _misquoted(scenario: Scenario, change: Callable[..., None]) -> str:
    page = " ".join(sections(scenario.case.rule)["Fix safety"].split())
    quoted = [part.strip() for part in " ".join((change.__doc__ or "").split()).split("…")]
    missing = [part for part in quoted if not part or part not in page]
    return f"the page's section Fix safety does not say {missing}" if missing else ""


def _misjudged(change: Callable[..., None], first: Done, second: Done) -> str:
    pairs = {name: (first.values.get(name), second.values.get(name)) for name in inspect.signature(change).parameters}
    try:
        change(**pairs)
    except RAISED as error:
        inner = error.__traceback__.tb_next if error.__traceback__ else None
        line = inner.tb_lineno if inner else 0
        return f"line {line}: {type(error).__name__}: {error}\n" + "\n".join(f"{k}: {v!r}" for k, v in pairs.items())
    return ""


def leaves(path: str, value: object) -> Iterator[tuple[str, object]]:
    """The parts of a value by path, down to bytes."""
    import torch

    if isinstance(value, torch.Tensor):
        yield path, (value.dtype, value.shape, value.stride(), value.device.type, value.requires_grad, value.is_leaf)
        yield f"{path}.bytes", value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        yield from leaves(f"{path}.grad", value.grad if value.is_leaf else None)
    elif isinstance(value, torch.nn.Module):
        yield path, (type(value).__name__, value.training)
        yield from leaves(f"{path}.state", value.state_dict())
        yield from leaves(f"{path}.grads", {name: parameter.grad for name, parameter in value.named_parameters()})
    elif isinstance(value, torch.optim.Optimizer):
        yield from leaves(f"{path}.state", value.state_dict())
    elif isinstance(value, dict):
        yield f"{path}.keys", (type(value).__name__, list(value))
        for key, item in value.items():
            yield from leaves(f"{path}[{key!r}]", item)
    elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        yield f"{path}.length", (type(value).__name__, len(value))
        for index, item in enumerate(value):
            yield from leaves(f"{path}[{index}]", item)
    else:
        assert isinstance(value, (bool, int, float, complex, str, type(None), torch.dtype, torch.device, torch.Size)), (
            f"{path}: do not know how to compare a {type(value).__name__}"
        )
        yield path, (type(value).__name__, repr(value))
