"""The rules of perflint, and the sites that each listens to."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import perflint.rules
from perflint.rules import index
from perflint.rules.base import Calls, CallSite, Files, FileSite, Mentions, Rule, Site
from perflint.rules.collecting import collect

if TYPE_CHECKING:
    from perflint.semantics.model import Model


class RuleSet:
    """Some rules, with the sites that each listens to."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: rule.code))
        self._listeners: dict[str | type[Site], list[Rule]] = {}
        """The rules by the full names of calls and the types of sites that they listen to."""
        self._by_text: list[tuple[Rule, list[Files]]] = []
        for rule in self.rules:
            files = [listen for listen in rule.listens if isinstance(listen, Files)]
            if files:
                self._by_text.append((rule, files))
            for listen in rule.listens:
                if not isinstance(listen, Files):
                    self._add(rule, listen)

    def _add(self, rule: Rule, listen: Calls | type[Site]) -> None:
        for key in listen.names if isinstance(listen, Calls) else (listen,):
            rules = self._listeners.setdefault(key, [])
            if rule not in rules:
                rules.append(rule)

    def listening(self, site: Site) -> Collection[Rule]:
        """The rules that listen to a site of this file, by code."""
        if isinstance(site, FileSite):
            return self._fitting(site.model, self._of_file(site))
        key = site.target if isinstance(site, CallSite) else type(site)
        rules = self._listeners.get(key)
        if rules is None:
            return ()
        # A file has many sites of one kind.
        known: Collection[Rule] | None = site.model.memo.get((self, key))
        if known is None:
            known = site.model.memo[self, key] = self._fitting(site.model, rules)
        return known

    def _fitting(self, model: Model, rules: Iterable[Rule]) -> Collection[Rule]:
        return [rule for rule in rules if rule.mentions is None or _fits(model, rule.mentions)]

    def _of_file(self, site: FileSite) -> Iterator[Rule]:
        text = site.model.source.text
        yield from self._listeners.get(FileSite, ())
        yield from (rule for rule, files in self._by_text if any(each.fits(text) for each in files))

    def without(self, codes: Collection[str]) -> RuleSet:
        """The set without the rules of some codes."""
        return RuleSet(rule for rule in self.rules if rule.code not in codes) if codes else self


def _fits(model: Model, mentions: Mentions) -> bool:
    """True if the file meets a condition, which is tested once for all of its sites."""
    known: bool | None = model.memo.get(mentions)
    if known is None:
        text = model.source.text
        known = model.memo[mentions] = mentions.fits(text) or _fits_importer(model, mentions, text)
    return known


def _fits_importer(model: Model, mentions: Mentions, text: str) -> bool:
    if not mentions.in_importers or mentions.forbids(text) or "torch" not in text:
        return False
    return model.importer_has(mentions.texts, mentions.without, re.compile(mentions.pattern))


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
