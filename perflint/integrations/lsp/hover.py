"""The text of a hover: the findings at a place, and the beliefs about the expression there."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import Hover, MarkupContent, MarkupKind

from perflint.config.settings import Settings
from perflint.engine.explain import Belief, Explanation
from perflint.engine.rulebook import all_rules
from perflint.findings import Finding, Span
from perflint.integrations.lsp.positions import Positions
from perflint.integrations.lsp.session import Checked
from perflint.output.pages import summary
from perflint.output.summary import verdict_text
from perflint.output.terminal import printable
from perflint.output.writer import rule_url
from perflint.semantics.heat.reasons import OFTEN
from perflint.semantics.values import Array, Instance
from perflint.source.quoting import quoted

_MOST_BELIEFS = 2
_MOST_STEPS = 4


def hover(checked: Checked, explanation: Explanation | None, place: tuple[int, int], encoding: str) -> Hover | None:
    """The text for a place; None for a place without findings and beliefs."""
    findings = [each for each in checked.findings if each.span.covers(*place)]
    beliefs = [] if explanation is None else [each for each in explanation.beliefs if findings or _is_of_use(each)]
    parts = [_finding_text(finding, checked.settings) for finding in findings]
    parts += [_belief_text(belief) for belief in beliefs[:_MOST_BELIEFS]]
    if explanation is not None and parts:
        parts.append(f"heat: **{explanation.heat.value}**, {OFTEN[explanation.heat]}")
    if not parts:
        return None
    span = _innermost([span for belief in beliefs for span in belief.spans], place) or (
        findings[0].span if findings else None
    )
    where = None if span is None else Positions(checked.source, encoding).range(span)
    return Hover(MarkupContent(MarkupKind.Markdown, "\n\n".join(parts)), where)


def _finding_text(finding: Finding, settings: Settings) -> str:
    address = rule_url(settings.rule_url, finding)
    about = _summary(finding.code, settings)
    name = f"{finding.code} {finding.name}"
    return "\n\n".join(
        printable(line)
        for line in (
            f"**[{name}]({address})**: {finding.message}" if address else f"**{name}**: {finding.message}",
            f"*why*: {finding.why}" if finding.why else "",
            f"*trace*: {verdict_text(finding.verdict)}" if finding.verdict is not None else "",
            f"*cost*: {finding.cost}" if finding.cost else "",
            f"*help*: {finding.help}" if finding.help else "",
            f"*rule*: {about}" if about else "",
        )
        if line
    )


def _summary(code: str, settings: Settings) -> str:
    return next((summary(rule) for rule in all_rules(settings) if rule.code == code), "")


def _is_of_use(belief: Belief) -> bool:
    """True for tensors, arrays and objects: a hover over other code is left to other servers."""
    return belief.value.tensor is not None or any(
        isinstance(member, (Array, Instance)) for member in belief.value.members
    )


def _belief_text(belief: Belief) -> str:
    return "\n".join((f"{quoted(printable(belief.text))}: {printable(belief.words)}", *_steps(belief)))


def _steps(belief: Belief) -> Iterator[str]:
    for step in belief.steps[:_MOST_STEPS]:
        place = "" if step.line is None else f"line {step.line}: "
        if step.line is not None and step.path is not None:
            place = f"{printable(step.path.name)}:{step.line}: "
        yield f"- {place}{printable(step.text)}"


def _innermost(spans: list[Span], place: tuple[int, int]) -> Span | None:
    around = [span for span in spans if span.covers(*place)]
    return max(around, key=lambda span: (span.line, span.column, -span.end_line, -span.end_column), default=None)
