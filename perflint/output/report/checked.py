"""The findings of the linter in the traced files."""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perflint.findings import Finding, Ruling, Safety
from perflint.output.report.facts import Facts
from perflint.output.report.markup import Markup, join, tag, with_code
from perflint.rules.registry import names

_OPTIONS = {Safety.SAFE: "", Safety.UNSAFE: "--unsafe-fixes ", Safety.RISKY: "--risky-fixes "}


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings of the linter, with the verdicts of the traces."""

    findings: tuple[Finding, ...]
    """The most costly first."""
    stale: tuple[str, ...] = ()
    """Files that have changed since they were traced."""
    unread: tuple[str, ...] = ()
    """Files that could not be checked, each with the reason."""
    folder: str = ""
    """The folder that paths are shown relative to."""
    traces: tuple[str, ...] = ()
    """The files of the traces, as the user named them."""

    def shown(self, path: str) -> str:
        """A path below the folder of the traced program, else as it is."""
        prefix = os.path.join(os.path.abspath(self.folder), "") if self.folder else ""
        full = os.path.abspath(path)
        return full[len(prefix) :].replace(os.sep, "/") if prefix and full.startswith(prefix) else path


@dataclass(frozen=True, slots=True)
class Advice:
    """The findings that touch lines that wait in a trace; each is shown there, and not again with the others."""

    findings: Mapping[tuple[str, int], Sequence[Finding]]
    """The findings of a line, by its file and number."""
    traces: tuple[str, ...] = ()

    def of(self, file: str, line: int) -> Markup:
        """The findings of a line: the cause, its reason, the cure and the command that writes it."""
        return join([_advised(finding, self.traces) for finding in self.findings.get((file, line), ())[:4]])


def advice(checked: Checked | None, facts: Sequence[Facts]) -> Advice:
    """The advice of the linter on the lines of some traces."""
    waiting = {(line.file, line.line) for each in facts for line in each.lines}
    found: defaultdict[tuple[str, int], list[Finding]] = defaultdict(list)
    for finding in checked.findings if checked is not None else ():
        assert checked is not None
        file = checked.shown(finding.path)
        for number in range(finding.span.line, finding.span.end_line + 1):
            if (file, number) in waiting:
                found[file, number].append(finding)
                break
    return Advice(found, checked.traces if checked is not None else ())


def _advised(finding: Finding, traces: Sequence[str]) -> Markup:
    rule = tag("small", tag("code", finding.code), f" {names().get(finding.code, finding.name)}")
    parts = [tag("p", with_code(finding.message), " ", rule, class_="message")]
    if finding.verdict is not None:
        verdict = f"{finding.verdict.ruling.value}: {finding.verdict.why}"
        parts.append(tag("p", f"The trace: {verdict}.", class_="callers"))
    if finding.why:
        parts.append(tag("p", with_code(f"Why: {finding.why}."), class_="callers"))
    return join(parts, cure(finding, traces))


def cure(finding: Finding, traces: Sequence[str]) -> Markup:
    """The cure of a finding, the command that writes its fix, and the one that explains the rule."""
    parts = []
    if finding.help:
        parts.append(tag("p", with_code(f"What to do: {finding.help}"), class_="callers"))
    if finding.fix is not None:
        parts.append(tag("p", with_code(f"Fix ({finding.fix.safety.value}): {finding.fix.message}"), class_="callers"))
        options = _OPTIONS.get(finding.fix.safety)
        if options is not None:
            # With a trace, `perflint fix` leaves out what the trace did not confirm.
            is_confirmed = finding.verdict is not None and finding.verdict.ruling is Ruling.CONFIRMED
            named = shlex.join(word for trace in traces for word in ("--trace", trace))
            chosen = named if is_confirmed and named else f"--select {finding.code}"
            parts.append(tag("p", tag("code", f"perflint fix {chosen} {options}--apply"), class_="callers"))
    parts.append(tag("p", "More: ", tag("code", f"perflint rule {finding.code}"), class_="callers"))
    return join(parts)
