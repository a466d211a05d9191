"""The formats for other programs: their text, their schemas and what untrusted text may do in them."""

from __future__ import annotations

import html
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import perflint.output.formats
from perflint.config.errors import ConfigurationError
from perflint.config.settings import OutputFormat
from perflint.findings import Finding, Problem, Report, Ruling, Safety, Span, Verdict
from perflint.output.formats import writer
from perflint.output.terminal import Style, wants_links
from perflint.output.writer import Output
from perflint.source.text import Source
from tests.cli.command import Command
from tests.output.reports import FINDINGS, TEXT, finding, fix, report

GOLDEN = Path(__file__).parent / "golden"
PLAIN = Style(False)
SOURCE = Source("src/train.py", TEXT.replace("\t", "    "))
"""A file that can be parsed."""
URL = "https://example.org/rules/{name}"
MACHINE = [
    OutputFormat.JSON,
    OutputFormat.JSONL,
    OutputFormat.SARIF,
    OutputFormat.GITHUB,
    OutputFormat.GITLAB,
    OutputFormat.JUNIT,
    OutputFormat.RDJSON,
    OutputFormat.AZURE,
    OutputFormat.MARKDOWN,
]
EVIL = "a`|<b>&amp;]]>\x1b[31m\n::error::x%0A@team [l](http://x) ##vso[task.x];\x00\udcff"
EVIL_PATH = "src/a,b:c;d]|<&\"'\n%\x1b.py"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative to the working directory, as in a project without a repository."""
    monkeypatch.chdir(tmp_path)


def written(format: OutputFormat, part: Report, source: Source = SOURCE, **options: Any) -> str:
    """The output of a writer for a report of one file."""
    out = io.StringIO()
    to = writer(format, Output(out, PLAIN, **options))
    to.file(source, part)
    to.finish(part)
    return out.getvalue()


def evil() -> Report:
    """A report whose every text tries to leave its place."""
    found = finding(
        Span(2, 11, 2, 30), path=EVIL_PATH, message=EVIL, help=EVIL, why=EVIL, cost=EVIL, function=EVIL, fix=None
    )
    return Report([found], [Problem(EVIL_PATH, EVIL, EVIL, 3)], files=1)


def test_each_format_is_a_module() -> None:
    modules = {path.stem for folder in perflint.output.formats.__path__ for path in Path(folder).glob("[!_]*.py")}
    assert modules == {format.value for format in OutputFormat if format is not OutputFormat.AUTO}


def without_pages(text: str) -> str:
    """A SARIF log without perflint's version and without the texts of rules, which other changes edit."""
    log = json.loads(text)
    driver = log["runs"][0]["tool"]["driver"]
    del driver["version"], driver["semanticVersion"]
    for rule in driver["rules"]:
        for name in ("help", "shortDescription", "fullDescription", "defaultConfiguration"):
            rule.pop(name, None)
    return json.dumps(log, indent=2) + "\n"


@pytest.mark.parametrize("format", MACHINE, ids=lambda format: format.value)
def test_golden(format: OutputFormat, update_golden: bool) -> None:
    golden = GOLDEN / f"{format.value}.txt"
    verdict = Verdict(Ruling.CONFIRMED, "1.5 ms of 10 ms a step", 1.5, 0.15, 1.0)
    part = report()
    part.findings[1] = finding(
        Span(3, 21, 3, 29), "TPF103", verdict=verdict, why="`y` is a tensor", cost="3%", function="Net.forward"
    )
    text = written(format, part, rule_url=URL)
    if format is OutputFormat.SARIF:
        text = without_pages(text)
    if update_golden:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("format", MACHINE, ids=lambda format: format.value)
def test_the_summary_goes_to_standard_error(format: OutputFormat) -> None:
    notes = io.StringIO()
    text = written(format, report(), notes=notes)
    assert text == written(format, report())
    assert notes.getvalue().startswith("Found 3 findings in 12 files")
    silent = io.StringIO()
    written(format, report(), notes=silent, quiet=True)
    assert silent.getvalue() == ""


SARIF = jsonschema.Draft7Validator(
    json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
)


@pytest.mark.parametrize("part", [report(), evil(), Report(files=1)], ids=["all", "evil", "empty"])
def test_sarif_follows_the_schema(part: Report) -> None:
    log = json.loads(written(OutputFormat.SARIF, part, rule_url=URL))
    SARIF.validate(log)
    broken = json.loads(json.dumps(log))
    broken["runs"][0]["columnKind"] = "bytes"
    assert not SARIF.is_valid(broken)


def test_sarif_has_rules_fixes_and_suppressions() -> None:
    run = json.loads(written(OutputFormat.SARIF, report(), rule_url=URL))["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    results = run["results"]
    assert [rules[result["ruleIndex"]]["id"] for result in results] == [result["ruleId"] for result in results]
    assert rules[0]["helpUri"] == "https://example.org/rules/scalar-read-in-loop"
    assert rules[0]["help"]["markdown"].startswith("# scalar-read-in-loop (TPF101)\n")
    assert rules[0]["shortDescription"]["text"].endswith(".")
    # The import that the fix needs is among its replacements.
    (change,) = results[0]["fixes"][0]["artifactChanges"]
    texts = [each["insertedContent"]["text"] for each in change["replacements"]]
    assert texts == ["x", "total = 0\n", "import torch\n\n"]
    assert "fixes" not in results[2]  # display-only
    kinds = [result.get("suppressions") for result in results]
    assert kinds[:3] == [None, None, None]
    assert kinds[3] == [{"kind": "inSource", "justification": "the scheduler needs it"}]
    assert kinds[4:] == [[{"kind": "inSource"}], [{"kind": "external"}]]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 3


def test_fingerprints_survive_moved_lines_and_renamed_files() -> None:
    def prints(source: Source, findings: list[Finding]) -> list[str]:
        run = json.loads(written(OutputFormat.SARIF, Report(findings), source))["runs"][0]
        return [result["partialFingerprints"]["perflint/v1"] for result in run["results"]]

    before = prints(SOURCE, [finding(Span(2, 11, 2, 30)), finding(Span(2, 5, 2, 30))])
    moved = Source("other.py", "# new\n\n" + SOURCE.text.replace("    total", "            total"))
    places = [Span(4, 18, 4, 37), Span(4, 12, 4, 37)]
    after = prints(moved, [finding(span, path="other.py") for span in places])
    assert before == after
    assert len(set(before)) == 2
    changed = Source("src/train.py", SOURCE.text.replace("model(batch)", "model(other)"))
    assert prints(changed, [finding(Span(2, 11, 2, 30))])[0] not in before


@pytest.mark.parametrize("part", [report(), evil(), Report(files=1)], ids=["all", "evil", "empty"])
def test_junit_is_well_formed(part: Report) -> None:
    root = ElementTree.fromstring(written(OutputFormat.JUNIT, part))
    assert root.tag == "testsuites"
    cases = root.findall("testsuite/testcase")
    assert len(cases) == int(root.attrib["tests"])
    assert len(root.findall("testsuite/testcase/failure")) == int(root.attrib["failures"]) == len(part.findings)
    assert len(root.findall("testsuite/testcase/error")) == int(root.attrib["errors"]) == len(part.problems)
    for suite in root:
        assert len(suite) == int(suite.attrib["tests"])


@pytest.mark.parametrize("format", [OutputFormat.GITHUB, OutputFormat.AZURE])
def test_a_text_starts_no_command_of_its_own(format: OutputFormat) -> None:
    lines = written(format, evil()).splitlines()
    start = {OutputFormat.GITHUB: "::", OutputFormat.AZURE: "##vso[task.logissue "}[format]
    assert len(lines) == 2 and all(line.startswith(start) for line in lines)
    head = lines[0].split("]", 1)[0] if format is OutputFormat.AZURE else lines[0].split("::")[1]
    assert head.count(",") == 5 if format is OutputFormat.GITHUB else head.count(";") == 5
    assert all(line.isprintable() for line in lines)


def test_gitlab_has_what_the_report_needs() -> None:
    issues = json.loads(written(OutputFormat.GITLAB, report()))
    assert len(issues) == 6
    assert len({issue["fingerprint"] for issue in issues}) == 6
    for issue in issues:
        assert {"description", "check_name", "fingerprint", "severity", "location"} == set(issue)
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        location = issue["location"]
        line = location["lines"]["begin"] if "lines" in location else location["positions"]["begin"]["line"]
        assert line >= 1 and not location["path"].startswith(("/", "./"))


def test_rdjson_counts_bytes() -> None:
    diagnostics = json.loads(written(OutputFormat.RDJSON, report()))["diagnostics"]
    # Line 3 has "größe" before the place: two characters of two bytes.
    assert diagnostics[1]["location"]["range"]["start"] == {"line": 3, "column": 23}
    assert "suggestions" not in diagnostics[0]  # its fix needs two edits and an import
    one = finding(Span(3, 21, 3, 29), fix=fix(Safety.SAFE).__class__("m", Safety.SAFE, (fix(Safety.SAFE).edits[0],)))
    found = json.loads(written(OutputFormat.RDJSON, Report([one])))["diagnostics"][0]
    assert found["suggestions"] == [
        {"range": {"start": {"line": 2, "column": 11}, "end": {"line": 2, "column": 23}}, "text": "x"}
    ]


def test_markdown_escapes() -> None:
    text = written(OutputFormat.MARKDOWN, evil())
    for harm in ("<b>", "@team", "](http", "\x1b", "http://", "|<"):
        assert harm not in text, harm
    rows = [line for line in text.splitlines() if line.startswith("| src")]
    assert len(rows) == 1 and rows[0].count("|") == 5
    code = written(OutputFormat.MARKDOWN, Report([finding(Span(1, 1, 1, 2), message="`a[i] | b` waits")]))
    assert "<code>a&#91;i&#93; &#124; b</code> waits" in code


@pytest.mark.parametrize(
    "text",
    [
        "foo@bar.com", "ftp://a.example/x", "https://a.example", "www.a.example", "mailto:a@b.example", "WWW.A.EXAMPLE",
        "xmpp:a@b.example/c", "`x@y.example` and `a | http://a.example`", "[a](http://b.example)", "<img src=x>",
        "<http://a.example>", "`` ` ``", "`", "a\\", "\\`a`", "&#64;", "&commat;a", "<!-- -->", "</details>", "    a",
    ],
)  # fmt: skip
def test_texts_in_markdown_are_shown_as_they_are(text: str) -> None:
    """GitHub's own library makes the page."""
    cmarkgfm = pytest.importorskip("cmarkgfm", reason="needs the extra `test`")
    report = Report([finding(Span(1, 1, 1, 2), message=f"{text} waits", why=text, help=text, fix=None)])
    page = cmarkgfm.github_flavored_markdown_to_html(written(OutputFormat.MARKDOWN, report))
    for harm in ("<a ", "<img", "mailto:a@b", "<!-- -->"):
        assert harm not in page
    shown = html.unescape(re.sub("<[^>]+>", "", page)).replace("\u200b", "").replace("`", "")
    assert shown.count(text.replace("`", "").strip()) >= 3


@pytest.mark.parametrize("text", ["@octocat", "a #12", "GH-12", "owner/name#3"])
def test_mentions_in_markdown_are_broken(text: str) -> None:
    page = written(OutputFormat.MARKDOWN, Report([finding(Span(1, 1, 1, 2), message=text)]))
    assert re.search(r"(?:@|#|GH)(?:octocat|-?\d)", html.unescape(page)) is None


def test_markdown_fits_into_a_comment() -> None:
    many = [finding(Span(line, 1, line, 2), path="größe.py", message="`x` " + "é" * 100) for line in range(1, 1001)]
    problems = [Problem(f"{at}.py", "é" * 100, "help") for at in range(1000)]
    text = written(OutputFormat.MARKDOWN, Report(many, problems, files=1))
    assert 60_000 < len(text.encode()) <= 65_536
    rows, items = (text.count(start) for start in ("\n| größe", "\n- **größe"))
    assert rows == items
    assert f"\n**{1000 - rows} more findings** without room here; `perflint check` shows all.\n" in text
    listed = text.partition("**Not checked**")[2].count("\n- ") - 1
    assert 0 < listed < 1000 and text.endswith(f"\n- {1000 - listed} more; `perflint check` shows all\n")
    assert "without room" not in written(OutputFormat.MARKDOWN, Report(many[:50], problems[:20], files=1))


def test_jsonl_is_one_object_a_line() -> None:
    lines = [json.loads(line) for line in written(OutputFormat.JSONL, report()).splitlines()]
    assert [line["kind"] for line in lines] == ["finding"] * 3 + ["error"] * 3 + ["summary"]
    whole = json.loads(written(OutputFormat.JSON, report()))
    assert [{k: v for k, v in line.items() if k != "kind"} for line in lines] == [
        *whole["findings"],
        *whole["errors"],
        whole["summary"],
    ]


def test_statistics_of_formats_that_have_none() -> None:
    with pytest.raises(ConfigurationError, match="`--statistics` has no form in the format `sarif`"):
        writer(OutputFormat.SARIF, Output(io.StringIO(), PLAIN, statistics=True))


@pytest.mark.parametrize("format", [OutputFormat.FULL, OutputFormat.CONCISE, OutputFormat.GROUPED])
def test_codes_link_to_the_page_of_the_rule(format: OutputFormat) -> None:
    out = io.StringIO()
    to = writer(format, Output(out, Style(False, links=True), rule_url=URL))
    to.file(SOURCE, Report(FINDINGS[:1]))
    to.finish(Report(FINDINGS[:1]))
    address = "https://example.org/rules/scalar-read-in-loop"
    assert f"\x1b]8;;{address}\x1b\\" in out.getvalue() and out.getvalue().count("\x1b]8;;\x1b\\") == 1
    assert "\x1b" not in written(format, Report(FINDINGS[:1]), rule_url=URL)


LINKS: list[tuple[dict[str, str], bool, bool]] = [
    ({}, True, False),
    ({"TERM_PROGRAM": "vscode"}, True, True),
    ({"TERM_PROGRAM": "vscode"}, False, False),
    ({"TERM_PROGRAM": "vscode", "CI": "true"}, True, False),
    ({"TERM_PROGRAM": "vscode", "FORCE_HYPERLINK": "0"}, True, False),
    ({"FORCE_HYPERLINK": "1"}, False, True),
    ({"VTE_VERSION": "6003"}, True, True),
    ({"VTE_VERSION": "4902"}, True, False),
    ({"TERM": "xterm-kitty"}, True, True),
    ({"WT_SESSION": "x"}, True, True),
]


@pytest.mark.parametrize(("environment", "is_terminal", "expected"), LINKS)
def test_terminals_with_links(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], is_terminal: bool, expected: bool
) -> None:
    known = "TERM_PROGRAM TERM VTE_VERSION WT_SESSION KONSOLE_VERSION KITTY_WINDOW_ID DOMTERM FORCE_HYPERLINK CI"
    for name in known.split():
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal  # type: ignore[method-assign]
    assert wants_links(stream) is expected


pytestmark = pytest.mark.usefixtures("stated_torch")
BAD = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"


@pytest.mark.parametrize("format", OutputFormat, ids=lambda format: format.value)
def test_the_command_writes_every_format_to_a_file(perflint: Command, format: OutputFormat) -> None:
    perflint.write("pyproject.toml", f'[tool.perflint]\nrule-url = "{URL}"\n')
    perflint.write("a.py", BAD)
    ran = perflint("check", "a.py", "--output-format", format.value, "--output-file", "out.txt")
    assert (ran.code, ran.out) == (1, "")
    text = (perflint.folder / "out.txt").read_text(encoding="utf-8")
    assert "TPF902" in text
    assert [path.name for path in perflint.folder.glob(".perflint-*")] == []
    if format in MACHINE:
        assert ran.err.startswith("Found 1 finding in 1 file")
        nothing = perflint("check", "a.py", "--select=TPF1", "--output-format", format.value)
        assert nothing.err == "No findings in 1 file.\n"
    if format is OutputFormat.SARIF:
        SARIF.validate(json.loads(text))
        assert json.loads(text)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {
            "uri": "a.py",
            "uriBaseId": "%SRCROOT%",
        }


def test_pages_of_rules_may_be_on_the_disk(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    command = ("check", "a.py", "--output-format=json", "--config")
    found = json.loads(perflint(*command, "rule-url=file:///site/{name}.html").out)["findings"]
    assert [each["url"] for each in found] == ["file:///site/deprecated-amp.html"]
    assert perflint(*command, "rule-url=ftp://site/{name}").code == 2


def test_paths_are_those_of_the_repository(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    (perflint.folder / ".git").mkdir()
    perflint.write("src/deep/a.py", BAD)
    monkeypatch.chdir(perflint.folder / "src")
    assert ",file=src/deep/a.py," in perflint("check", "deep", "--output-format", "github").out


def test_a_file_that_cannot_be_written(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    ran = perflint("check", "a.py", "--output-file", "missing/out.txt")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: `--output-file missing/out.txt` cannot be written: ")


def test_a_link_keeps_its_target_and_a_failed_run_the_old_file(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    perflint.write("real.txt", "old")
    (perflint.folder / "link.txt").symlink_to("real.txt")
    assert perflint("check", "a.py", "--output-file", "link.txt", "--output-format=sarif", "--statistics").code == 2
    assert (perflint.folder / "real.txt").read_text() == "old"
    perflint("check", "a.py", "--output-file", "link.txt")
    assert (perflint.folder / "link.txt").is_symlink()
    assert "TPF902" in (perflint.folder / "real.txt").read_text()
    assert perflint("check", "a.py", "--output-file", "/dev/null").code == 1
    assert Path("/dev/null").is_char_device()
