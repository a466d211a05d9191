"""The time that a run takes, by phase and by rule."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perflint.config.settings import Version
    from perflint.findings import Finding, Problem
    from perflint.rules.base import Rule
    from perflint.semantics.sites import Site


class Timings:
    """Seconds of processor time."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self.rules: dict[str, float] = {}
        """By code. The time of an answer of the model counts for the rule that asks first."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count a block as a phase."""
        begin = time.process_time()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.process_time() - begin

    def look(
        self, rule: Rule, site: Site, torch_version: Version | None, problems: list[Problem]
    ) -> tuple[Finding, ...]:
        """As `looks.look`, and counts the time for the rule."""
        from perflint.engine.looks import look

        begin = time.process_time()
        found = look(rule, site, torch_version, problems)
        self.rules[rule.code] = self.rules.get(rule.code, 0.0) + time.process_time() - begin
        return found
