"""Explanations of a line: for people, and as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from perflint.engine.decisions import Decision, Outcome
from perflint.engine.explain import Belief, Explanation
from perflint.findings import Heat, Judgement, Purpose, Report, Span, place_of
from perflint.output.excerpt import visible
from perflint.output.json import document
from perflint.output.notebooks import by_cell, in_words
from perflint.output.summary import count
from perflint.output.terminal import Style, printable, width
from perflint.semantics.explain.describe import EVIDENCE
from perflint.semantics.explain.reasons import Step
from perflint.semantics.facts.concepts import Entry, concept
from perflint.semantics.heat.reasons import OFTEN
from perflint.semantics.sites import device_confidence
from perflint.source.notebooks import Notebook
from perflint.source.quoting import quoted
from perflint.source.text import Source

VERSION = 1
_MOST_REASONS = 3
_COLOURS = {Heat.HOT: "red", Heat.WARM: "yellow", Heat.COLD: "cyan"}
_OUTCOMES = {
    Outcome.SHOWN: "yellow",
    Outcome.HIDDEN: "cyan",
    Outcome.SUPPRESSED: "cyan",
    Outcome.OFF: "cyan",
}


# For people


def explanation_text(explanation: Explanation, style: Style, all_rules: bool = False) -> str:
    """The line with carets below its expressions, then each expression, the heat and the rules with a finding.

    With `all_rules`, also the reason of each rule that looked at the line and found nothing.
    """
    text = _Text(explanation, style, all_rules)
    return "".join(f"{line.rstrip()}\n" for line in text.lines())


class _Text:
    def __init__(self, explanation: Explanation, style: Style, all_rules: bool) -> None:
        self._explanation = explanation
        self._all_rules = all_rules
        self._style = style
        self._notebook = explanation.source.notebook
        self._cell, self._line = _place(explanation.line, self._notebook)
        self._gutter = " " * len(str(self._line))

    def lines(self) -> Iterable[str]:
        explanation, style = self._explanation, self._style
        place = f"{printable(place_of(explanation.source.path, self._cell))}:{self._line}"
        yield f"{self._gutter}{style('-->', 'bold', 'blue')} {place}" + (
            f":{explanation.column}" if explanation.column is not None else ""
        )
        yield self._bar("")
        yield from self._excerpt()
        yield self._bar("")
        for line in self._notes():
            yield line if self._notebook is None else in_words(line, self._notebook)

    def _notes(self) -> Iterable[str]:
        for belief in self._explanation.beliefs:
            yield self._note(self._style(printable(quoted(belief.text)), "bold"), printable(belief.words))
            yield from self._steps(belief.steps)
        yield from self._heat()
        yield from self._decisions()

    def _bar(self, text: str) -> str:
        return f"{self._gutter} {self._style('|', 'bold', 'blue')} {text}"

    def _note(self, head: str, text: str) -> str:
        return f"{self._gutter} {self._style('=', 'bold', 'blue')} {head}: {text}"

    def _more(self, text: str) -> str:
        return f"{self._gutter}     {text}"

    def _steps(self, steps: Iterable[Step]) -> Iterable[str]:
        for step in steps:
            yield from self._step(step)

    def _step(self, step: Step) -> Iterable[str]:
        text = printable(step.text)
        if step.line is not None:
            place = f"line {step.line}" if step.path is None else f"{printable(_relative(step.path))}:{step.line}"
            text = f"{self._style(place, 'dim')}: {text}"
        yield self._more(text)
        for entry in step.entries:
            yield self._more(f"  {convention_text(entry)}")

    def _excerpt(self) -> Iterable[str]:
        explanation, style = self._explanation, self._style
        line = explanation.source.lines[explanation.line - 1].rstrip("\r\n")
        number = style(str(self._line), "bold", "blue")
        yield f"{number} {style('|', 'bold', 'blue')} {visible(line)}"
        for row in _rows([span for belief in explanation.beliefs for span in belief.spans]):
            yield self._bar(style(_carets(row, line), "bold", "green"))

    def _heat(self) -> Iterable[str]:
        explanation = self._explanation
        heat = self._style(explanation.heat.value, "bold", _COLOURS[explanation.heat])
        head = "heat of its body" if explanation.is_body else "heat"
        yield self._note(self._style(head, "bold"), f"{heat}, {OFTEN[explanation.heat]}")
        yield from self._steps(explanation.heat_steps)

    def _decisions(self) -> Iterable[str]:
        if not self._explanation.decisions:
            yield self._note(self._style("rules", "bold"), "no rule applies to this line")
        silent: dict[str, list[str]] = {}
        for decision in self._explanation.decisions:
            name = f"{decision.code} {decision.name}"
            if decision.finding is None:
                silent.setdefault(name, []).append(decision.why)
                continue
            outcome = self._style(decision.outcome.value, _OUTCOMES[decision.outcome])
            why = f": {printable(decision.why)}" if decision.why else ""
            yield self._note(self._style(name, "bold"), f"{outcome}{_facts(decision)}{why}")
            yield self._more(printable(decision.finding.message))
            if decision.finding.why:
                yield self._more(f"because {printable(decision.finding.why)}")
            if decision.finding.judgement is not None:
                yield self._more(_judgement(decision.finding.judgement))
            if decision.finding.cost:
                yield self._more(f"cost: {printable(decision.finding.cost)}")
        if silent and not self._all_rules:
            rules = count(len(silent), "rule")
            yield self._note(self._style("no finding", "bold"), f"{rules} looked at this line (`--all` lists them)")
            return
        together: dict[str, list[str]] = {}
        for name, reasons in silent.items():
            together.setdefault(_some(list(dict.fromkeys(reasons))), []).append(name)
        for reason, names in together.items():
            yield self._note(self._style("no finding", "bold"), printable(reason))
            yield self._more(self._style(", ".join(names), "dim"))


def convention_text(entry: Entry) -> str:
    """The entry of a convention, and how many of the judged findings that rest on its concept were true."""
    counts = concept(entry.concept).judged
    share = "no judged finding rests on it"
    if counts is not None:
        share = f"{counts.true} of {counts.of} judged findings that rest on it were true"
    # A regular expression says less than its concept.
    text = "" if entry.text.startswith("/") else f", entry {quoted(entry.text)}"
    return f"convention {quoted(entry.concept)}{text}: {share}"


def _some(reasons: list[str]) -> str:
    return "; ".join(reasons if len(reasons) <= _MOST_REASONS else [*reasons[:_MOST_REASONS], "and so on"])


def _facts(decision: Decision) -> str:
    finding = decision.finding
    assert finding is not None
    return f" ({finding.severity.value}, {finding.confidence.value} confidence, {finding.heat.value})"


def _judgement(of: Judgement) -> str:
    """The facts that decide how much a finding counts, in one line."""
    shown = f" ({of.evidence})" if of.evidence else ""
    purpose = "" if of.purpose is Purpose.OTHER else f"; purpose: {of.purpose.value}{shown}"
    need = f"; {of.need.words}" if of.need.words else ""
    return f"it {of.frequency.words}{purpose}{need}"


def _rows(spans: Iterable[Span]) -> list[list[Span]]:
    """Spans in rows, none of which holds two that touch."""
    rows: list[list[Span]] = []
    for span in sorted(set(spans), key=lambda span: (span.column, -span.end_line, -span.end_column)):
        free = (row for row in rows if row[-1].end_line == span.line and row[-1].end_column < span.column)
        row = next(free, None)
        if row is None:
            rows.append([span])
        else:
            row.append(span)
    return rows


def _carets(row: list[Span], line: str) -> str:
    text = ""
    for span in row:
        goes_on = span.end_line > span.line
        end = len(line) if goes_on else span.end_column - 1
        start = width(visible(line[: span.column - 1]))
        marks = "^" * max(width(visible(line[span.column - 1 : end])), 1)
        text = text.ljust(start) + marks + ("..." if goes_on else "")
    return text


def _relative(path: Path) -> str:
    """A path relative to the working directory, or as it is if it lies outside."""
    relative = os.path.relpath(path)
    return os.path.normpath(path) if relative.startswith(os.pardir) else relative


# For programs


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """An explanation as values of JSON."""
    notebook = explanation.source.notebook
    cell, line = _place(explanation.line, notebook)
    return {
        "version": VERSION,
        "path": explanation.source.path,
        "cell": cell,
        "line": line,
        "column": explanation.column,
        "source": explanation.source.lines[explanation.line - 1].rstrip("\r\n"),
        "expressions": [_belief(belief, notebook) for belief in explanation.beliefs],
        "heat": {
            "heat": explanation.heat.value,
            "of_body": explanation.is_body,
            "why": [_step(step, notebook) for step in explanation.heat_steps],
        },
        "rules": [_decision(decision, explanation.source) for decision in explanation.decisions],
        "errors": document(Report(problems=explanation.problems))["errors"],
    }


def _belief(belief: Belief, notebook: Notebook | None) -> dict[str, Any]:
    return {
        "text": belief.text,
        "places": [_span(span, notebook) for span in belief.spans],
        "value": belief.words,
        "tensor": _tensor(belief),
        "why": [_step(step, notebook) for step in belief.steps],
    }


def _tensor(belief: Belief) -> dict[str, Any] | None:
    tensor = belief.value.tensor
    if tensor is None:
        return None
    confidence = device_confidence(belief.value)
    return {
        "device": tensor.device.value,
        "kind": tensor.kind.value,
        "rank": tensor.rank,
        "pinned": tensor.pinned,
        "evidence": EVIDENCE[tensor.evidence],
        "on_device": None if confidence is None else confidence.value,
    }


def _decision(decision: Decision, source: Source) -> dict[str, Any]:
    finding = decision.finding
    report = Report(findings=[] if finding is None else [finding])
    found = [each for _, part in by_cell(source, report) for each in part.findings]
    return {
        "code": decision.code,
        "name": decision.name,
        **_span(decision.span, source.notebook),
        "decision": decision.outcome.value,
        "why": decision.why,
        "finding": document(Report(findings=found))["findings"][0] if found else None,
    }


def _step(step: Step, notebook: Notebook | None) -> dict[str, Any]:
    here = notebook if step.path is None else None
    cell, line = (None, None) if step.line is None else _place(step.line, here)
    return {
        "text": step.text if notebook is None else in_words(step.text, notebook),
        "cell": cell,
        "line": line,
        "path": None if step.path is None else _relative(step.path),
        "conventions": [_convention(entry) for entry in step.entries],
    }


def _convention(entry: Entry) -> dict[str, Any]:
    counts = concept(entry.concept).judged
    judged = None if counts is None else {"true": counts.true, "of": counts.of, "date": counts.date}
    return {"concept": entry.concept, "entry": entry.text, "judged": judged}


def _span(span: Span, notebook: Notebook | None) -> dict[str, int]:
    _, line = _place(span.line, notebook)
    end = line + span.end_line - span.line
    return {"line": line, "column": span.column, "end_line": end, "end_column": span.end_column}


def _place(line: int, notebook: Notebook | None) -> tuple[int | None, int]:
    """The number of the cell of a line, if it is of a notebook, and the line in it."""
    if notebook is None:
        return None, line
    index, within = notebook.place(line)
    return notebook.cells[index].number, within
