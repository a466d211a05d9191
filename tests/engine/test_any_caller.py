"""A fix is safe only if it is so whatever the callers in other files pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Edit, Effect, Finding, Fix, Safety, Severity
from perflint.rules.base import Calls, Rule
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.semantics.sites import CallSite
from perflint.source.text import Source

READ = """
    import torch

    def read(x):
        return [value.item() for value in x]

    {call}
"""


def safeties(text: str, folder: Path) -> list[Safety | None]:
    """The safeties of the fixes of a file; None for a finding without one. Other files of the folder are known."""
    source = Source(str(folder / "example.py"), dedent(text))
    project = Project([Path(source.path), *folder.glob("*.py")])
    rules = RuleSet(rule for rule in all_rules() if rule.code in ("TPF103", "TPF204"))
    report = check_source(source, project, rules, Settings(profile=Profile("audit")))
    assert not report.problems
    return [None if finding.fix is None else finding.fix.safety for finding in report.findings]


def test_a_call_in_the_file_is_no_proof_for_others(tmp_path: Path) -> None:
    assert safeties(READ.format(call='read(torch.zeros(4, device="cuda"))'), tmp_path) == [Safety.UNSAFE]


def test_what_other_callers_may_pass_takes_the_fix_away(tmp_path: Path) -> None:
    text = "import torch\n\ndef zeros(gpu):\n    return torch.zeros(3).cuda(gpu)\n\nzeros(0)\n"
    assert safeties(text, tmp_path) == [None]
    assert safeties(text.replace("(gpu):", "(gpu: int):"), tmp_path) == [Safety.SAFE]


@pytest.mark.parametrize(
    "text",
    [
        # A private function of this file.
        READ.replace("read", "_read").format(call='x = [_read(torch.zeros(4, device="cuda"))]'),
        # A nested one.
        """
        import torch

        def outer():
            def read(x):
                return [value.item() for value in x]

            return read(torch.zeros(4, device="cuda"))
        """,
        # A program.
        READ.format(call='if __name__ == "__main__":\n        read(torch.zeros(4, device="cuda"))'),
        # A function that says what it takes, and makes the rest.
        """
        import torch

        def read(x: torch.Tensor):
            return [value.item() for value in x.flatten().cuda()]

        read(torch.zeros(4))
        """,
    ],
)
def test_known_callers_and_annotations_are_proof(text: str, tmp_path: Path) -> None:
    assert safeties(text, tmp_path) == [Safety.SAFE]


def test_a_program_may_be_imported(tmp_path: Path) -> None:
    text = READ.format(call='if __name__ == "__main__":\n        read(torch.zeros(4, device="cuda"))')
    (tmp_path / "other.py").write_text("from example import read\nread([])\n", encoding="utf-8")
    assert safeties(text, tmp_path) == [Safety.UNSAFE]


def test_a_private_function_hands_on_what_any_caller_passes(tmp_path: Path) -> None:
    text = """
        import torch

        def _read(x):
            return [value.item() for value in x]

        def read(x):
            return _read(x)

        read(torch.zeros(4, device="cuda"))
    """
    assert safeties(text, tmp_path) == [Safety.UNSAFE]


class Both(Rule):
    """Finds the method and the call, each with a fix."""

    code, name = "TPF101", "both"
    effect, severity = Effect.SYNC, Severity.WARNING
    listens = (Calls("torch.Tensor.item"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        for node in (site.node.func, site.node):
            fix = Fix("Write it", Safety.SAFE, (Edit(site.model.source.span(node), "x"),))
            yield self.finding(site, "found", span=site.model.source.span(node), fix=fix)


def test_each_finding_of_a_place_has_its_own_fix(tmp_path: Path) -> None:
    source = Source(str(tmp_path / "example.py"), dedent(READ.format(call='read(torch.zeros(4, device="cuda"))')))
    report = check_source(source, Project([Path(source.path)]), RuleSet([Both()]), Settings(profile=Profile("audit")))
    assert not report.problems
    assert len(report.findings) == 2
    assert all(finding.fix and finding.fix.edits[0].span == finding.span for finding in report.findings)
