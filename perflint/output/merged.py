"""Reports from the JSON documents that perflint writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from perflint.engine.house import CODE, NAME
from perflint.findings import Elsewhere, Finding, Problem, Report, Ruling, Silenced
from perflint.frozen import dataclass
from perflint.output.json import VERSION
from perflint.source.strict_json import NotJson, parsed
from perflint.source.typed_json import Unfit, record


class NotAReport(Exception):
    """A text that is not a JSON document of `perflint check`; the message has the reason."""


@dataclass(frozen=True, slots=True)
class _Summary:
    """The numbers of a run, as far as its other parts do not have them."""

    files: int
    lines: int
    unchanged: int
    hidden: dict[str, int]
    verdicts: dict[Ruling, int]
    shard: tuple[int, int] = (1, 1)
    listing: str = ""


@dataclass(frozen=True, slots=True)
class _Document:
    """The document of a report."""

    findings: tuple[Finding, ...]
    errors: tuple[Problem, ...]
    silenced: tuple[Silenced, ...]
    elsewhere: tuple[Elsewhere, ...]
    summary: _Summary


def read_report(data: bytes) -> Report:
    """The report of a JSON document. Raises NotAReport."""
    try:
        values = parsed(data)
    except NotJson as error:
        raise NotAReport(str(error)) from None
    if not isinstance(values, dict) or "version" not in values or "summary" not in values:
        raise NotAReport("it is not a report of perflint")
    if values["version"] != VERSION:
        raise NotAReport(f"its version is {values['version']}, and this perflint reads version {VERSION}")
    if "statistics" in values:
        raise NotAReport("it has counts in place of findings; leave `--statistics` out where it is written")
    try:
        document = record(_Document, values, readers=_READERS)
    except Unfit as error:
        raise NotAReport(str(error)) from None
    summary = document.summary
    return Report(
        findings=[*document.findings],
        problems=[*document.errors],
        files=summary.files,
        lines=summary.lines,
        silenced=[*document.silenced],
        elsewhere=[*document.elsewhere],
        unchanged=summary.unchanged,
        hidden=summary.hidden,
        verdicts=summary.verdicts,
        shard=summary.shard,
        listing=summary.listing,
    )


def _of_form(pattern: str) -> Callable[[str], str]:
    """Reads texts of a form, for places where other texts would do harm."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(text)
        return text

    return read


def _pair(sign: str, first: str) -> Callable[[str], tuple[int, int]]:
    """Reads two numbers with a sign between them, each of which begins with some digits."""
    of_form = _of_form(rf"{first}\d{{0,5}}{re.escape(sign)}{first}\d{{0,5}}")

    def read(text: str) -> tuple[int, int]:
        left, right = of_form(text).split(sign)
        return int(left), int(right)

    return read


_READERS = {
    "code": _of_form(CODE),
    "name": _of_form(NAME),
    "listing": _of_form("[0-9a-f]{16}"),
    "shard": _pair("/", "[1-9]"),
    "since": _pair(".", r"\d"),
}


def merged(reports: Sequence[Report]) -> Report:
    """The report of a run whose parts have the given reports: sorted by path, by position within a file.

    With verdicts of traces, what costs most comes first. A problem that all parts have is that of the run.
    """
    from perflint.tracer.verdicts import by_cost

    total = Report()
    for report in reports:
        total.add(report)
    total.findings.sort(key=lambda finding: place(finding.path))
    total.elsewhere.sort(key=lambda each: place(each.path))
    if any(finding.verdict is not None for finding in total.findings):
        total.findings.sort(key=by_cost)
    total.silenced.sort(key=lambda each: place(each.finding.path))
    total.problems = [*_missing(reports), *_problems([report.problems for report in reports])]
    return total


def _missing(reports: Sequence[Report]) -> Iterator[Problem]:
    """The parts of a run that have no report, and runs whose parts are of other files: findings would be missing."""
    shards = {report.shard for report in reports}
    for count in sorted({parts for _, parts in shards}):
        lost = [part for part in range(1, count + 1) if (part, count) not in shards]
        if lost:
            named = ", ".join(map(str, lost[:5])) + (" …" if len(lost) > 5 else "")
            help = "its job may have failed; merge the reports of all parts"
            yield Problem("", f"there is no report of part {named} of {count}", help)
        if len({report.listing for report in reports if report.shard[1] == count}) > 1:
            help = "a job has made or removed files before its check; check the same files in each"
            yield Problem("", f"the {count} parts are not of the same files", help)


def place(path: str) -> tuple[str, ...]:
    """A sort key for paths that gives the order in which a folder is searched."""
    return tuple(path.replace("\\", "/").split("/"))


def _problems(parts: Sequence[Sequence[Problem]]) -> Iterator[Problem]:
    """The problems of all parts once, then the others by path."""
    first, *others = parts
    common = [problem for problem in first if all(problem in other for other in others)]
    yield from common
    rest = [problem for part in parts for problem in part if problem not in common]
    yield from sorted(rest, key=lambda problem: place(problem.path))
