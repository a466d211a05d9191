"""Reports from the JSON documents that perflint writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

from perflint.engine.house import CODE, NAME
from perflint.findings import (
    Confidence,
    Edit,
    Effect,
    Elsewhere,
    Finding,
    Fix,
    Frequency,
    Heat,
    Judgement,
    Need,
    Problem,
    Purpose,
    Report,
    Ruling,
    Safety,
    Severity,
    Silenced,
    Silencer,
    Span,
    Verdict,
)
from perflint.output.json import VERSION
from perflint.source.strict_json import NotJson, parsed

_Kind = TypeVar("_Kind")
_Member = TypeVar("_Member", bound=Enum)


_GREATEST = 1 << 53


class NotAReport(Exception):
    """A text that is not a JSON document of `perflint check`; the message has the reason."""


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
    document = _Object(values, "")
    summary = document.object("summary")
    return Report(
        findings=[_finding(each) for each in document.objects("findings")],
        problems=[_problem(each) for each in document.objects("errors")],
        files=summary.get("files", int),
        lines=summary.get("lines", int),
        silenced=[_silenced(each) for each in document.objects("silenced")],
        elsewhere=[
            Elsewhere(each.get("path", str), each.optional("function", str), each.get("count", int))
            for each in document.objects("elsewhere")
        ],
        unchanged=summary.get("unchanged", int),
        hidden=dict(summary.counts("hidden")),
        verdicts={_member(Ruling, name, "verdicts"): count for name, count in summary.counts("verdicts")},
        shard=_shard(summary) if "shard" in values["summary"] else (1, 1),
        listing=summary.matching("listing", r"[0-9a-f]{16}") if "shard" in values["summary"] else "",
    )


def _shard(summary: _Object) -> tuple[int, int]:
    part, _, parts = summary.matching("shard", r"[1-9]\d{0,5}/[1-9]\d{0,5}").partition("/")
    return int(part), int(parts)


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


class _Object:
    """A JSON object, whose values are of the types that they are asked for."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = values
        self._where = where

    def has(self, name: str) -> bool:
        """True if a value is there and not null."""
        return self._value(name) is not None

    def get(self, name: str, kind: type[_Kind]) -> _Kind:
        """A value. Raises NotAReport, as all methods do."""
        value = self._value(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise NotAReport(f"`{self._where}{name}` is not what perflint writes")
        if isinstance(value, (int, float)) and abs(value) > _GREATEST:
            raise NotAReport(f"`{self._where}{name}` is too large")
        return value

    def matching(self, name: str, pattern: str) -> str:
        """A text of a form, for places where other texts would do harm."""
        value = self.get(name, str)
        if not re.fullmatch(pattern, value):
            raise NotAReport(f"`{self._where}{name}` is not what perflint writes")
        return value

    def optional(self, name: str, kind: type[_Kind]) -> _Kind | None:
        """A value, or None for null."""
        return self.get(name, kind) if self.has(name) else None

    def number(self, name: str) -> float:
        """A number as it is written, with or without a fraction."""
        return self.get(name, int) if isinstance(self._value(name), int) else self.get(name, float)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        values = self.get(name, list)
        if not all(isinstance(value, str) for value in values):
            raise NotAReport(f"`{self._where}{name}` is not what perflint writes")
        return tuple(values)

    def object(self, name: str) -> _Object:
        """An object within this one."""
        return _Object(self.get(name, dict), f"{self._where}{name}.")

    def objects(self, name: str) -> Iterator[_Object]:
        """The objects of a list."""
        for index, value in enumerate(self.get(name, list)):
            where = f"{self._where}{name}[{index}]"
            if not isinstance(value, dict):
                raise NotAReport(f"`{where}` is not what perflint writes")
            yield _Object(value, f"{where}.")

    def counts(self, name: str) -> Iterable[tuple[str, int]]:
        """The counts in an object by their names."""
        found = self.object(name)
        return [(each, found.get(each, int)) for each in found._values]

    def member(self, kind: type[_Member], name: str) -> _Member:
        """The member of an enumeration that a value names."""
        return _member(kind, self.get(name, str), f"{self._where}{name}")

    def span(self) -> Span:
        """The span in the object."""
        places = [self.get(name, int) for name in ("line", "column", "end_line", "end_column")]
        if min(places) < 1:
            raise NotAReport(f"`{self._where}line` or a column is less than 1")
        return Span(*places)

    def _value(self, name: str) -> Any:
        if name not in self._values:
            raise NotAReport(f"`{self._where}{name}` is missing; another version of perflint may have written it")
        return self._values[name]


def _member(kind: type[_Member], value: str, where: str) -> _Member:
    for member in kind:
        if member.value == value:
            return member
    raise NotAReport(f"`{where}` has the unknown value `{value}`")


def _finding(values: _Object) -> Finding:
    return Finding(
        path=values.get("path", str),
        cell=values.optional("cell", int),
        span=values.span(),
        code=values.matching("code", CODE),
        name=values.matching("name", NAME),
        message=values.get("message", str),
        severity=values.member(Severity, "severity"),
        confidence=values.member(Confidence, "confidence"),
        heat=values.member(Heat, "heat"),
        effect=values.member(Effect, "effect"),
        help=values.optional("help", str),
        fix=_fix(values.object("fix")) if values.has("fix") else None,
        verdict=_verdict(values.object("verdict")) if values.has("verdict") else None,
        why=values.optional("why", str),
        cost=values.optional("cost", str),
        function=values.optional("function", str),
        group=values.optional("group", str),
        judgement=_judgement(values.object("judgement")) if values.has("judgement") else None,
    )


def _judgement(values: _Object) -> Judgement:
    return Judgement(
        frequency=values.member(Frequency, "frequency"),
        purpose=values.member(Purpose, "purpose"),
        need=values.member(Need, "need"),
        is_information=values.get("is_information", bool),
        reason=values.get("reason", str),
        evidence=values.get("evidence", str),
    )


def _fix(values: _Object) -> Fix:
    return Fix(
        message=values.get("message", str),
        safety=values.member(Safety, "safety"),
        edits=tuple(
            Edit(edit.span(), edit.get("text", str), edit.optional("cell", int)) for edit in values.objects("edits")
        ),
        imports=values.texts("imports"),
        since=_version(values.get("since", str)) if values.has("since") else None,
    )


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise NotAReport(f"`{text}` is not a version of torch")
    return int(major), int(minor)


def _verdict(values: _Object) -> Verdict:
    return Verdict(
        ruling=values.member(Ruling, "ruling"),
        why=values.get("why", str),
        ms=values.number("ms") if values.has("ms") else None,
        share=values.number("share") if values.has("share") else None,
        per_step=values.number("per_step"),
        ratio=values.number("ratio") if values.has("ratio") else None,
    )


def _problem(values: _Object) -> Problem:
    return Problem(
        path=values.get("path", str),
        cell=values.optional("cell", int),
        message=values.get("message", str),
        help=values.optional("help", str),
        line=values.optional("line", int),
        column=values.optional("column", int),
        internal=values.get("internal", bool),
    )


def _silenced(values: _Object) -> Silenced:
    return Silenced(_finding(values.object("finding")), values.member(Silencer, "by"), values.get("reason", str))
