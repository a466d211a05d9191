"""Checks in one process do not depend on each other, and leave no model behind."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Finding, Report, Safety
from perflint.rules.base import Rule
from perflint.rules.registry import RuleSet, all_rules
from perflint.rules.sync.scalar_to_cuda import ScalarToCuda
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.sites import CallSite
from perflint.source.text import Source
from tests.engine.toys import Crashing
from tests.rules.harness import Case, parse_fixture, source_cases

SETTINGS = Settings(profile=Profile.AUDIT)
FIRST_OF_FAMILY = {case.family: case for case in reversed(source_cases())}
CHANGED = (
    "evaluation/missing_eval_mode",
    "evaluation/eval_without_no_grad",
    "sync/many_scalars",
    "transfer/cat_growth",
)
"""Rules whose helpers remember the most of a file."""


def check(text: str, *rules: Rule, project: Project | None = None) -> Report:
    """The report on a file of the same path each time, by some rules or by all."""
    return check_source(
        Source("a.py", text), project or Project([Path("a.py")]), RuleSet(rules or all_rules()), SETTINGS
    )


def told(findings: list[Finding]) -> list[list[object]]:
    """What a reader sees of findings."""
    return [[finding.code, finding.span.line, finding.span.column, finding.message] for finding in findings]


ALONE = """
import json, sys
from tests.engine.test_forgetting import check, told
print(json.dumps(told(check(sys.stdin.read()).findings)))
"""


def alone(text: str) -> list[list[object]]:
    """What a reader sees of a file that is the first that a process checks."""
    command = [sys.executable, "-c", ALONE]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    found: list[list[object]] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("case", [case for case in source_cases() if str(case) in CHANGED], ids=str)
def test_a_changed_text_is_checked_as_if_it_were_the_first(case: Case) -> None:
    before = parse_fixture(case.fixture.read_text(encoding="utf-8")).text
    # All positions stay as they are.
    after = before.replace(".eval()", ".half()").replace(".item()", ".view()").replace('"cuda"', '"cpu" ')
    after = after.replace("torch.cat(", "torch.add(").replace("no_grad()", "no_gra_()")
    project = Project([Path("a.py")])
    first = told(check(before, project=project).findings)
    second = told(check(after, project=project).findings)
    assert first != second
    assert second == alone(after)
    assert told(check(before, project=project).findings) == first


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[Model]]]:
    """The models that are made during a test; tests run without the garbage collector, as the command does."""
    assert not gc.isenabled()
    made: list[weakref.ref[Model]] = []
    begin = Model.__init__

    def noted(self: Model, *arguments: Any, **settings: Any) -> None:
        made.append(weakref.ref(self))
        begin(self, *arguments, **settings)

    monkeypatch.setattr(Model, "__init__", noted)
    yield made


@pytest.mark.parametrize("case", FIRST_OF_FAMILY.values(), ids=str)
def test_a_model_is_freed_when_its_check_is_done(case: Case, models: list[weakref.ref[Model]]) -> None:
    report = check(parse_fixture(case.fixture.read_text(encoding="utf-8")).text)
    assert report.findings
    assert not report.problems
    assert models
    assert not [model for model in models if model() is not None]


def test_the_model_for_any_caller_is_freed(models: list[weakref.ref[Model]]) -> None:
    text = (
        "import torch\n\n\ndef f(x):\n    for _ in range(9):\n        print(x.sum().item(), x.to('cuda'))\n"
        "    return torch.tensor(x).cuda()\n\n\nf(torch.zeros(3, device='cuda'))\n"
    )
    model = Model(Source("a.py", text), Project())
    site = next(site for site in model.sites() if isinstance(site, CallSite))
    assert model.for_any_caller.site_like(site) is not None
    assert len(models) == 2
    model.close()
    del model, site
    assert not [model for model in models if model() is not None]


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ("torch.tensor(0.0, device=device)", 1),
        ("torch.tensor(0.0, device=device, dtype=torch.float32)", 1),
        ("torch.tensor(0.0).to(x.device)", 2),
        ("make(0.0, device=device)", 2),
    ],
)
def test_the_model_for_any_caller_is_made_for_proofs_by_values(
    made: str, count: int, models: list[weakref.ref[Model]]
) -> None:
    text = (
        f"import torch\n\n\ndef forward(x, make, device):\n    return x + {made}\n\n\n"
        "forward(torch.zeros(3, device='cuda'), torch.tensor, torch.device('cuda'))\n"
    )
    finding = next(each for each in check(text, ScalarToCuda()).findings if each.span.line == 5)
    assert finding.fix is not None
    assert len(models) == count
    assert count == 2 or finding.fix.safety is Safety.SAFE


def test_a_model_is_freed_after_a_crash(models: list[weakref.ref[Model]]) -> None:
    report = check("import torch\ntorch.zeros(3)\n", Crashing())
    assert report.problems
    assert models
    assert not [model for model in models if model() is not None]


def test_a_tree_that_is_not_kept_is_freed_without_the_collector() -> None:
    gc.freeze()
    text = "class Net:\n    def forward(self, x):\n        return [lambda: x + y for y in x if (z := y)]\n"
    source = Source("a.py", text)
    module = Project().module_of(source)
    assert {variable.name for variable in module.symbols.variables} >= {"Net", "forward", "x", "y", "z"}
    del source, module
    assert gc.collect() == 0
