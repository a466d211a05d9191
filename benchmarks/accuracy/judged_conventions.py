"""The conventions that judged findings rest on.

`judged_conventions.jsonl` has one judged finding a line: its place, and the entries of conventions behind it, as
`perflint explain` names them; null if the rules no longer report it. Findings whose sources were not at hand are
missing.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflint import findings as claims
from perflint.config.settings import Settings
from perflint.engine.active import active_rules
from perflint.engine.file import run_rules
from perflint.engine.places import nodes_of
from perflint.engine.projects import Projects
from perflint.engine.why import Whys
from perflint.rules.registry import RuleSet
from perflint.semantics.depth import deep_stack
from perflint.semantics.explain.reasons import Reasons
from perflint.semantics.facts import concepts
from perflint.semantics.heat.reasons import HeatReasons
from perflint.semantics.model import Model
from perflint.source.reading import read
from perflint.source.text import Source

RECORD = Path(__file__).with_name("judged_conventions.jsonl")
TABLES = Path(__file__).parents[2] / "perflint" / "semantics" / "facts" / "conventions.toml"

Finding = dict[str, Any]
Place = tuple[str, str, str, int]
"""Rule, package, path and line."""
Entry = tuple[str, str]
"""Concept and entry."""
Record = dict[Place, "tuple[Entry, ...] | None"]


@dataclass(slots=True)
class Sum:
    """How many judged findings rest on something, and how many of them were true."""

    true: int = 0
    of: int = 0


def place(finding: Finding) -> Place:
    """The place of a finding."""
    return finding["rule"], finding["package"], finding["path"], finding["line"]


def recorded(judged: Iterable[Finding], package: str, root: Path) -> Record:
    """The entries behind the judged findings of a package whose sources are in a folder."""
    wanted: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in judged:
        if finding["package"] == package and (root / finding["path"]).is_file():
            wanted[finding["path"]].append(finding)
    settings = Settings()
    projects, rules = Projects(settings), active_rules(settings)
    found: Record = {}
    for path, findings in sorted(wanted.items()):
        entries = _entries(root / path, projects, rules)
        found |= {place(each): entries.get((each["rule"], each["line"])) for each in findings}
    return found


def _entries(path: Path, projects: Projects, rules: RuleSet) -> dict[tuple[str, int], tuple[Entry, ...]]:
    """The entries behind the findings of a file, by rule and line."""
    source = Source(str(path), read(str(path)).text)
    findings, model = run_rules(source, projects.of(path), rules, None, [])
    if model is None:
        return {}
    found: dict[tuple[str, int], tuple[Entry, ...]] = {}
    with deep_stack():
        for finding, entries in grounds(findings, model):
            here = finding.code, finding.span.line
            more = [(entry.concept, entry.text) for entry in entries]
            found[here] = tuple(dict.fromkeys([*found.get(here, ()), *more]))
    model.close()
    return found


def grounds(
    findings: Sequence[claims.Finding], model: Model
) -> Iterator[tuple[claims.Finding, tuple[concepts.Entry, ...]]]:
    """Each finding of a file with the entries of conventions that it rests on, as `perflint explain` prints them."""
    nodes = nodes_of(findings, model)
    whys, reasons, heat = Whys(model), Reasons(model), HeatReasons(model)
    for finding in findings:
        node = nodes.get(finding.span)
        if node is None:
            yield finding, ()
            continue
        subject = whys.subject(node) if whys.is_about_tensors(finding) else None
        steps = [] if subject is None else reasons.of(subject)
        if model.heat(node) is finding.heat:
            # Otherwise the rule decides the heat, not the place.
            steps += heat.of(node)
        yield finding, tuple(dict.fromkeys(entry for step in steps for entry in step.entries))


def read_record(text: str) -> Record:
    """The record as it is written in the file."""
    lines = map(json.loads, text.splitlines())
    return {place(each): None if each["entries"] is None else tuple(map(tuple, each["entries"])) for each in lines}


def written(record: Record) -> Iterator[str]:
    """The lines of the file."""
    for (rule, package, path, line), entries in sorted(record.items(), key=lambda item: item[0]):
        yield json.dumps({"rule": rule, "package": package, "path": path, "line": line, "entries": entries}) + "\n"


def sums(judged: Iterable[Finding], record: Record) -> dict[Entry, Sum]:
    """The judged findings that rest on each concept, as (concept, ""), and on each entry of it."""
    found: defaultdict[Entry, Sum] = defaultdict(Sum)
    for finding in judged:
        entries = record.get(place(finding)) or ()
        for key in dict.fromkeys([*((concept, "") for concept, _ in entries), *entries]):
            found[key].of += 1
            found[key].true += finding["true"]
    return dict(sorted(found.items()))


def table(judged: list[Finding], record: Record) -> str:
    """The concepts and their entries with the number of judged findings that rest on them, and a line on the rest."""
    lines = ["| convention | entry | judged | true | share |", "|---|---|---|---|---|"]
    for (concept, entry), each in sums(judged, record).items():
        lines.append(
            f"| {concept} | {f'`{entry}`' if entry else ''} | {each.of} | {each.true} | {each.true / each.of:.2f} |"
        )
    kinds = Counter(_kind(finding, record) for finding in judged)
    return "\n".join([*lines, "", "; ".join(f"{count} {kind}" for kind, count in kinds.most_common())])


def _kind(finding: Finding, record: Record) -> str:
    if place(finding) not in record:
        return "without sources at hand"
    entries = record[place(finding)]
    return "no longer reported" if entries is None else "rest on conventions" if entries else "rest on none"


def with_counts(text: str, counts: Mapping[Entry, Sum], date: str) -> str:
    """The text of `conventions.toml` with the counts of each concept; a concept without any has no counts."""
    text = re.sub(r"^judged = .*\n", "", text, flags=re.MULTILINE)
    for (concept, entry), each in counts.items():
        if not entry:
            head = f"[{concept}]\n"
            line = f'judged = {{ true = {each.true}, of = {each.of}, date = "{date}" }}\n'
            text = text.replace(head, head + line)
    return text
