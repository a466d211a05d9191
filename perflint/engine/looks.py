"""What a rule finds at a site."""

from __future__ import annotations

from perflint.engine.crashes import Crash, contained
from perflint.findings import Confidence, Effect, Finding, Problem
from perflint.rules.base import Rule
from perflint.semantics.sites import FileSite, Site

_OF_THE_DEVICE = (Effect.SYNC, Effect.TRANSFER, Effect.ALLOCATION)


def look(rule: Rule, site: Site, problems: list[Problem]) -> tuple[Finding, ...] | None:
    """The findings; None where the facts alone rule them out. A crash is added to `problems`."""

    def describe() -> Crash:
        line = None if isinstance(site, FileSite) else site.node.lineno
        help = f"please report this, with the code of that line; `--ignore {rule.code}` goes on without the rule"
        return f"rule {rule.code} ({rule.name})", line, help

    with contained(problems, site.model.source.path, describe):
        if rule.nominate(site):
            # A whole file has no libcst node: its rules look at what they need of it.
            node = None if isinstance(site, FileSite) else site.model.source.concrete(site.node)
            return tuple(found for found in rule.check(node, site) if not _on_host(found, site))  # type: ignore[arg-type]
    return None


def _on_host(finding: Finding, site: Site) -> bool:
    """Whether a finding claims that the device is waited for, where only the host is at work as yet."""
    return (
        finding.effect in _OF_THE_DEVICE
        and finding.confidence is not Confidence.HIGH
        and site.model.makes_module(site.node)
    )
