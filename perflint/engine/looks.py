"""What a rule finds at a site."""

from __future__ import annotations

from perflint.config.settings import Version
from perflint.engine.crashes import Crash, contained
from perflint.engine.offers import offered
from perflint.engine.policy import weighed
from perflint.findings import Finding, Problem
from perflint.rules.base import Rule
from perflint.semantics.sites import FileSite, Site


def look(rule: Rule, site: Site, torch_version: Version | None, problems: list[Problem]) -> tuple[Finding, ...] | None:
    """The findings; None if the facts alone rule them out. A crash is added to `problems`."""

    def describe() -> Crash:
        line = None if isinstance(site, FileSite) else site.node.lineno
        help = f"please report this, with the code of that line; `--ignore {rule.code}` goes on without the rule"
        return f"rule {rule.code} ({rule.name})", line, help

    with contained(problems, site.model.source.path, describe):
        if rule.nominate(site):
            # A whole file has no libcst node: its rules look at what they need of it.
            node = None if isinstance(site, FileSite) else site.model.source.concrete(site.node)
            found = rule.check(node, site)  # type: ignore[arg-type]
            kept = filter(None, (weighed(each, site) for each in found))
            return tuple(offered(each, torch_version, site.model.is_scripted) for each in kept)
    return None
