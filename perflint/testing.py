"""Helpers for the tests of house rules."""

from __future__ import annotations

from perflint.api import Finding, Rule, Safety
from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.engine.fixing import fix_text
from perflint.engine.house import adapted
from perflint.findings import Problem, Report, up_to
from perflint.rules.registry import RuleSet
from perflint.semantics.project import Project
from perflint.source.text import Source

__all__ = ["Profile", "check", "fix"]


def check(text: str, *rules: Rule, path: str = "example.py", profile: Profile = Profile.AUDIT) -> list[Finding]:
    """The findings of house rules in the text of a file. Raises AssertionError if a rule crashes."""
    report = _check(path, text, Project(), rules, profile)
    _require_none(report.problems)
    return report.findings


def fix(text: str, *rules: Rule, path: str = "example.py", most: Safety = Safety.SAFE) -> str:
    """The text of a file after the fixes of house rules, up to a degree of safety. Raises AssertionError as `check`."""

    def checked(path: str, text: str, project: Project) -> Report:
        return _check(path, text, project, rules, Profile.AUDIT)

    outcome, problems = fix_text(path, text, Project(), checked, up_to(most))
    _require_none(problems)
    return text if outcome is None else outcome.text


def _check(path: str, text: str, project: Project, rules: tuple[Rule, ...], profile: Profile) -> Report:
    made = RuleSet(adapted(rule) for rule in rules)
    return check_source(Source(path, text), project, made, Settings(profile=profile))


def _require_none(problems: list[Problem]) -> None:
    if problems:
        raise AssertionError("; ".join(problem.message for problem in problems))
