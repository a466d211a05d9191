"""Faults in the declarations of house rules, and the modules that are not imported for them."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from perflint import api
from perflint.config.errors import ConfigurationError
from perflint.engine.house import _uses_the_api, adapted, house_rules


class Good(api.Rule):
    """A rule."""

    code, name = "ACM001", "good"
    effect, severity = api.Effect.SYNC, api.Severity.INFO
    listens = (api.TruthSite, api.Calls("torch.zeros"))

    def check(self, site: api.Site) -> list[api.Finding]:  # type: ignore[override]
        return [self.finding(site, "found")]


def test_a_good_rule() -> None:
    rule = adapted(Good())
    assert (rule.code, rule.origin, rule.module, rule.document) == ("ACM001", __name__, __name__, "A rule.")


@pytest.mark.parametrize(
    ("attribute", "value", "fault"),
    [
        ("code", None, "`code` must be"),
        ("code", "ACM1", "`code` must be"),
        ("code", "TPF001", "belong to perflint"),
        ("name", "Not words", "`name` must be"),
        ("effect", "sync", "`effect` must be"),
        ("severity", "info", "`severity` must be"),
        ("listens", (), "`listens` must be"),
        ("listens", (int,), "`listens` must be"),
        ("listens", [api.TruthSite], "`listens` must be"),
        ("__doc__", None, "no docstring"),
        ("options", [], "`options` must be"),
        ("options", (1,), "`options` must be"),
        ("replaces", "TPF101", "`replaces` must be"),
        ("replaces", (1,), "`replaces` must be"),
    ],
)
def test_faults_are_named(attribute: str, value: object, fault: str) -> None:
    faulty = type("Faulty", (Good,), {"__doc__": "Bad.", "__module__": __name__, attribute: value})
    with pytest.raises(ConfigurationError, match=r"house rule `tests\.engine\.test_house\.Faulty`") as caught:
        adapted(faulty())
    assert fault in caught.value.message


def test_modules_that_hold_no_rules_are_not_imported(tmp_path: Path) -> None:
    inner = tmp_path / "company" / "inner"
    inner.mkdir(parents=True)
    (inner / "rules.py").write_text("from perflint.api import Rule\n")
    (tmp_path / "company" / "__main__.py").write_text("from perflint.api import Rule\n")
    (tmp_path / "company" / "folder.py").mkdir()
    spec = ModuleSpec("company", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "company")]
    assert _uses_the_api(spec, "company") and _uses_the_api(spec, "company.inner")
    assert _uses_the_api(spec, "company.inner.rules")
    # A program, a folder, and what is not there.
    for name in ("company.__main__", "company.folder", "company.nothing", "perflint.api"):
        assert not _uses_the_api(spec, name)


def test_the_digest_counts_files_and_not_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
from perflint.api import *
class One(Rule):
    "Page."
    code, name, effect, severity, listens = "ACM001", "one", Effect.SYNC, Severity.INFO, (TruthSite,)
    def __init__(self): 1 / FAILS
    def check(self, site): yield self.finding(site, "x")
"""
    for name, fails in (("company_a", 1), ("company_b", 0)):
        (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text(text.replace("FAILS", str(fails)))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (rule,) = house_rules(("company_a",))
    assert rule.origin == "company_a" and len(rule.content) == 32
    with pytest.raises(ConfigurationError, match=r"house rule `company_b.One` crashed: ZeroDivisionError"):
        house_rules(("company_b",))
