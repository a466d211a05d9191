"""Scores every rule against recordings of the simulation.

    python benchmarks/accuracy/simulated/score_rules.py --src DIR RECORDING... [--json FILE] [--show CODE]

DIR holds the unpacked source distributions that were recorded. `perflint check --profile audit` runs over each package,
without its tests, and gets the verdicts of the recorded runs. Of the findings whose lines ran it prints for each rule

confirmed, no cost, refuted, undecided
    the verdicts
true
    confirmed / (confirmed + refuted)
found
    of the places where a witness observed what confirms this rule (`happened.py`), how many a finding touches. Not each
    of these places is worth a finding.
waits
    the places that waited and that findings of the rule touch
hot
    of the findings that are called hot, the share whose lines ran in more than one step. Only runs with at least
    `FEWEST_STEPS` counted steps decide. In tests a step is an optimizer's, a loader's batch or a call of a root module.

and for each package the recall and precision of waits, as `../run.py` does.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[0]))

import recording
import run as waits
from happened import happened
from packages import check, table
from score import Place, load, score

from perflint.tracer import events
from perflint.tracer.file import write_trace

FEWEST_STEPS = 4
DECIDED = ("confirmed", "confirmed, no cost", "refuted")
OF_TRACES = "TPF19"
"""The beginning of the codes of rules that only a trace reports."""
Finding = dict[str, Any]
Document = dict[str, Any]
Lines = dict[str, set[int]]
Facts = Mapping[str, Iterable[events.Place]]


@dataclass(slots=True)
class Rule:
    """The counts of one rule."""

    findings: int = 0
    ran: int = 0
    rulings: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    happened: int = 0
    """Places where a witness observed what confirms the rule."""
    found: int = 0
    """Those that a finding touches."""
    waits: int = 0
    called_hot: int = 0
    """Findings that are called hot and ran where steps can tell."""
    hot: int = 0
    called_cold: int = 0
    cold: int = 0

    @property
    def true(self) -> float | None:
        """The share of decided claims that are true."""
        return share(self.rulings["confirmed"], self.rulings["confirmed"] + self.rulings["refuted"])

    def add(self, other: Rule) -> None:
        """Add the counts of another package."""
        for name in ("findings", "ran", "happened", "found", "waits", "called_hot", "hot", "called_cold", "cold"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for ruling, count in other.rulings.items():
            self.rulings[ruling] += count


def share(part: int, whole: int) -> float | None:
    """A share, or None of nothing."""
    return part / whole if whole else None


def main() -> None:
    """Score, print."""
    parser = argparse.ArgumentParser(description="score every rule against recordings of the simulation")
    parser.add_argument("recording", nargs="+", type=Path, metavar="RECORDING")
    parser.add_argument("--src", type=Path, required=True, metavar="DIR", help="unpacked source distributions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the scores")
    parser.add_argument("--show", metavar="CODE", help="print the findings of a rule with their verdicts")
    options = parser.parse_args()
    rules: dict[str, Rule] = defaultdict(Rule)
    rows = []
    for path in options.recording:
        document = recording.read(path)
        (package, version), *_ = document["versions"].items()
        root = source(options.src, package)
        findings = claims(judged(document, root, package))
        for code, rule in scores(document, findings, happened(document, root)).items():
            rules[code].add(rule)
        rows.append(package_row(path, document, f"{package} {version}", findings))
        if options.show:
            show(findings, options.show)
    print(table(PACKAGE_COLUMNS, rows))
    everything = Rule()
    for rule in rules.values():
        everything.add(rule)
    print(
        "\n"
        + table(
            RULE_COLUMNS,
            [rule_row(code, rule) for code, rule in sorted(rules.items()) if rule.ran or rule.happened or rule.waits],
        )
    )
    print("\n" + table(RULE_COLUMNS, [rule_row("**all**", everything)]))
    if options.json:
        document = {"packages": [row[0] for row in rows], "rules": in_json(rules)}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def source(folder: Path, package: str) -> Path:
    """The folder that a package is imported from. Raises SystemExit if there is none below `folder`."""
    for place in (*folder.glob("*"), *folder.glob("*/src")):
        if (place / package).is_dir() or (place / f"{package}.py").is_file():
            return place
    raise SystemExit(f"{package} is not in {folder}")


def judged(document: Document, root: Path, package: str) -> list[Finding]:
    """The findings of the profile audit in a package, with the verdicts of the recorded runs."""
    with tempfile.TemporaryDirectory(prefix="simulated-") as place:
        paths = []
        for number, trace in enumerate(recording.traces(document, root)):
            paths.append(Path(place) / f"{number}.jsonl.gz")
            write_trace(paths[-1], trace)
        target = package if (root / package).is_dir() else f"{package}.py"
        found: list[Finding] = check(root, target, "audit", paths)["findings"]
    return found


def claims(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that are claims about the package's own code: not those of tests and of the traces."""
    return [
        finding
        for finding in findings
        if not finding["code"].startswith(OF_TRACES) and not recording.is_test(finding["path"])
    ]


def scores(document: Document, findings: Sequence[Finding], facts: Facts) -> dict[str, Rule]:
    """The counts of each rule in one recording. `facts` has by rule the places where it is confirmed."""
    ran = {file: set(lines) for file, lines in document["lines"]["cuda"].items()}
    known, again = repeated(document)
    rules: dict[str, Rule] = defaultdict(Rule)
    for finding in findings:
        rule, lines, file = rules[finding["code"]], lines_of(finding), finding["path"]
        rule.findings += 1
        ruling = finding["verdict"]["ruling"] if finding["verdict"] else "undecided"
        # Not each line of an expression counts as one that ran.
        if lines.isdisjoint(ran.get(file, ())) and ruling not in DECIDED:
            continue
        rule.ran += 1
        rule.rulings[ruling] += 1
        if lines.isdisjoint(known.get(file, ())):
            continue
        is_hot = not lines.isdisjoint(again.get(file, ()))
        if finding["heat"] == "hot":
            rule.called_hot, rule.hot = rule.called_hot + 1, rule.hot + is_hot
        elif finding["heat"] == "cold":
            rule.called_cold, rule.cold = rule.called_cold + 1, rule.cold + (not is_hot)
    _find(document, findings, facts, rules)
    return dict(rules)


def _find(document: Document, findings: Sequence[Finding], facts: Facts, rules: dict[str, Rule]) -> None:
    """Count the places that rules found: waits, and observations that confirm them."""
    sites = [(row["file"], row["line"], row["end_line"]) for row in document["syncs"] if "excluded" not in row]
    for code in sorted({*rules, *facts}):
        mine = [finding for finding in findings if finding["code"] == code]
        if mine:
            rules[code].waits = sum(any(touches(finding, *site) for finding in mine) for site in sites)
        if places := [place for place in facts.get(code, ()) if not recording.is_test(place.file)]:
            found = (any(touches(each, place.file, place.line, place.end_line) for each in mine) for place in places)
            rules[code].happened, rules[code].found = len(places), sum(found)


def touches(finding: Finding, file: str, line: int, end_line: int) -> bool:
    """True if a finding and a place share a line."""
    is_there = finding["path"].replace("\\", "/") == file
    return is_there and finding["line"] <= end_line and line <= finding["end_line"]


def lines_of(finding: Finding) -> set[int]:
    """The lines of a finding."""
    return set(range(finding["line"], finding["end_line"] + 1))


def repeated(document: Document) -> tuple[Lines, Lines]:
    """The lines that ran in runs with enough counted steps, and those of them that ran in more than one step."""
    known: Lines = defaultdict(set)
    again: Lines = defaultdict(set)
    for run, counts in zip(document["runs"], document["counts"], strict=True):
        if run.get("line_steps", 0) < FEWEST_STEPS:
            continue
        for file, counted in counts.items():
            known[file] |= {line for line, _ in counted}
            again[file] |= {line for line, steps in counted if steps > 1}
    return known, again


PACKAGE_COLUMNS = "package,tests passed,failed,not run,lines ran,waits,recall,findings,precision".split(",")


def package_row(path: Path, document: Document, name: str, findings: Sequence[Finding]) -> list[str]:
    """The tests of a package, and its waits as `../score.py` counts them."""
    truth = load(path)
    places = [
        Place(finding["path"], finding["line"], finding["end_line"], finding["code"])
        for finding in findings
        if waits.claims_wait(finding)
    ]
    result = score(truth, places, {place.package for place in (*places, *truth.sites)})
    outcomes: dict[str, int] = defaultdict(int)
    for run in document["runs"]:
        for outcome, count in run["outcomes"].items():
            outcomes[outcome] += count
    passed, skipped, late = (outcomes.pop(key, 0) for key in ("passed", "skipped", "too long"))
    not_run = outcomes.pop("not run", 0) + skipped
    lines = sum(map(len, truth.ran.values()))
    assert late <= outcomes["failed"], "a test that ran too long has failed"
    figures = [passed, sum(outcomes.values()), not_run, lines, result.sites]
    shares = [shown(result.recall if result.sites else None), str(result.judged)]
    return [name, *map(str, figures), *shares, shown(result.precision if result.judged else None)]


RULE_COLUMNS = ["rule", "ran", "confirmed", "no cost", "refuted", "undecided", "true", "found", "waits", "hot", "cold"]


def rule_row(code: str, rule: Rule) -> list[str]:
    """One row of the table."""
    rulings = [rule.rulings[ruling] for ruling in DECIDED]
    of_facts = f"{rule.found} of {rule.happened}" if rule.happened else ""
    heats = [f"{part} of {whole}" if whole else "" for part, whole in heats_of(rule)]
    counts = [rule.ran, *rulings, rule.ran - sum(rulings)]
    return [code, *map(str, counts), shown(rule.true), of_facts, str(rule.waits or ""), *heats]


def heats_of(rule: Rule) -> list[tuple[int, int]]:
    """What was called hot, and cold, and was."""
    return [(rule.hot, rule.called_hot), (rule.cold, rule.called_cold)]


def shown(value: float | None) -> str:
    """A share, empty if there is none."""
    return "" if value is None else f"{value:.3f}"


def in_json(rules: Mapping[str, Rule]) -> dict[str, Document]:
    """The counts and shares of each rule."""
    return {
        code: asdict(replace(rule, rulings=dict(rule.rulings))) | {"true": rule.true}
        for code, rule in sorted(rules.items())
    }


def show(findings: Iterable[Finding], code: str) -> None:
    """Print the findings of a rule."""
    for finding in findings:
        if finding["code"] == code and finding["verdict"] is not None:
            verdict = finding["verdict"]
            print(f"{finding['path']}:{finding['line']} {finding['heat']} {verdict['ruling']}: {verdict['why']}")


if __name__ == "__main__":
    main()
