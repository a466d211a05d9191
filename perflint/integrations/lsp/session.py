"""The work of the server on documents. One thread runs all of it, one job after the other."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from perflint.config.errors import ConfigurationError
from perflint.config.outside import places
from perflint.config.pyproject import line_length
from perflint.config.settings import Settings, combine
from perflint.engine.cache.files import Stamp, stamp_of
from perflint.engine.crashes import Crash, contained
from perflint.engine.devices import Bound, devices
from perflint.engine.explain import Explanation, explain
from perflint.engine.file import check_source
from perflint.engine.fixing import fix_text
from perflint.engine.ignoring import with_ignores
from perflint.findings import Finding, Problem, Report, Safety
from perflint.fixes.apply import Choice, Outcome
from perflint.frozen import dataclass, field, replace
from perflint.integrations.lsp.choices import Choices
from perflint.integrations.lsp.places import Place, Stage
from perflint.semantics.project import Interrupted, Project
from perflint.source.text import Source
from perflint.tracer.costs import Measured, measured
from perflint.tracer.trace import Trace

if TYPE_CHECKING:
    from perflint.tracer.verdicts import Evidence

_CHECKS_BETWEEN_COLLECTIONS = 50
_Answer = TypeVar("_Answer")
Texts = Mapping[str, str]
"""The texts of all open documents by their absolute paths."""


@dataclass(frozen=True, slots=True)
class Document:
    """An open document at one version."""

    uri: str
    path: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings of a document at one version."""

    document: Document
    source: Source
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    parses: bool = True
    settings: Settings = field(default_factory=Settings)
    seconds: float = 0.0
    """The time that the check took."""
    stage: Stage = Stage.FINAL
    """Only a final check surely has the findings of `perflint check`."""

    @property
    def is_final(self) -> bool:
        """True if no further check of the text is needed."""
        return self.stage is Stage.FINAL


@dataclass(frozen=True, slots=True)
class Change:
    """The text after an action; None with the reason if the action would do harm."""

    text: str | None
    reasons: tuple[str, ...] = ()


@dataclass(slots=True)
class Session:
    """Places by settings; they are forgotten when files or settings change on the disk."""

    cache: Path | None = None
    """The folder of the cache, if there is to be one."""
    choices: Choices = field(default_factory=Choices)
    """The settings of the editor."""
    checks: int = 0
    """Since the last collection of garbage."""
    _by_folder: dict[str, Place] = field(default_factory=dict)
    _by_settings: dict[Settings, Place] = field(default_factory=dict)
    _traces: dict[str, tuple[Stamp, Trace | None]] = field(default_factory=dict)
    _judging: tuple[list[Trace], Evidence] | None = None
    """The traces of the settings when they were read last, and their facts."""

    def configure(self, choices: Choices) -> None:
        """Take settings of the editor."""
        self.choices = choices
        self.forget()

    def forget(self) -> None:
        """Read settings and projects anew when they are next asked for."""
        for place in self._by_settings.values():
            place.close()
        self._by_settings.clear()
        self._by_folder.clear()

    def note_written(self, paths: Sequence[str]) -> None:
        """Read files with open documents anew once these are closed."""
        for place in self._by_settings.values():
            place.note_written(paths)

    def close_document(self, path: str) -> None:
        """Forget the text of a document."""
        if any(place.knows_edits_of(path) for place in self._by_settings.values()):
            self.forget()

    def check(
        self,
        document: Document,
        texts: Texts,
        stage: Stage = Stage.FINAL,
        before: Checked | None = None,
        is_wanted: Callable[[], bool] | None = None,
    ) -> Checked | None:
        """The findings of a document. A fault of the settings is a problem.

        A sketch keeps findings of `before`, a check of a text that could be parsed. None if `is_wanted` has become
        false meanwhile; a sketch does not ask.
        """
        source = Source(document.path, document.text)
        try:
            place = self._place(document.path)
        except ConfigurationError as error:
            return Checked(document, source, problems=(Problem("", error.message, error.help),))
        if place.excludes(document.path):
            return Checked(document, source)
        began = time.monotonic()
        self.checks += 1
        if self.checks >= _CHECKS_BETWEEN_COLLECTIONS and stage is not Stage.SKETCH:
            self.checks = 0
            gc.collect()
        report, known = Report(), None if before is None else (before.source, before.findings)
        problems: list[Problem] = []
        try:
            with contained(problems, document.path, lambda: _crash("the check")):
                evidence = self._evidence(problems)
                judge = None if evidence is None else evidence.judge
                report, stage = place.check(source, texts, stage, known, judge, is_wanted)
        except Interrupted:
            return None
        return Checked(
            document,
            source,
            tuple(report.findings),
            (*problems, *(problem for problem in report.problems if problem.internal)),
            parses=bool(report.files),
            settings=place.settings,
            seconds=time.monotonic() - began,
            # A text that is half typed has no better answer.
            stage=stage if report.files or problems else Stage.FINAL,
        )

    def fix(self, checked: Checked, finding: Finding, texts: Texts, problems: list[Problem]) -> Change:
        """The text with the fix of one finding, as `perflint fix` would write it."""
        text = checked.document.text
        fix = finding.fix
        if fix is None:
            return Change(None, ("it has no fix",))

        def is_wanted(other: Finding, now: str) -> bool:
            return now == text and (other.code, other.span, other.fix) == (finding.code, finding.span, fix)

        outcome = self._fixed(checked.document, texts, (fix.safety,), problems, is_wanted)
        if outcome is None or not outcome.applied:
            return Change(None, tuple(each.reason for each in outcome.skipped) if outcome is not None else ())
        return Change(outcome.text)

    def fix_all(self, document: Document, texts: Texts, problems: list[Problem]) -> Change:
        """The text that `perflint fix` would write."""
        outcome = self._fixed(document, texts, (Safety.SAFE,), problems, None)
        return Change(None if outcome is None else outcome.text)

    def ignore(self, checked: Checked, finding: Finding, problems: list[Problem]) -> Change:
        """The text with a comment that silences the findings of the same rule in the line of a finding."""
        same = [each for each in checked.findings if each.code == finding.code and each.span.line == finding.span.line]
        with contained(problems, checked.document.path, lambda: _crash("the comment")):
            text, unsilenced = with_ignores(checked.source, same, "")
            return Change(None, ("no comment can stand there",)) if unsilenced else Change(text)
        return Change(None)

    def explain(
        self, document: Document, texts: Texts, line: int, column: int, problems: list[Problem]
    ) -> Explanation | None:
        """The beliefs about a place; None for a place without code."""

        def explained(place: Place, source: Source) -> Explanation:
            return explain(source, place.project(source.path, texts), place.settings, line, column)

        return self._answer(explained, document, "the explanation", problems)

    def devices(self, document: Document, texts: Texts, problems: list[Problem]) -> list[Bound]:
        """The names of a document with tensors on a known device; none if its text is half typed."""

        def found(place: Place, source: Source) -> list[Bound]:
            return [] if place.excludes(source.path) else devices(source, place.project(source.path, texts))

        return self._answer(found, document, "the search for devices", problems) or []

    def measured(self, source: Source, problems: list[Problem]) -> Measured | None:
        """The costs of the lines of a document in the traces of the editor's settings."""
        traces = self._read_traces(problems)
        return measured(traces, source) if traces else None

    def _evidence(self, problems: list[Problem]) -> Evidence | None:
        """The facts of the traces of the editor's settings; None without traces."""
        traces = self._read_traces(problems)
        if not traces:
            return None
        if self._judging is None or self._judging[0] != traces:
            from perflint.tracer.verdicts import Evidence

            self._judging = traces, Evidence(traces)
        return self._judging[1]

    def _read_traces(self, problems: list[Problem]) -> list[Trace]:
        return [trace for path in self.choices.traces if (trace := self._trace(path, problems)) is not None]

    def _trace(self, path: str, problems: list[Problem]) -> Trace | None:
        """A trace, read anew after a change of its file. A fault is a problem once."""
        from perflint.tracer.file import TraceError, read_trace

        now = stamp_of(path)
        known = self._traces.get(path)
        if known is None or known[0] != now:
            try:
                known = self._traces[path] = now, read_trace(Path(path))
            except TraceError as error:
                problems.append(Problem("", error.message, error.help))
                known = self._traces[path] = now, None
        return known[1]

    def rest(self) -> None:
        """Use a pause: write to the cache, and free the objects that refer to each other."""
        for place in self._by_settings.values():
            place.flush()
        gc.collect()

    def _answer(
        self, ask: Callable[[Place, Source], _Answer], document: Document, doing: str, problems: list[Problem]
    ) -> _Answer | None:
        """An answer about a document; None if its text is half typed or the settings are wrong, and after a crash."""
        with contained(problems, document.path, lambda: _crash(doing)):
            try:
                return ask(self._place(document.path), Source(document.path, document.text))
            except (ConfigurationError, SyntaxError, ValueError, RecursionError, MemoryError):
                return None
        return None

    def _fixed(
        self,
        document: Document,
        texts: Texts,
        safeties: Sequence[Safety],
        problems: list[Problem],
        choice: Choice | None,
    ) -> Outcome | None:
        place = self._place(document.path)
        project = place.project(document.path, texts)

        evidence = self._evidence(problems) if choice is not None else None
        judge = None if evidence is None else evidence.confirmed

        def check(path: str, text: str, project: Project) -> Report:
            return check_source(Source(path, text), project, place.rules, place.settings, judge=judge)

        length = line_length([os.path.dirname(document.path)])
        outcome = None
        with contained(problems, document.path, lambda: _crash("fixing")):
            outcome, _ = fix_text(document.path, document.text, project, check, safeties, choice, length)
        return outcome

    def _place(self, path: str) -> Place:
        """The place of a file. Raises ConfigurationError."""
        folder = os.path.dirname(path)
        known = self._by_folder.get(folder)
        if known is None:
            found, root = places([folder])
            settings = combine(*found, self.choices.options, root=root)
            # How the command line writes changes nothing here, and must not make a second place.
            settings = replace(settings, output_format=Settings().output_format)
            known = self._by_settings.get(settings)
            if known is None:
                known = self._by_settings[settings] = Place(settings, self.cache)
            self._by_folder[folder] = known
        return known


def _crash(doing: str) -> Crash:
    return doing, None, "please report this, with the code of the file"
