"""The rules of perflint, and the sites that each listens to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import perflint.rules
from perflint.rules import index
from perflint.rules.base import Calls, Files, Mentions, Rule
from perflint.rules.collecting import collect
from perflint.semantics.sites import CallSite, FileSite, Site

if TYPE_CHECKING:
    from perflint.semantics.model import Model


class RuleSet:
    """Some rules, with the sites that each listens to."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: rule.code))
        self._by_target: dict[str, list[Rule]] = {}
        self._by_site: dict[type[Site], list[Rule]] = {}
        self._by_text: list[tuple[Rule, list[Files]]] = []
        self._limited = frozenset(rule for rule in self.rules if rule.mentions is not None)
        for rule in self.rules:
            files = [listen for listen in rule.listens if isinstance(listen, Files)]
            if files:
                self._by_text.append((rule, files))
            for listen in rule.listens:
                if not isinstance(listen, Files):
                    self._add(rule, listen)

    def _add(self, rule: Rule, listen: Calls | type[Site]) -> None:
        if isinstance(listen, Calls):
            listeners = [self._by_target.setdefault(name, []) for name in listen.names]
        else:
            listeners = [self._by_site.setdefault(listen, [])]
        for rules in listeners:
            if rule not in rules:
                rules.append(rule)

    def listening(self, site: Site) -> Collection[Rule]:
        """The rules that listen to a site of this file, by code."""
        found = self._listening(site)
        if self._limited.isdisjoint(found):
            return found
        return [rule for rule in found if rule.mentions is None or _fits(site.model, rule.mentions)]

    def _listening(self, site: Site) -> Sequence[Rule]:
        if isinstance(site, CallSite):
            return self._by_target.get(site.target, ())
        known = self._by_site.get(type(site), [])
        if isinstance(site, FileSite):
            text = site.model.source.text
            return known + [rule for rule, files in self._by_text if any(each.fits(text) for each in files)]
        return known

    def without(self, codes: Collection[str]) -> RuleSet:
        """The set without the rules of some codes."""
        return RuleSet(rule for rule in self.rules if rule.code not in codes) if codes else self


def _fits(model: Model, mentions: Mentions) -> bool:
    """True if the file meets a condition, which is tested once for all of its sites."""
    known: bool | None = model.memo.get(mentions)
    if known is None:
        known = model.memo[mentions] = mentions.fits(model.source.text)
    return known


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of the package, by code. Raises RegistryError."""
    return collect(perflint.rules)


@cache
def known_rules() -> tuple[Rule, ...]:
    """Every rule, by code, without importing those that the index (`index`) describes. Raises RegistryError."""
    folder = Path(perflint.rules.__path__[0])
    found = index.of(folder)
    if found is None:
        stamp = index.stamp_of(folder)
        found = all_rules()
        index.keep(folder, found, stamp)
    return found


@cache
def names() -> Mapping[str, str]:
    """The name of every code."""
    return {rule.code: rule.name for rule in known_rules()}
