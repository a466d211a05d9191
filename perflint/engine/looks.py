"""The findings of a rule at a site."""

from __future__ import annotations

from perflint.config.settings import Version
from perflint.engine.cells import repeatable
from perflint.engine.contracts import held
from perflint.engine.crashes import Crash, contained
from perflint.engine.fstrings import fitting
from perflint.engine.judgement import judged
from perflint.engine.offers import offered
from perflint.findings import Finding, Problem, Safety
from perflint.frozen import replace
from perflint.rules.base import Rule
from perflint.semantics.sites import FileSite, Site


def look(rule: Rule, site: Site, torch_version: Version | None, problems: list[Problem]) -> tuple[Finding, ...]:
    """The findings; none if the rule crashes, which is added to `problems`."""

    def describe() -> Crash:
        line = None if isinstance(site, FileSite) else site.node.lineno
        report = f"please report this to the authors of `{rule.origin}`" if rule.origin else "please report this"
        help = f"{report}, with the code of that line; `--ignore {rule.code}` goes on without the rule"
        return f"rule {rule.code} ({rule.name})", line, help

    with contained(problems, site.model.source.path, describe):
        found = []
        for each in rule.check(site):
            kept = judged(_for_any_caller(each, rule, site), rule, site)
            kept = None if kept is None else held(kept, site)
            if kept is not None:
                kept = fitting(repeatable(kept, site.model), site.model)
                found.append(offered(kept, torch_version, site.model.is_scripted, site.model.module.is_of_tests))
        return tuple(found)
    return ()


def _for_any_caller(finding: Finding, rule: Rule, site: Site) -> Finding:
    """The finding with a fix that is safe only if it is so for the callers in other files, too."""
    fix = finding.fix
    if fix is None or fix.safety is not Safety.SAFE or fix.by_source or isinstance(site, FileSite):
        return finding
    if not site.model.relies_on_callers(site.node):
        return finding
    other = site.model.for_any_caller.site_like(site)
    for each in rule.check(other) if other is not None else ():
        if each.span == finding.span:
            return replace(finding, fix=each.fix)
    return replace(finding, fix=replace(fix, safety=Safety.UNSAFE, message=f"{fix.message} ({_OTHERS})"))


_OTHERS = "callers in other files may pass something else"
