"""How much a finding counts at its place: by how often the code runs, its purpose, and the need for the value.

The rows of `judgement.toml` decide.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from perflint.engine.doubts import OF_THE_DEVICE, doubted
from perflint.findings import Confidence, Finding, Frequency, Heat, Judgement, Need, Purpose, Severity
from perflint.frozen import dataclass, replace
from perflint.rules.base import Group, Rule
from perflint.semantics.purpose.frequency import frequency
from perflint.semantics.purpose.purpose import copied_from, purpose
from perflint.semantics.purpose.unreached import is_dead_line
from perflint.semantics.sites import FileSite, Site

_BY_HEAT = {Heat.HOT: Frequency.STEP, Heat.WARM: Frequency.UNKNOWN, Heat.COLD: Frequency.RUN}
"""The frequency of code of which a rule knows only the heat."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table. An empty set fits anything."""

    group: frozenset[Group]
    purpose: frozenset[Purpose]
    frequency: frozenset[Frequency]
    need: frozenset[Need]
    sure: bool | None
    is_information: bool
    reason: str

    def fits(self, group: Group, of: Judgement, sure: bool) -> bool:
        """True if each column fits."""
        return (
            (not self.group or group in self.group)
            and (not self.purpose or of.purpose in self.purpose)
            and (not self.frequency or of.frequency in self.frequency)
            and (not self.need or of.need in self.need)
            and self.sure in (None, sure)
        )


@cache
def rows() -> tuple[Row, ...]:
    """The rows of the table, in order. The last one fits anything."""
    text = Path(__file__).with_name("judgement.toml").read_text(encoding="utf-8")
    return tuple(map(_row, tomllib.loads(text)["row"]))


def _row(data: dict[str, Any]) -> Row:
    return Row(
        group=frozenset(map(Group, data.get("group", ()))),
        purpose=frozenset(map(Purpose, data.get("purpose", ()))),
        frequency=frozenset(map(Frequency, data.get("frequency", ()))),
        need=frozenset(map(Need, data.get("need", ()))),
        sure=data.get("sure"),
        is_information={"information": True, "price": False}[data["shown"]],
        reason=data["reason"],
    )


def judged(finding: Finding, rule: Rule, site: Site) -> Finding | None:
    """The finding as it counts at its place; None if its tensor is surely not on a GPU there."""
    believed = doubted(finding, site)
    if believed is None:
        return None
    facts = _facts(believed, rule, site)
    group = Group.OTHER if rule.group is Group.WAIT and finding.effect not in OF_THE_DEVICE else rule.group
    row = next(row for row in rows() if row.fits(group, facts, believed.confidence is Confidence.HIGH))
    return replace(
        believed,
        severity=Severity.INFO if row.is_information else believed.severity,
        heat=_heat(facts.frequency, believed.heat),
        judgement=replace(facts, is_information=row.is_information, reason=row.reason),
    )


def _facts(finding: Finding, rule: Rule, site: Site) -> Judgement:
    """The facts that the table asks about."""
    model = site.model
    if isinstance(site, FileSite):
        dead = model.heat_map.tests.is_retired or is_dead_line(model, finding.span.line)
        if dead:
            return Judgement(Frequency.NEVER, Purpose.UNREACHED, Need.OPEN)
        copied = copied_from(model)
        job = Purpose.OTHER if copied is None else Purpose.COPY
        return Judgement(_BY_HEAT[finding.heat], job, Need.OPEN, evidence=copied or "")
    often = frequency(model, site.node)
    if finding.heat is not site.heat and often is not Frequency.NEVER:
        often = _BY_HEAT[finding.heat]
    job, evidence = purpose(model, site.node)
    return Judgement(often, job, rule.need(site), evidence=evidence)


def _heat(often: Frequency, heat: Heat) -> Heat:
    """The rough view of a frequency, where it says more than the heat does."""
    if often is Frequency.NEVER:
        return Heat.COLD
    return Heat.WARM if often is Frequency.EPOCH and heat is Heat.HOT else heat
