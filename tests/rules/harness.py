"""Rules and their fixtures: what `tests/rules/<family>/<rule>.py` claims, and what the rule says.

A fixture is one file of good and bad code. `# error: TPF101` ends each line on which a
finding starts in the default profile, `# audit: TPF101` each line on which one starts in
a stricter profile only. A line may carry several codes, one per finding. Everything else
is silent. Markers are taken out before the file is linted, so they cannot help.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import perflint.rules
from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Finding
from perflint.rules.base import OutsideRule, Rule
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source

RULES = Path(perflint.rules.__file__).parent
FIXTURES = Path(__file__).parent
SECTIONS = (
    "What it does",
    "Why is this bad",
    "When it is fine",
    "Bad",
    "Good",
    "Fix safety",
    "How a GPU shows it",
    "References",
)
NEWEST = (1_000, 0)
"""A torch that has all that fixes write."""
_MARKER = re.compile(r"#\s*(error|audit)\s*:\s*(TPF\d{3}(?:\s*,\s*TPF\d{3})*)\s*")
_MARKER_LIKE = re.compile(r"#\s*(?:(?:errors?|audits?)\b|(?!noqa)\w+\s*:\s*TPF\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Case:
    """One rule module and the files that go with it."""

    family: str
    stem: str

    def __str__(self) -> str:
        return f"{self.family}/{self.stem}"

    @property
    def fixture(self) -> Path:
        """Good and bad code with markers."""
        return FIXTURES / self.family / f"{self.stem}.py"

    @property
    def golden(self) -> Path:
        """What all fixes change in the fixture."""
        return FIXTURES / self.family / f"{self.stem}.fixed.diff"

    @property
    def classes(self) -> list[type[Rule]]:
        """The rules that the module defines."""
        module = importlib.import_module(f"perflint.rules.{self.family}.{self.stem}")
        return [
            found
            for found in vars(module).values()
            if isinstance(found, type)
            and issubclass(found, Rule)
            and found.__module__ == module.__name__
            and not inspect.isabstract(found)
        ]

    @property
    def rule(self) -> type[Rule]:
        """The rule that the module defines."""
        (rule,) = self.classes
        return rule


def cases() -> list[Case]:
    """All rule modules, found as files, so that none can hide."""
    return [
        Case(path.parent.name, path.stem)
        for path in sorted(RULES.glob("*/*.py"))
        if not path.stem.startswith("_") and not path.parent.name.startswith("_")
    ]


def source_cases() -> list[Case]:
    """Those of rules that look at source; findings of the others come from a trace or from comments."""
    return [case for case in cases() if not issubclass(case.rule, OutsideRule)]


@dataclass(frozen=True, slots=True)
class Fixture:
    """A fixture's code without its markers, and what the markers claim."""

    text: str
    error: Counter[tuple[int, str]]
    audit: Counter[tuple[int, str]]
    malformed: tuple[str, ...]

    @property
    def marked(self) -> set[int]:
        """The lines that carry a marker."""
        return {line for line, _ in (*self.error, *self.audit)}


@lru_cache(maxsize=200)
def parse_fixture(text: str) -> Fixture:
    """Take the markers out of a fixture. Raises SyntaxError where it is no Python."""
    lines = text.splitlines(keepends=True)
    claims: dict[str, Counter[tuple[int, str]]] = {"error": Counter(), "audit": Counter()}
    malformed: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or not _MARKER_LIKE.search(token.string):
            continue
        row, column = token.start
        first, end = None, 0
        for match in _MARKER.finditer(token.string):
            first = match.start() if first is None else first
            end = match.end()
            claims[match[1]].update((row, code) for code in re.findall(r"TPF\d{3}", match[2]))
        if first is None or end != len(token.string):
            malformed.append(f"line {row}: {token.string}")
        else:
            ending = lines[row - 1][len(lines[row - 1].rstrip("\r\n")) :]
            lines[row - 1] = lines[row - 1][: column + first].rstrip() + ending
    return Fixture("".join(lines), claims["error"], claims["audit"], tuple(malformed))


def silent_blocks(text: str, marked: set[int]) -> list[str]:
    """The top-level functions, classes and compound statements that hold no marker."""
    blocks = []
    for statement in ast.parse(text).body:
        if not isinstance(getattr(statement, "body", None), list):
            continue
        if not marked.intersection(range(statement.lineno, (statement.end_lineno or 0) + 1)):
            blocks.append(f"line {statement.lineno}: {getattr(statement, 'name', type(statement).__name__)}")
    return blocks


def lint(text: str, rules: Iterable[type[Rule]], profile: str) -> list[Finding]:
    """The findings of some rules in a text, by position, if the rules that replace them are on, too.

    Fails if a rule crashes.
    """
    return list(_linted(text, frozenset(rule.code for rule in rules), profile))


@lru_cache(maxsize=1000)
def _linted(text: str, asked: frozenset[str], profile: str) -> list[Finding]:
    """The findings; tests of several files ask for those of the fixtures."""
    source = Source("example.py", text)
    settings = Settings(profile=Profile(profile), torch_version=NEWEST)
    report = check_source(source, Project([Path(source.path)]), with_replacing(asked), settings)
    assert not report.problems, "\n".join(f"line {p.line}: {p.message}" for p in report.problems)
    return [finding for finding in report.findings if finding.code in asked]


def with_replacing(codes: Set[str]) -> RuleSet:
    """Some rules and those that replace them."""
    return RuleSet([rule for rule in all_rules() if rule.code in codes or not codes.isdisjoint(rule.replaces)])


def starts(findings: Iterable[Finding]) -> Counter[tuple[int, str]]:
    """Where findings start: how many of each code on each line."""
    return Counter((finding.span.line, finding.code) for finding in findings)


def compare(
    path: Path, text: str, expected: Counter[tuple[int, str]], findings: list[Finding], profile: str
) -> list[str]:
    """One line of text for each difference between the markers and the findings."""
    lines = text.splitlines()
    found = starts(findings)
    messages = {(finding.span.line, finding.code): finding.message for finding in findings}
    report = []
    for key in sorted(expected.keys() | found.keys()):
        missing, extra = expected[key] - found[key], found[key] - expected[key]
        if not missing and not extra:
            continue
        line, code = key
        shown = lines[line - 1].strip() if line <= len(lines) else ""
        what = f"missing {missing} x {code}" if missing > 0 else f"unexpected {extra} x {code}"
        report.append(f"{path.name}:{line}: [{profile}] {what}\n    {shown}")
        if key in messages:
            report.append(f"    says: {messages[key]}")
    return report


def sections(rule: type[Rule]) -> dict[str, str]:
    """The sections of a rule's page by heading, in order."""
    found: dict[str, str] = {}
    heading, fenced = "", False
    for line in inspect.cleandoc(rule.__doc__ or "").splitlines():
        fenced ^= line.lstrip().startswith("```")
        if line.startswith("## ") and not fenced:
            heading = line[3:].strip()
            found[heading] = ""
        else:
            found[heading] = found.get(heading, "") + line + "\n"
    return found


def python_blocks(section: str) -> list[str]:
    """The ```python blocks of a section."""
    return re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
