"""One file through the engine."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.findings import Confidence, Edit, Finding, Fix, Heat, Report, Safety, Severity, Span
from perflint.frozen import replace
from perflint.rules.base import Rule
from perflint.rules.registry import RuleSet
from perflint.semantics.model import Model
from perflint.semantics.project import Interrupted, Project
from perflint.semantics.sites import CallSite, FileSite
from perflint.source.concrete import code
from perflint.source.text import Source
from tests.engine.toys import Crashing, CrashingAtOnce, Files, Graded, Picky, Truths, Zeros
from tests.output.reports import finding as made

TEXT = """\
import torch

if torch.zeros(3).any():
    pass
b = torch.zeros_like(torch.zeros(4))
"""


def check(text: str, *rules: Rule, settings: Settings | None = None, path: str = "a.py") -> Report:
    """What toy rules say of a text."""
    return check_source(Source(path, text), Project(), RuleSet(rules), settings or Settings())


def where(findings: list[Finding]) -> list[tuple[str, int, int]]:
    """Codes and positions."""
    return [(finding.code, finding.span.line, finding.span.column) for finding in findings]


def test_rules_hear_what_they_listen_to() -> None:
    report = check(TEXT, Zeros(), Truths(), Files(), Picky())
    assert where(report.findings) == [
        ("TPF201", 1, 1),
        ("TPF101", 3, 4),
        ("TPF102", 3, 4),
        ("TPF101", 5, 5),
        ("TPF101", 5, 22),
    ]
    assert (report.files, report.lines, report.problems, report.hidden) == (1, 5, [], {})
    assert report.findings[0].path == "a.py"


def test_a_check_ends_at_its_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = itertools.count(step=3600)
    project, rules = Project(), RuleSet([Zeros()])
    with monkeypatch.context() as patched:
        patched.setattr("time.thread_time", lambda: next(hours))
        report = check_source(Source("a.py", TEXT), project, rules, Settings(time_limit=7))
    assert [problem.message for problem in report.problems] == ["the check took more than 7 s, and was ended"]
    assert report.findings == []
    again = check_source(Source("a.py", TEXT), project, rules, Settings(time_limit=7))
    assert len(again.findings) == 3 and not again.problems


class _Endless(Files):
    """A rule with a loop that does not end."""

    def check(self, site: FileSite) -> Iterator[Finding]:
        while True:
            pass
        yield from ()


def test_a_rule_that_does_not_end_is_ended() -> None:
    report = check(TEXT, _Endless(), settings=Settings(time_limit=1))
    assert [problem.message for problem in report.problems] == ["the check took more than 1 s, and was ended"]
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)


def test_a_limit_of_time_may_be_as_long_as_one_likes() -> None:
    assert len(check(TEXT, Zeros(), settings=Settings(time_limit=1 << 80)).findings) == 3


def test_a_limit_of_time_leaves_other_interrupts() -> None:
    project = Project()
    with project.while_wanted(lambda: False), pytest.raises(Interrupted):
        check_source(Source("a.py", TEXT), project, RuleSet([Zeros()]), Settings())
    assert project.is_wanted is None


def test_aliases_are_resolved() -> None:
    report = check("import torch as th\nfrom torch import zeros as z\nth.zeros(1)\nz(2)\nzeros(3)\n", Zeros())
    assert where(report.findings) == [("TPF101", 3, 1), ("TPF101", 4, 1)]


def test_a_rule_asks_for_the_libcst_node_of_a_site() -> None:
    source = Source("a.py", "import torch\n(torch\n .zeros(3))\n")
    (site,) = (site for site in Model(source, Project()).sites() if isinstance(site, CallSite))
    assert not parsed(source)
    assert code(site.concrete) == "torch\n .zeros(3)"
    assert site.concrete is site.concrete
    assert parsed(source)


def parsed(source: Source) -> bool:
    """True if libcst has parsed anything of a file."""
    return bool(source._concrete)


def test_a_rule_without_findings_does_not_make_libcst_parse() -> None:
    source = Source("a.py", TEXT)
    check_source(source, Project(), RuleSet([Zeros(), Truths(), Files(), Picky()]), Settings())
    assert not parsed(source)


def test_a_file_has_no_libcst_node() -> None:
    assert not hasattr(FileSite, "concrete")


def test_columns_are_in_characters() -> None:
    (finding,) = check("import torch\nü, é = 'äö', torch.zeros(3)\n", Zeros()).findings
    assert finding.span == Span(2, 14, 2, 28)


def test_a_syntax_error_is_a_problem() -> None:
    report = check("import torch\nif x\n", Zeros())
    (problem,) = report.problems
    assert (problem.path, problem.line, problem.internal) == ("a.py", 2, False)
    assert problem.message == "syntax error: expected ':'"
    assert problem.help is not None and problem.help.startswith("perflint reads the syntax of Python 3.")
    assert (report.files, report.lines, report.findings) == (0, 0, [])


@pytest.mark.parametrize("text", ["x = 1\0\n", "(" * 500 + ")" * 500, "-" * 100_000 + "1"])
def test_text_that_the_parser_refuses_otherwise(text: str) -> None:
    (problem,) = check(text, Zeros()).problems
    assert not problem.internal and not problem.message.endswith(": ")


@pytest.mark.parametrize("number", [f"0x{'f' * 4000}", f"0b{'1' * 15_000}", f"-0o{'7_7' * 3000}"])
def test_a_number_that_python_does_not_print_is_an_error(number: str) -> None:
    (problem,) = check(f"import torch\nx = torch.zeros({number})\n", Zeros()).problems
    assert problem.message == "syntax error: the number has more than 4300 digits, so that nothing can print it"
    assert problem.line == 2
    assert not check(f"import torch\nx = 0x{'f' * 3500}\n", Zeros()).problems


def test_a_place_that_python_does_not_know_is_none() -> None:
    (problem,) = check(f"import torch\nx = {'9' * 5000}\n", Zeros()).problems
    assert problem.message.startswith("syntax error: Exceeds the limit (4300 digits)")
    assert (problem.line, problem.column) == (2, None)


def test_a_crash_is_reported_once_a_file_and_the_others_go_on() -> None:
    report = check(TEXT, Crashing(), Zeros(), CrashingAtOnce())
    assert [finding.code for finding in report.findings] == ["TPF101"] * 3
    at_once, crash = sorted(report.problems, key=lambda problem: problem.line or 0)
    assert (crash.path, crash.line, crash.internal) == ("a.py", 3, True)
    assert crash.message.startswith("rule TPF901 (crashing) crashed: KeyError: 'lost")
    assert "(toys.py:" in crash.message
    assert crash.help is not None and "--ignore TPF901" in crash.help
    assert at_once.message.startswith("rule TPF902 (crashing-at-once) crashed: ZeroDivisionError (toys.py:")
    assert at_once.line is None


def test_a_crash_of_the_inference_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Model) -> object:
        raise RecursionError("too deep")

    monkeypatch.setattr(Model, "sites", fail)
    report = check(TEXT, Zeros())
    (problem,) = report.problems
    assert problem.internal
    assert problem.message.startswith("inference crashed: RecursionError: too deep (test_file.py:")
    assert report.files == 1


def test_the_traceback_is_there_for_who_wants_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check(TEXT, Crashing())
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("PERFLINT_TRACEBACK", "1")
    check(TEXT, Crashing())
    assert "Traceback" in capsys.readouterr().err


def test_without_rules_nothing_is_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Model) -> object:
        raise AssertionError

    monkeypatch.setattr(Model, "sites", fail)
    assert check(TEXT).problems == []


GRADES = list(itertools.product(Confidence, Heat, Severity))


def graded_text() -> str:
    """A call for each combination of confidence, heat and severity."""
    calls = (f'torch.zeros("{c.value} {h.value} {s.value}")\n' for c, h, s in GRADES)
    return "import torch\n" + "".join(calls)


def expected(profile: Profile) -> int:
    """How many of the combinations a profile shows."""
    if profile is Profile.AUDIT:
        return 3 * 3 * 3
    if profile is Profile.PEDANTIC:
        return 2 * 3 * 3
    return 2 * 2 * 2


@pytest.mark.parametrize("profile", Profile)
def test_profiles(profile: Profile) -> None:
    report = check(graded_text(), Graded(), settings=Settings(profile=profile))
    assert len(report.findings) == expected(profile)
    for finding in report.findings:
        assert profile is Profile.AUDIT or finding.confidence is not Confidence.LOW
        if profile is Profile.DEFAULT:
            assert finding.heat is not Heat.COLD and finding.severity is not Severity.INFO


def test_what_stricter_profiles_add() -> None:
    assert check(graded_text(), Graded()).hidden == {"pedantic": 10, "audit": 19}
    assert check(graded_text(), Graded(), settings=Settings(profile=Profile.PEDANTIC)).hidden == {"audit": 9}
    assert check(graded_text(), Graded(), settings=Settings(profile=Profile.AUDIT)).hidden == {}


def test_silenced_findings_count_where_they_would_have_shown() -> None:
    text = """\
import torch
torch.zeros("high hot warning")  # noqa: TPF301
torch.zeros("low hot warning")  # noqa: TPF301
torch.zeros("low hot warning")
torch.zeros("high hot error")  # perflint: ignore[graded] needed
torch.zeros("high hot error")  # perflint: ignore[TPF101]
"""
    report = check(text, Graded())
    assert where(report.findings) == [("TPF301", 6, 1)]
    assert len(report.silenced) == 2
    assert report.hidden == {"audit": 1}


def test_per_file_ignores(tmp_path: Path) -> None:
    ignores = (("tests", ("TPF1",)), ("b.py", ("files",)), ("c.py", ("ALL",)))
    settings = Settings(per_file_ignores=ignores, root=str(tmp_path))
    rules = (Zeros(), Truths(), Files())

    def codes(path: str) -> set[str]:
        report = check(TEXT, *rules, settings=settings, path=str(tmp_path / path))
        return {finding.code for finding in report.findings}

    assert codes("a.py") == {"TPF101", "TPF102", "TPF201"}
    assert codes("tests/a.py") == {"TPF201"}
    assert codes("b.py") == {"TPF101", "TPF102"}
    assert codes("tests/b.py") == set()
    assert codes("c.py") == set()


def test_merge_adds_up() -> None:
    report = Report()
    for _ in range(2):
        report.add(check(graded_text() + "torch.zeros('high hot error')  # noqa\n", Graded(), Crashing()))
    assert (report.files, len(report.silenced), len(report.findings), len(report.problems)) == (2, 2, 16, 2)
    assert report.hidden == {"pedantic": 20, "audit": 38}
    assert report.lines == 2 * 29


def test_the_device_is_not_waited_for_while_a_module_is_made() -> None:
    made = """\
import torch
class Layer(torch.nn.Module):
    def __init__(self):
        torch.zeros("low cold warning")
        torch.zeros("high cold warning")
    def forward(self):
        torch.zeros("low hot warning")
"""
    report = check(made, Graded(), settings=Settings(profile=Profile.AUDIT))
    assert [finding.message for finding in report.findings] == ["high cold warning", "low hot warning"]


def test_findings_that_only_a_judge_has_get_their_fixes_as_users_do() -> None:
    fix = Fix("Write it", Safety.SAFE, (Edit(Span(3, 1, 3, 3), "x"),), since=(9, 0))
    new = replace(made(Span(3, 1, 3, 3), confidence=Confidence.HIGH, fix=fix), code="TPF101")

    def judged(text: str, added: Finding, *rules: Rule) -> list[Finding]:
        report = check_source(
            Source("a.py", text),
            Project(),
            RuleSet(rules),
            Settings(profile=Profile.AUDIT),
            judge=lambda source, known: [*known, added],
        )
        assert not report.problems
        return report.findings

    for rules in ((Zeros(),), (Zeros(), Truths())):
        found = [each for each in judged(TEXT, new, *rules) if each.fix is not None]
        assert [(each.span.column, each.fix and each.fix.safety) for each in found] == [(1, Safety.UNSAFE)]
    # Another code than those of the rules that are on.
    assert new not in judged(TEXT, replace(new, code="TPF999"), Zeros())
    assert len(judged(TEXT, replace(new, fix=None), Zeros())) == len(check(TEXT, Zeros()).findings) + 1


@pytest.mark.parametrize("test", ["int(1e999)", "x[mask].max() > 1 and x[()].max() > 1"])
def test_constants_that_mean_nothing_are_no_fault(test: str) -> None:
    text = f"import torch\nx = torch.zeros(3).cuda()\nmask = x > 1\nif {test}:\n    x[()] = x[()].item()\n"
    settings = replace(Settings(), profile=Profile.AUDIT)
    source = Source("a.py", text)
    assert not check_source(source, Project(), active_rules(settings), settings).problems
