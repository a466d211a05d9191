"""The rules that settings turn on."""

from __future__ import annotations

from perflint.config.errors import Faults
from perflint.config.selection import choose, expand, named_in, selects
from perflint.config.settings import Settings, Version
from perflint.engine.rulebook import known_rules, names
from perflint.engine.thresholds import require_known
from perflint.rules.base import Rule
from perflint.rules.registry import RuleSet

_NEWEST: Version = (1_000_000, 0)


def active_rules(settings: Settings) -> RuleSet:
    """The rules that are selected and hold for the torch version.

    Raises ConfigurationError for selectors that name no rule, those of `per-file-ignores` included, and for house
    rules that cannot be loaded.
    """
    known = names(settings)
    faults = Faults()
    for pattern, selectors in settings.per_file_ignores:
        for selector in selectors:
            with faults.caught():
                expand(selector, known, f'{named_in("per-file-ignores", settings.selections)} for "{pattern}"')
    with faults.caught():
        require_known(settings)
    chosen: frozenset[str] = frozenset()
    with faults.caught():
        chosen = choose(settings.selections, known)
    faults.check()
    version = settings.torch_version
    return RuleSet(rule for rule in known_rules(settings) if rule.code in chosen and holds(rule, version))


def holds(rule: Rule, torch_version: Version | None) -> bool:
    """True if a rule holds for a torch version; None stands for the newest."""
    version = torch_version or _NEWEST
    return (rule.since is None or rule.since <= version) and (rule.until is None or version < rule.until)


def rules_for_file(rules: RuleSet, settings: Settings, path: str) -> RuleSet:
    """The rules without those that `per-file-ignores` turns off for a file."""
    selectors = settings.ignored_selectors(path)
    if not selectors:
        return rules
    known = {rule.code: rule.name for rule in rules.rules}
    return rules.without({code for code, name in known.items() if any(selects(s, code, name) for s in selectors)})
