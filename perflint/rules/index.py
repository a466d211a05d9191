"""An index of the rules and the events that they listen to, without importing them.

Importing a hundred small modules takes longer than checking a small file. So the facts about all rules are kept
beside the compiled modules. They are written anew if they are missing or if a file of the package has changed;
perflint also works without them.
"""

from __future__ import annotations

import importlib
import marshal
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from perflint.config.settings import OptionValue
from perflint.findings import Effect, Finding, Need, Severity
from perflint.rules.base import (
    Calls,
    Files,
    FileSite,
    FormatSite,
    Group,
    Listens,
    Mentions,
    Rule,
    SubscriptSite,
    TruthSite,
)
from perflint.rules.collecting import rule_of

_SITES: dict[str, type[Any]] = {kind.__name__: kind for kind in (TruthSite, SubscriptSite, FormatSite, FileSite)}
_MAGIC = f"perflint rules 6 {sys.implementation.cache_tag}"
_PLAIN = ("code", "name", "since", "until", "is_deprecation", "replaces")
"""The facts about a rule that `marshal` supports as they are."""
Stamp = tuple[tuple[str, int, int], ...]
"""The files of the package below its folder, when they were written and how long they are."""


class Unloaded(Rule):
    """A rule whose module is imported on its first use."""

    def __init__(self, module: str, facts: dict[str, Any]) -> None:
        self._module = module
        self._rule: Rule | None = None
        own: Any = self
        for name in _PLAIN:
            setattr(own, name, facts[name])
        own.effect, own.severity, own.group = (
            Effect(facts["effect"]),
            Severity(facts["severity"]),
            Group(facts["group"]),
        )
        own.mentions = None if facts["mentions"] is None else _condition(Mentions, facts["mentions"])
        own.listens = tuple(_listen(kind, words) for kind, words in facts["listens"])

    @property
    def loaded(self) -> Rule:
        """The rule itself."""
        if self._rule is None:
            rule = self._rule = rule_of(importlib.import_module(self._module))()
            # Later calls go to the rule directly: there are hundreds of thousands.
            vars(self).update(check=rule.check)
        return self._rule

    def check(self, site: Any) -> Iterator[Finding]:
        """As the rule does."""
        return self.loaded.check(site)

    def need(self, site: Any) -> Need:
        """As the rule does."""
        return self.loaded.need(site)

    def configured(self, values: Mapping[str, OptionValue]) -> Rule:
        """As the rule does."""
        return self.loaded.configured(values)

    def measured_cost(self) -> str | None:
        """As the rule does."""
        return self.loaded.measured_cost()


Words = tuple[tuple[str, ...], ...]


def _listen(kind: str, words: Words) -> Listens:
    if kind == "Calls":
        return Calls(*words[0])
    return _condition(Files, words) if kind == "Files" else _SITES[kind]


def _kind(listen: Listens) -> tuple[str, Words]:
    if isinstance(listen, Calls):
        return "Calls", (listen.names,)
    return ("Files", _words(listen)) if isinstance(listen, Files) else (listen.__name__, ())


_Condition = TypeVar("_Condition", bound=Mentions)


def _condition(kind: type[_Condition], words: Words) -> _Condition:
    (pattern, unlike) = words[3]
    return kind(*words[0], also=words[1], without=words[2], pattern=pattern, unlike=unlike, in_importers=bool(words[4]))


def _words(of: Mentions) -> Words:
    return of.texts, of.also, of.without, (of.pattern, of.unlike), ("importers",) if of.in_importers else ()


def _facts_of(rules: Iterable[Rule]) -> list[tuple[str, dict[str, Any]]]:
    """The facts about rules for `Unloaded`: their modules, and values that `marshal` supports."""
    return [
        (
            type(rule).__module__,
            {name: getattr(rule, name) for name in _PLAIN}
            | {
                "effect": rule.effect.value,
                "severity": rule.severity.value,
                "group": rule.group.value,
                "mentions": None if rule.mentions is None else _words(rule.mentions),
                "listens": tuple(map(_kind, rule.listens)),
            },
        )
        for rule in rules
    ]


def of(folder: Path) -> tuple[Rule, ...] | None:
    """The rules below a folder, not imported, by code; None if there is no valid index."""
    facts = _read(folder)
    return None if facts is None else tuple(Unloaded(module, each) for module, each in facts)


def _read(folder: Path) -> list[tuple[str, dict[str, Any]]] | None:
    try:
        magic, stamp, facts = marshal.loads(_file(folder).read_bytes())
    except (OSError, EOFError, ValueError, TypeError):
        return None
    return facts if magic == _MAGIC and stamp == stamp_of(folder) else None


def keep(folder: Path, rules: Iterable[Rule], stamp: Stamp) -> None:
    """Write the index of rules, if the folder is writable. `stamp` is from before their import."""
    if sys.dont_write_bytecode:
        return
    # Runs once after an installation; other starts must not pay for the import.
    from perflint.source.writing import whole

    path = _file(folder)
    try:
        path.parent.mkdir(exist_ok=True)
        with whole(path) as file:
            file.write(marshal.dumps((_MAGIC, stamp, _facts_of(rules))))
    except OSError:
        return


def _file(folder: Path) -> Path:
    return folder / "__pycache__" / f"index.{sys.implementation.cache_tag}.marshal"


def stamp_of(folder: Path) -> Stamp:
    """The stamp of the files below a folder."""
    found: list[tuple[str, int, int]] = []
    with os.scandir(folder) as families:
        for family in families:
            if family.is_dir() and family.name != "__pycache__":
                found += _files(family)
    return tuple(sorted(found))


def _files(family: os.DirEntry[str]) -> Iterator[tuple[str, int, int]]:
    with os.scandir(family.path) as files:
        for file in files:
            if file.name.endswith(".py"):
                status = file.stat()
                yield f"{family.name}/{file.name}", status.st_mtime_ns, status.st_size
