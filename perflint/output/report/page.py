"""Puts the page together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perflint.output.report.checked import Advice, Checked, advice
from perflint.output.report.code import Code
from perflint.output.report.facts import Facts, gather
from perflint.output.report.lines import allowed_waits, copies, line_table
from perflint.output.report.markup import Markup, breakable, join, tag
from perflint.output.report.overview import overview
from perflint.output.report.parts import Names, Section, folded
from perflint.output.report.ranks import side_by_side
from perflint.output.report.shell import whole_page
from perflint.output.report.steps import step_times
from perflint.output.report.tables import compilation, kernels, memory, modules
from perflint.output.report.timeline import timeline
from perflint.output.report.verdicts import experiments, verdicts
from perflint.output.summary import counted_by
from perflint.tracer.events import Header
from perflint.tracer.trace import Trace

TRACES = 8
"""Traces that are shown whole; more are rows of a table."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trace to show."""

    name: str
    """Of its file."""
    trace: Trace
    root: Path
    """The folder of its source files."""


def report_page(recorded: Sequence[Recorded], version: str, checked: Checked | None = None) -> str:
    """One page about some traces, with the verdicts on what the linter found.

    HTML that is well-formed XML, too, and holds only characters that can be encoded.
    """
    shown = [(each, gather(each.trace)) for each in recorded]
    said = advice(checked, [facts for _, facts in shown])
    elsewhere = [finding for findings in said.findings.values() for finding in findings]
    first = recorded[0].trace.header
    title = _program(first)
    if len(shown) == 1:
        sections = _sections(*shown[0], Names(""), said)
        at = 1 + any(each.id == "lines" for each in sections)
        sections[at:at] = _present(verdicts(checked, elsewhere))
    else:
        whole = [_article(*each, number, said) for number, each in enumerate(shown[:TRACES])]
        sections = [
            side_by_side([(_label(each), each.name, facts) for each, facts in shown], TRACES),
            *_present(verdicts(checked, elsewhere)),
            *whole,
        ]
    return whole_page(f"{title} – perflint report", _masthead(title, first, shown), sections, version)


def _program(header: Header) -> str:
    return " ".join(header.program).removeprefix(f"{header.root}/") if header.program else "a traced block"


def _masthead(title: str, header: Header, shown: Sequence[tuple[Recorded, Facts]]) -> Markup:
    gpus = ", ".join(dict.fromkeys(header.devices)) or ("simulated" if header.simulated else "none")
    if len(header.devices) > len(set(header.devices)):
        gpus = f"{len(header.devices)} × {gpus}"
    facts = [
        ("GPU", gpus),
        ("torch", header.torch or "not imported"),
        ("Python", header.python),
        ("recorded", header.started.replace("T", " ").removesuffix("+00:00") + " UTC" if header.started else "—"),
        ("steps", f"{header.steps:,}" + (f", {counted_by(header.step_source)}" if header.step_source else "")),
    ]
    if len(shown) > 1:
        facts.append(("traces", f"{len(shown)}"))
    return join(
        tag("p", "perflint report", class_="brand"),
        tag("h1", tag("code", breakable(title))),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
    )


def _sections(recorded: Recorded, facts: Facts, names: Names, said: Advice) -> list[Section]:
    code = Code(recorded.trace, recorded.root)
    more = _present(
        step_times(facts, names),
        allowed_waits(facts, names),
        copies(facts, names),
        compilation(facts, names),
        memory(facts, names),
        modules(facts, names),
    )
    found = _present(
        line_table(facts, code, names, said),
        experiments(facts, names),
        timeline(facts, names),
        kernels(facts, names),
        folded(names, more),
    )
    # Made last, because it says which sources could not be shown.
    return [overview(facts, code, names), *found]


def _present(*sections: Section | None) -> list[Section]:
    return [each for each in sections if each is not None]


def _article(recorded: Recorded, facts: Facts, number: int, said: Advice) -> Section:
    """All of one of several traces."""
    sections = _sections(recorded, facts, Names(f"t{number}-"), said)
    return Section(f"t{number}", _label(recorded), join([each.shown(3) for each in sections]))


def _label(recorded: Recorded) -> str:
    header = recorded.trace.header
    return f"Rank {header.rank} of {header.world_size}" if header.world_size > 1 else recorded.name
