"""Small rules to try the engine on, over the real model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules.base import Calls, Rule
from perflint.semantics.sites import CallSite, FileSite, TruthSite


class Toy(Rule):
    """A rule that finds every site that it hears of."""

    effect = Effect.SYNC
    severity = Severity.WARNING

    def check(self, site: Any) -> Iterator[Finding]:
        yield self.finding(site, f"{self.name} here", heat=Heat.HOT)


class Zeros(Toy):
    """Calls."""

    code, name = "TPF101", "zeros"
    listens = (Calls("torch.zeros", "torch.zeros_like"), Calls("torch.zeros"))


class Truths(Toy):
    """Truths."""

    code, name = "TPF102", "truths"
    listens = (TruthSite,)


class Files(Toy):
    """Files."""

    code, name = "TPF201", "files"
    listens = (FileSite,)

    def check(self, site: FileSite) -> Iterator[Finding]:
        source = site.model.source
        yield self.finding(site, f"{len(source.lines)} lines", span=source.span(source.tree.body[0]), heat=Heat.HOT)


class Picky(Toy):
    """Finds nothing."""

    code, name = "TPF103", "picky"
    listens = (Calls("torch.zeros"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        return iter(())


class Crashing(Toy):
    """Yields one finding, then fails."""

    code, name = "TPF901", "crashing"
    listens = (Calls("torch.zeros"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        yield self.finding(site, "half an answer")
        raise KeyError("lost\nand gone")


class CrashingAtOnce(Toy):
    """Fails before its first finding."""

    code, name = "TPF902", "crashing-at-once"
    listens = (FileSite,)

    def check(self, site: FileSite) -> Iterator[Finding]:
        raise ZeroDivisionError


class Graded(Toy):
    """What each call says of itself in its first argument: "high hot warning"."""

    code, name = "TPF301", "graded"
    listens = (Calls("torch.zeros"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        grades = site.node.args[0].value.split()  # type: ignore[attr-defined]
        yield self.finding(
            site, " ".join(grades), confidence=Confidence(grades[0]), heat=Heat(grades[1]), severity=Severity(grades[2])
        )
