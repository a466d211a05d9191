"""The base class of rules, the sites that they listen to, and the words that their messages share.

A rule is a small class in a file of its own. It names the sites that it listens to,
decides by the facts of the model about a site, and yields findings.
It holds no state. Its docstring is its page in the docs.
"""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from copy import copy
from enum import Enum
from typing import Any, ClassVar, TypeVar

from perflint.config.settings import OptionValue
from perflint.findings import Confidence, Effect, Finding, Fix, Frequency, Heat, Need, Severity, Span
from perflint.frozen import dataclass
from perflint.semantics.sites import (
    CallSite,
    ExpressionSite,
    FileSite,
    FormatSite,
    Site,
    SubscriptSite,
    TruthSite,
    device_confidence,
)
from perflint.source.quoting import quoted

__all__ = [
    "CallSite",
    "Calls",
    "CommentRule",
    "DeclaredRule",
    "ExpressionSite",
    "FileSite",
    "Files",
    "FormatSite",
    "Group",
    "HasOptions",
    "Listens",
    "Mentions",
    "Option",
    "OutsideRule",
    "Rule",
    "Site",
    "SubscriptSite",
    "TracedRule",
    "TruthSite",
    "device_confidence",
    "often",
    "shown",
    "with_options",
]


@dataclass(frozen=True, slots=True)
class Calls:
    """Listen to calls of these full names."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


@dataclass(frozen=True, slots=True)
class Mentions:
    """A condition on the text of a file: it contains one of `texts`, one of `also`, and none of `without`.

    The regular expression `pattern` matches somewhere, and `unlike` matches nowhere. An empty field requires nothing.
    With `in_importers`, a file that imports this one may meet it in its place.
    """

    texts: tuple[str, ...]
    also: tuple[str, ...]
    without: tuple[str, ...]
    pattern: str
    unlike: str
    in_importers: bool

    def __init__(
        self,
        *texts: str,
        also: tuple[str, ...] = (),
        without: tuple[str, ...] = (),
        pattern: str = "",
        unlike: str = "",
        in_importers: bool = False,
    ) -> None:
        object.__setattr__(self, "texts", texts)
        object.__setattr__(self, "also", also)
        object.__setattr__(self, "without", without)
        object.__setattr__(self, "pattern", pattern)
        object.__setattr__(self, "unlike", unlike)
        object.__setattr__(self, "in_importers", in_importers)

    def fits(self, text: str) -> bool:
        """True if the text of a file meets the condition."""
        if self.forbids(text):
            return False
        if not all(any(part in text for part in parts) for parts in (self.texts, self.also) if parts):
            return False
        if self.pattern and re.search(self.pattern, text) is None:
            return False
        return not self.unlike or re.search(self.unlike, text) is None

    def forbids(self, text: str) -> bool:
        """True if the text of a file contains what it must not."""
        return any(part in text for part in self.without)


class Files(Mentions):
    """Listen to files whose text meets a condition; the site is a `FileSite`."""

    __slots__ = ()


Listens = Calls | Files | type[TruthSite] | type[SubscriptSite] | type[FormatSite] | type[FileSite]


@dataclass(frozen=True, slots=True)
class Option:
    """A value of a rule that the settings may change: `[tool.perflint.rule.CODE] name = value`."""

    name: str
    default: OptionValue
    about: str
    """What it does, in a sentence."""
    least: int = 0
    """The least value of a number."""


class HasOptions:
    """The part of a rule that the settings of a project may change."""

    options: ClassVar[tuple[Option, ...]] = ()
    """The values that the settings may change."""
    chosen: Mapping[str, OptionValue] = {}
    """Set by perflint: the options that the settings change."""

    def option(self, name: str) -> Any:
        """The value of an option."""
        default = next(each.default for each in self.options if each.name == name)
        return self.chosen.get(name, default)


_Configurable = TypeVar("_Configurable", bound=HasOptions)


def with_options(rule: _Configurable, values: Mapping[str, OptionValue]) -> _Configurable:
    """A copy of a rule with other values of options."""
    made = copy(rule)
    made.chosen = dict(values)
    return made


class Group(Enum):
    """The kinds of waits and copies that the table of judgement tells apart."""

    READ = "read"
    """A number of a tensor is read."""
    COPY = "copy"
    """A tensor is copied to the CPU."""
    MOVE = "move"
    """A tensor is copied to the GPU."""
    NUMBERS = "numbers"
    """A few numbers of Python are copied to the GPU."""
    SELECTION = "selection"
    """The size of a result depends on the data."""
    DECISION = "decision"
    """The CPU goes on by the value of a tensor."""
    TEXT = "text"
    MANY = "many"
    """One place waits for each of many values."""
    CLEANING = "cleaning"
    """Memory is given back."""
    WAIT = "wait"
    """Another wait, copy or allocation."""
    OTHER = "other"


class Rule(HasOptions, ABC):
    """Base of all rules."""

    code: ClassVar[str]
    """`TPF` and three digits: a number that is free among those of its family."""
    name: ClassVar[str]
    """The bad habit in kebab case: "allow <name>" reads well. The file is named alike."""
    effect: ClassVar[Effect]
    severity: ClassVar[Severity]
    """The highest severity that a row of `measured` deserves, if there are rows (a test checks that)."""
    measured: ClassVar[tuple[str, ...]] = ()
    """Steps of programs in `worth.toml` that the pattern was timed in, those to quote first."""
    costs: ClassVar[str | None] = ""
    """The sentence on the cost, with `{0}` for the first of `measured`; not needed for the usual pair of steps.

    None if findings bring their own.
    """
    listens: ClassVar[tuple[Listens, ...]]
    mentions: ClassVar[Mentions | None] = None
    """A condition on the text of the file, without which the rule looks at nothing."""
    replaces: ClassVar[tuple[str, ...]] = ()
    """The codes of more general rules: if both report an expression, only this rule speaks (`rules/precedence.py`)."""
    since: ClassVar[tuple[int, int] | None] = None
    """The first torch version that the rule holds for."""
    until: ClassVar[tuple[int, int] | None] = None
    """The first torch version that it does not hold for any more."""
    group: ClassVar[Group] = Group.WAIT
    is_deprecation: ClassVar[bool] = False
    """True if it reports names that torch deprecates, which costs no time (`engine/deprecations.py`)."""

    def configured(self, values: Mapping[str, OptionValue]) -> Rule:
        """The same rule with other values of options."""
        return with_options(self, values)

    @property
    def module(self) -> str:
        """The full name of the module that holds the rule."""
        return type(self).__module__

    @property
    def document(self) -> str:
        """The page of the rule as it is written; empty if Python runs without docstrings."""
        return type(self).__doc__ or ""

    @property
    def origin(self) -> str:
        """The module of house rules that has the rule; empty for rules of perflint."""
        return ""

    @property
    def content(self) -> str:
        """A digest of the code of a house rule; empty for rules of perflint."""
        return ""

    @abstractmethod
    def check(self, site: Any) -> Iterator[Finding]:
        """The findings at a site that the rule listens to.

        It runs for each such site, so it asks cheap questions first. A fix asks the site for its libcst node
        (`site.concrete`) only when there is a finding.
        """

    def need(self, site: Any) -> Need:
        """Whether the CPU needs the value of a wait at a site."""
        return Need.OPEN

    def measured_cost(self) -> str | None:
        """The sentence on the measured cost of the pattern; None if there is none for all its findings."""
        from perflint.rules.worth import sentence, usual

        if self.costs is None or not self.measured:
            return None
        return sentence(self.costs, *self.measured) if self.costs else usual(self.measured)

    def finding(
        self,
        site: Site,
        message: str,
        *,
        confidence: Confidence = Confidence.HIGH,
        severity: Severity | None = None,
        heat: Heat | None = None,
        effect: Effect | None = None,
        span: Span | None = None,
        help: str | None = None,
        fix: Fix | None = None,
        cost: str | None = None,
        parts: tuple[Span, ...] = (),
    ) -> Finding:
        """A finding of this rule at a site, with the rule's and the site's own values as defaults."""
        return Finding(
            path=site.model.source.path,
            span=span or site.span,
            code=self.code,
            name=self.name,
            message=message,
            severity=severity or self.severity,
            confidence=confidence,
            heat=heat or site.heat,
            effect=effect or self.effect,
            help=help,
            fix=fix,
            cost=cost,
            parts=parts,
        )


class OutsideRule(Rule):
    """Base of the rules whose findings are not made at sites of the code, but elsewhere in perflint."""

    listens = ()

    def check(self, site: Any) -> Iterator[Finding]:
        """Nothing."""
        return iter(())


class TracedRule(OutsideRule):
    """Base of the rules whose findings come with a trace (`tracer/verdicts.py`)."""


class CommentRule(OutsideRule):
    """Base of the rules about comments that silence findings (`engine/comments.py`)."""


class DeclaredRule(OutsideRule):
    """Base of the rules about functions that the settings declare (`engine/declared.py`)."""


def shown(site: Site, node: ast.expr | ast.stmt | None = None) -> str:
    """The code of the expression of a site, or of another node, between backquotes."""
    return quoted(site.model.source.written(site.node if node is None else node))


_RARE = (Frequency.EPOCH, Frequency.NEVER)


def often(site: Site) -> str:
    """How often the code of a site runs, to end a message with: " (runs every step)"; empty if it is not hot."""
    # A clean file does not pay for the import.
    from perflint.semantics.purpose.frequency import frequency

    if site.heat is not Heat.HOT:
        return ""
    unit = Frequency.STEP if isinstance(site, FileSite) else frequency(site.model, site.node)
    return "" if unit in _RARE else f" ({unit.words})"
