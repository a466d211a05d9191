"""The rules: found by walking this package, and handed out by what they listen to."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import perflint.rules
from perflint.rules import index
from perflint.rules.base import Calls, Files, Listens, Rule
from perflint.semantics.sites import CallSite, FileSite, Site


class RegistryError(Exception):
    """Two rules share a code or a name, or a module of rules holds no rule, or several."""


class RuleSet:
    """Some rules, with the sites that each listens to."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: rule.code))
        self._by_target: dict[str, list[Rule]] = {}
        self._by_site: dict[type[Site], list[Rule]] = {}
        self._by_text: list[tuple[Files, Rule]] = []
        for rule in self.rules:
            for listen in rule.listens:
                self._add(rule, listen)

    def _add(self, rule: Rule, listen: Listens) -> None:
        if isinstance(listen, Files):
            self._by_text.append((listen, rule))
            return
        if isinstance(listen, Calls):
            listeners = [self._by_target.setdefault(name, []) for name in listen.names]
        else:
            listeners = [self._by_site.setdefault(listen, [])]
        for rules in listeners:
            if rule not in rules:
                rules.append(rule)

    def listening(self, site: Site) -> Collection[Rule]:
        """The rules that listen to a site, by code."""
        if isinstance(site, CallSite):
            return self._by_target.get(site.target, ())
        known = self._by_site.get(type(site), [])
        if isinstance(site, FileSite):
            text = site.model.source.text
            return known + [rule for files, rule in self._by_text if any(part in text for part in files.texts)]
        return known

    def without(self, codes: Collection[str]) -> RuleSet:
        """The set without the rules of some codes."""
        return RuleSet(rule for rule in self.rules if rule.code not in codes) if codes else self


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of the package, by code. Raises RegistryError."""
    return collect(perflint.rules)


@cache
def known_rules() -> tuple[Rule, ...]:
    """Every rule, by code, as far as it is known without importing it (`index`). Raises RegistryError."""
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


def collect(package: ModuleType) -> tuple[Rule, ...]:
    """The rules below a package: one in each module of its family packages. Raises RegistryError.

    Modules and families whose names begin with an underscore hold none.
    """
    found: dict[str, Rule] = {}
    for module in _modules(package):
        rule = rule_of(module)()
        for key in (rule.code, rule.name):
            if key in found:
                raise RegistryError(f"{key} is both {type(found[key]).__qualname__} and {type(rule).__qualname__}")
            found[key] = rule
    return tuple(sorted({rule.code: rule for rule in found.values()}.values(), key=lambda rule: rule.code))


def _modules(package: ModuleType) -> Iterable[ModuleType]:
    for family in iter_modules(package.__path__, f"{package.__name__}."):
        if not family.ispkg or _is_private(family.name):
            continue
        path = [f"{location}/{family.name.rpartition('.')[2]}" for location in package.__path__]
        for module in iter_modules(path, f"{family.name}."):
            if not _is_private(module.name):
                yield importlib.import_module(module.name)


def _is_private(name: str) -> bool:
    return name.rpartition(".")[2].startswith("_")


def rule_of(module: ModuleType) -> type[Rule]:
    """The rule of a module. Raises RegistryError where it does not hold one."""
    rules = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Rule)
        and value.__module__ == module.__name__
        and not getattr(value, "__abstractmethods__", None)
    ]
    if len(rules) != 1:
        raise RegistryError(f"{module.__name__} must hold one rule, not {len(rules)}")
    return rules[0]
