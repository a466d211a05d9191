"""Small rules to try the engine on, over the real model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules.base import Calls, Rule
from perflint.semantics.sites import CallSite, FileSite, TruthSite


class Toy(Rule):
    """A rule that finds every site that it hears of."""

    effect = Effect.SYNC
    severity = Severity.WARNING

    def check(self, node: Any, site: Any) -> Iterator[Finding]:
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
    """Files; has no node to look at."""

    code, name = "TPF201", "files"
    listens = (FileSite,)
    nodes: ClassVar[list[Any]] = []

    def check(self, node: Any, site: FileSite) -> Iterator[Finding]:
        self.nodes.append(node)
        source = site.model.source
        yield self.finding(site, f"{len(source.lines)} lines", span=source.span(source.tree.body[0]), heat=Heat.HOT)


class Picky(Toy):
    """Nominates nothing."""

    code, name = "TPF103", "picky"
    listens = (Calls("torch.zeros"),)

    def nominate(self, site: CallSite) -> bool:
        return False

    def check(self, node: Any, site: CallSite) -> Iterator[Finding]:
        raise AssertionError


class Crashing(Toy):
    """Yields one finding, then fails."""

    code, name = "TPF901", "crashing"
    listens = (Calls("torch.zeros"),)

    def check(self, node: Any, site: CallSite) -> Iterator[Finding]:
        yield self.finding(site, "half an answer")
        raise KeyError("lost\nand gone")


class CrashingAtOnce(Toy):
    """Fails before the expression is parsed."""

    code, name = "TPF902", "crashing-at-once"
    listens = (FileSite,)

    def nominate(self, site: FileSite) -> bool:
        raise ZeroDivisionError


class Graded(Toy):
    """What each call says of itself in its first argument: "high hot warning"."""

    code, name = "TPF301", "graded"
    listens = (Calls("torch.zeros"),)

    def check(self, node: Any, site: CallSite) -> Iterator[Finding]:
        grades = site.node.args[0].value.split()  # type: ignore[attr-defined]
        yield self.finding(
            site, " ".join(grades), confidence=Confidence(grades[0]), heat=Heat(grades[1]), severity=Severity(grades[2])
        )
