"""House rules: the rules of modules that the settings name, as rules of the engine.

A module is imported only if the settings name it, and never from the working directory, which may be a foreign
checkout.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from perflint import api
from perflint.config.errors import ConfigurationError
from perflint.config.regular import read_regular
from perflint.config.selection import letters
from perflint.config.settings import OptionValue
from perflint.engine.crashes import contained
from perflint.findings import Effect, Finding, Problem, Severity
from perflint.rules import registry
from perflint.rules.base import Calls, Files, Listens, Option, Rule, with_options
from perflint.semantics.sites import Site

CODE = r"[A-Z]{2,4}\d{3}"
NAME = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*"
_OWN = "TPF"
_HELP = "docs/guide/house-rules.md says how house rules are written"
_USE = re.compile(rb"\bperflint\.api\b|\bfrom\s+perflint\s+import\b[^#\n]*\bapi\b")
"""The import without which a module has no rules."""
_LARGEST = 1 << 24
"""Bytes of a file of house rules."""


class HouseRule(Rule):
    """A house rule, as a rule of the engine."""

    def __init__(self, rule: api.Rule, origin: str, content: str) -> None:
        """`origin` is the module that the settings name, and `content` a digest of its files."""
        self._rule = rule
        self._origin = origin
        self._content = content
        own: Any = self
        own.options = rule.options
        own.code, own.name, own.effect, own.severity = rule.code, rule.name, rule.effect, rule.severity
        own.since, own.until, own.replaces = rule.since, rule.until, tuple(rule.replaces)
        own.listens = tuple(map(_listen, rule.listens))

    def configured(self, values: Mapping[str, OptionValue]) -> Rule:
        """The same rule with other values of options."""
        return HouseRule(with_options(self._rule, values), self._origin, self._content)

    @property
    def module(self) -> str:
        return type(self._rule).__module__

    @property
    def document(self) -> str:
        return type(self._rule).__doc__ or ""

    @property
    def origin(self) -> str:
        return self._origin

    @property
    def content(self) -> str:
        return self._content

    def check(self, site: Site) -> Iterator[Finding]:
        """The findings of the house rule. Raises TypeError if it yields something else."""
        for found in self._rule.check(api.seen(site)):
            if type(found) is not Finding:
                raise TypeError(f"the rule yields {found!r}, which is not a `Finding`: yield `self.finding(…)`")
            yield found


def adapted(rule: api.Rule, origin: str = "", content: str = "") -> HouseRule:
    """A house rule as a rule of the engine. Raises ConfigurationError for a fault in its declarations."""
    faults = list(_faults(rule))
    if faults:
        raise ConfigurationError(f"house rule {_title(type(rule))}: {faults[0]}", _HELP)
    return HouseRule(rule, origin or type(rule).__module__, content)


@cache
def house_rules(modules: tuple[str, ...]) -> tuple[HouseRule, ...]:
    """The rules of modules, by code. Raises ConfigurationError."""
    found: dict[str, Rule] = {}
    for rule in registry.known_rules():
        found[rule.code] = found[rule.name] = rule
    made: list[HouseRule] = []
    for module in dict.fromkeys(modules):
        for rule in _rules_of(module):
            for key in (rule.code, rule.name):
                if key in found:
                    other = found[key].origin or "perflint"
                    raise ConfigurationError(f"`{key}` is a rule of `{module}` and of `{other}`", _HELP)
                found[key] = rule
            made.append(rule)
    for rule in made:
        unknown = [code for code in rule.replaces if code not in found]
        if unknown:
            message = f"{rule.code} of `{rule.origin}` replaces {unknown[0]}, which does not exist"
            raise ConfigurationError(message, _HELP)
    return tuple(sorted(made, key=lambda rule: rule.code))


def _rules_of(name: str) -> list[HouseRule]:
    module = _imported(name)
    kinds = [value for value in vars(module).values() if _is_rule(value) and _is_inside(value.__module__, name)]
    if not kinds:
        raise ConfigurationError(f"`house-rules` names `{name}`, which holds no rules", _HELP)
    content = _digest(module)
    return [adapted(_made(kind), name, content) for kind in dict.fromkeys(kinds)]


def _is_rule(value: object) -> bool:
    """True for classes of rules that can be made."""
    return isinstance(value, type) and issubclass(value, api.Rule) and not getattr(value, "__abstractmethods__", None)


def _is_inside(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _made(kind: type[api.Rule]) -> api.Rule:
    problems: list[Problem] = []
    with contained(problems, "", lambda: (f"house rule {_title(kind)}", None, "")):
        return kind()
    raise ConfigurationError(problems[0].message, _HELP)


def _imported(name: str) -> ModuleType:
    """A module of house rules. Raises ConfigurationError."""
    top = name.partition(".")[0]
    problems: list[Problem] = []
    doing = f"the import of the house rules `{name}`"
    with contained(problems, "", lambda: (doing, None, "")), _without_working_folder():
        spec = None if top in sys.stdlib_module_names else importlib.util.find_spec(top)
        if spec is not None and not _uses_the_api(spec, name):
            # The import of a foreign module may start anything, such as the tests of the checked project.
            problems.append(Problem("", f"`house-rules` names `{name}`, which does not import `perflint.api`"))
        elif spec is not None:
            try:
                return importlib.import_module(name)
            except SystemExit as error:
                raise ImportError(f"it ends perflint with `sys.exit({error.code!r})`") from None
    if problems:
        help = "PERFLINT_TRACEBACK=1 in the environment prints the traceback" if problems[0].internal else _HELP
        raise ConfigurationError(problems[0].message, help)
    help = "install the package in the environment of perflint; the working directory is not searched"
    raise ConfigurationError(f"`house-rules` names `{name}`, which is not installed", help)


def _uses_the_api(spec: ModuleSpec, name: str) -> bool:
    """True if the text of a module, or of its package, imports the interface of rules. Imports nothing."""
    top, *inner = name.split(".")
    if top == "perflint" or name.endswith("__main__"):
        return False
    for folder in spec.submodule_search_locations or ():
        found = Path(folder, *inner)
        files = found.rglob("*.py") if found.is_dir() else [found.with_name(f"{found.name}.py")]
        if any(_USE.search(read_regular(file, _LARGEST) or b"") for file in files if file.is_file()):
            return True
    is_file = not inner and spec.origin is not None and spec.origin.endswith(".py")
    return is_file and _USE.search(read_regular(str(spec.origin), _LARGEST) or b"") is not None


@contextmanager
def _without_working_folder() -> Iterator[None]:
    """Import nothing from the working directory, unless PYTHONPATH names it."""
    given = {os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path}
    here = os.getcwd()
    before = list(sys.path)
    sys.path[:] = [path for path in before if os.path.abspath(path) != here or here in given]
    try:
        yield
    finally:
        sys.path[:] = before


def _digest(module: ModuleType) -> str:
    """A digest of the files of a module, or of its package with all that it holds."""
    file = getattr(module, "__file__", None)
    folders = [Path(folder) for folder in getattr(module, "__path__", ())]
    files = sorted(path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts)
    found = hashlib.blake2b(digest_size=16)
    for path in files or ([Path(file)] if file else []):
        if path.is_file() and path.stat().st_size <= _LARGEST:
            found.update(f"{path.name}\0".encode("utf-8", "surrogateescape"))
            found.update(path.read_bytes())
    return found.hexdigest()


def _listen(listen: api.Listens) -> Listens:
    if isinstance(listen, (Calls, Files)):
        return listen
    return api.SITES[listen]


def _faults(rule: api.Rule) -> Iterator[str]:
    """The faults in the declarations of a rule, in words."""
    code, name = _declared(rule, "code"), _declared(rule, "name")
    if not isinstance(code, str) or not re.fullmatch(CODE, code):
        yield f"`code` must be two to four capital letters and three digits, such as ACM001, not {code!r}"
    elif letters(code) in (_OWN, "ALL"):
        yield f"`code` is {code}, but the letters {letters(code)} belong to perflint: choose other letters"
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        yield f"`name` must be words in lower case with hyphens, such as log-each-tensor, not {name!r}"
    if not isinstance(_declared(rule, "effect"), Effect):
        yield "`effect` must be a member of `perflint.api.Effect`"
    if not isinstance(_declared(rule, "severity"), Severity):
        yield "`severity` must be a member of `perflint.api.Severity`"
    listens = _declared(rule, "listens")
    if not isinstance(listens, tuple) or not listens or not all(map(_is_listen, listens)):
        yield "`listens` must be a tuple of `Calls(…)`, `Files(…)` and kinds of sites"
    if not type(rule).__doc__ and sys.flags.optimize < 2:
        yield "it has no docstring, which is the page of a rule"
    if not isinstance(rule.options, tuple) or not all(isinstance(each, Option) for each in rule.options):
        yield "`options` must be a tuple of `Option(…)`"
    if not _is_strings(rule.replaces):
        yield "`replaces` must be a tuple of codes"


def _is_strings(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(each, str) for each in value)


def _is_listen(value: object) -> bool:
    return isinstance(value, (Calls, Files)) or (isinstance(value, type) and value in api.SITES)


def _declared(rule: api.Rule, attribute: str) -> object:
    return getattr(rule, attribute, None)


def _title(kind: type[api.Rule]) -> str:
    return f"`{kind.__module__}.{kind.__qualname__}`"
