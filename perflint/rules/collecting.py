"""The rules below a package, found by listing and importing its modules."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pkgutil import iter_modules
from types import ModuleType

from perflint.rules.base import Rule


class RegistryError(Exception):
    """Two rules share a code or a name, or a module of rules holds no rule, or several."""


def collect(package: ModuleType) -> tuple[Rule, ...]:
    """The rules below a package: one in each module of its family packages. Raises RegistryError.

    Modules and families whose names begin with an underscore are left out.
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
    """The rule of a module. Raises RegistryError if it does not hold exactly one."""
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
