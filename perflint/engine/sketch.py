"""A first answer to an edit: the findings of the functions that changed, and those of before on lines that did not."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from perflint.config.settings import Settings
from perflint.engine.active import rules_for_file
from perflint.engine.file import Judge, check_source
from perflint.findings import Finding, Report, Span
from perflint.frozen import dataclass, replace
from perflint.rules.precedence import speaking
from perflint.rules.registry import RuleSet
from perflint.semantics.project import Project
from perflint.source.changed import changed_lines
from perflint.source.text import Source


@dataclass(frozen=True, slots=True)
class Edited:
    """The lines that an edit changed, and all lines of the functions and statements that they are in."""

    before: range
    """The lines that changed, as they were before the edit."""
    shift: int
    """The number of lines that came, less those that went."""
    part: range
    """The lines of the functions, methods and other statements that hold a change, after the edit."""

    def line(self, line: int) -> int | None:
        """The present number of a line; None for one that changed."""
        if line in self.before:
            return None
        return line if line < self.before.start else line + self.shift

    def span(self, span: Span) -> Span | None:
        """The present place of a stretch that begins and ends on lines that did not change; None for others."""
        first, last = self.line(span.line), self.line(span.end_line)
        if first is None or last is None:
            return None
        return Span(first, span.column, last, span.end_column)


def sketch(
    before: Source,
    findings: Sequence[Finding],
    source: Source,
    project: Project,
    rules: RuleSet,
    settings: Settings,
    judge: Judge | None = None,
) -> Report:
    """The report of a file after an edit, where `findings` are those of the text before it, which can be parsed.

    Findings stay on lines that did not change, and move with them. Their words stay as they are. Rules look at the
    functions that changed, but for those about whole files and comments. The run follows fewer calls than a check, so
    that a finding of before may hold although it is not found again: the check decides.
    """
    try:
        edit = edited(before, source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return check_source(source, project, rules, settings, judge=judge)
    report = check_source(source, project, rules, settings, judge=judge, part=edit.part)
    here = rules_for_file(rules, settings, source.path).rules
    found = {(finding.code, finding.span) for finding in report.findings}
    for finding in findings:
        span = edit.span(finding.span)
        if span is not None and (finding.code, span) not in found:
            # An edit of the text before it must not be made in this one.
            report.findings.append(replace(finding, span=span, parts=(), fix=None))
    speak = speaking(report.findings, here).findings
    report.findings = sorted(speak, key=lambda finding: (finding.span, finding.code))
    return report


def edited(before: Source, source: Source) -> Edited:
    """The difference between two texts of a file. Raises as `ast.parse` does."""
    changed = changed_lines(before.lines, source.lines)
    shift = len(source.lines) - len(before.lines)
    # A function that lost its last line has changed, too, although no changed line is left in it.
    whole = _whole(before.tree.body, changed)
    part = _whole(source.tree.body, range(whole.start, whole.stop + shift))
    return Edited(changed, shift, part)


def _whole(body: list[ast.stmt], lines: range) -> range:
    """Some lines, and all lines of the functions and statements of a block that they are in.

    A class counts as its methods and the other statements in it, unless its head is among the lines.
    """
    start, stop = lines.start, lines.stop
    for statement in body:
        own = range(_first(statement), (statement.end_lineno or statement.lineno) + 1)
        # Lines that came between two others are an empty range before the edit.
        if own.start >= lines.stop or own.stop <= lines.start:
            continue
        if isinstance(statement, ast.ClassDef) and lines.start >= _first(statement.body[0]) > statement.lineno:
            own = _whole(statement.body, lines)
        start, stop = min(start, own.start), max(stop, own.stop)
    return range(start, stop)


def _first(statement: ast.stmt) -> int:
    """The first line of a statement, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])
