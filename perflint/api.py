"""The interface for house rules: rules that a company or project writes for its own code.

A module with house rules imports from here alone; `docs/guide/house-rules.md` shows one. The names in `__all__` are
stable: a minor release may add to them and changes none. The rest of perflint may change at any time.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity, Span
from perflint.frozen import dataclass
from perflint.rules.base import Calls, Files, HasOptions, Option
from perflint.semantics import sites
from perflint.semantics.sites import device_confidence
from perflint.semantics.values import Const, Device, Evidence, Instance, Kind, Scalar

__all__ = [
    "CallSite",
    "Calls",
    "Confidence",
    "Edit",
    "Effect",
    "FileSite",
    "Files",
    "Finding",
    "Fix",
    "FormatSite",
    "Function",
    "Heat",
    "Known",
    "Option",
    "Rule",
    "Safety",
    "Severity",
    "Site",
    "Span",
    "SubscriptSite",
    "TensorFacts",
    "TruthSite",
]

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Node = TypeVar("_Node", bound=ast.AST)
_DEVICES = {Device.CPU: "cpu", Device.CUDA: "cuda", Device.MODEL: "model"}
_DTYPES = {Kind.BOOL: "bool", Kind.INT: "int", Kind.FLOAT: "float"}


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """The facts about an expression that is, or may be, a tensor."""

    device: str
    """ "cpu", "cuda", "model" (the device of the module whose method this is), or "unknown"."""
    dtype: str
    """ "bool", "int", "float" or "unknown"."""
    rank: int | None
    """The number of dimensions, if known."""
    is_parameter: bool
    """True for a parameter of a module."""
    is_certain: bool
    """True if torch makes the tensor or an annotation declares it; else the evidence is a convention or a use."""


@dataclass(frozen=True, slots=True)
class Known:
    """A Python value that the code fixes: None, a bool, a number, a text or bytes."""

    value: object


class Site:
    """A place in a file, and the facts about the file."""

    _inner: sites.Site

    def __init__(self, inner: sites.Site) -> None:
        self._inner = inner

    @property
    def node(self) -> ast.expr:
        """The expression at the place; a placeholder for a `FileSite`."""
        return self._inner.node

    @property
    def path(self) -> str:
        """The path of the file, as the user named it."""
        return self._inner.model.source.path

    @property
    def heat(self) -> Heat:
        """How often the place runs."""
        return self._inner.heat

    # The code

    def text(self, node: ast.expr) -> str:
        """The source text of an expression."""
        return self._inner.text(node)

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """The position of a node."""
        return self._inner.model.source.span(node)

    def edit(self, node: ast.expr, text: str) -> Edit:
        """The edit that writes a text in place of an expression. Brackets around the expression stay."""
        return Edit(self.span(node), text)

    def nodes(self, *kinds: type[_Node]) -> Sequence[_Node]:
        """All nodes of some kinds in the file; those of one kind are in source order."""
        return self._inner.model.nodes(*kinds)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around a node; None for the module."""
        return self._inner.model.parent(node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        return self._inner.model.ancestors(node)

    def function(self, node: ast.AST) -> Function | None:
        """The innermost function or lambda around a node."""
        return self._inner.model.function(node)

    # The facts

    def call(self, node: ast.Call) -> CallSite:
        """Another call of the file."""
        return CallSite(self._inner.model.call(node))

    def heat_of(self, node: ast.AST) -> Heat:
        """How often a node runs."""
        return self._inner.model.heat(node)

    def on_gpu(self, node: ast.expr) -> Confidence | None:
        """How sure it is that an expression is a tensor on the GPU; None if it is not a tensor, or is on the CPU."""
        return device_confidence(self._inner.value(node))

    def tensor(self, node: ast.expr) -> TensorFacts | None:
        """The facts about an expression that is or may be a tensor; None for others."""
        found = self._inner.value(node).tensor
        if found is None:
            return None
        return TensorFacts(
            device=_DEVICES.get(found.device, "unknown"),
            dtype=_DTYPES.get(found.kind, "unknown"),
            rank=found.rank,
            is_parameter=found.leaf == "parameter",
            is_certain=found.evidence >= Evidence.ANNOTATION,
        )

    def known(self, node: ast.expr) -> Known | None:
        """The value of an expression that the code fixes; None if it depends on the run."""
        value = self._inner.value(node)
        return Known(value.value) if isinstance(value, Const) else None

    def type_name(self, node: ast.expr) -> str:
        """The full name of the class of an object, such as "torch.nn.Linear" or "float"; empty if it is unknown."""
        value = self._inner.value(node)
        if value.tensor is not None and len(value.members) == 1:
            return "torch.Tensor"
        if isinstance(value, Const):
            return type(value.value).__name__
        if isinstance(value, Scalar):
            return value.type
        return value.cls if isinstance(value, Instance) else ""

    def is_compiled(self, node: ast.AST) -> bool:
        """True if a node runs under `torch.compile`."""
        return self._inner.model.compiled(node) is not None


class CallSite(Site):
    """A call. `Calls` names the functions whose calls a rule looks at."""

    _inner: sites.CallSite

    @property
    def node(self) -> ast.Call:
        return self._inner.node

    @property
    def target(self) -> str:
        """The full name of the function, such as "torch.save", "torch.Tensor.item" or "acme.log"; empty if unknown."""
        return self._inner.target

    def argument(self, name: str, position: int | None = None) -> ast.expr | None:
        """The argument that is passed by a keyword, or at a position from 0; None if `*` or `**` may hide it."""
        return self._inner.argument(name, position)


class TruthSite(Site):
    """An expression whose truth decides which code runs next."""

    _inner: sites.TruthSite

    @property
    def construct(self) -> str:
        """ "if", "while", "assert", "and", "or", "not", "in", "conditional expression", "comprehension" or "case"."""
        return self._inner.construct


class SubscriptSite(Site):
    """An indexing."""

    _inner: sites.SubscriptSite

    @property
    def node(self) -> ast.Subscript:
        return self._inner.node

    @property
    def mode(self) -> str:
        """ "load", "store", "augmented" (`x[i] += 1`) or "delete"."""
        return self._inner.mode


class FormatSite(Site):
    """An expression that is turned into text."""

    _inner: sites.FormatSite

    @property
    def sink(self) -> str:
        """ "f-string", "print", "logging", "str.format", "%", "str", "repr" or "format"."""
        return self._inner.sink


class FileSite(Site):
    """A whole file. `Files("text")` limits a rule to files that contain a text."""


Listens = Calls | Files | type[TruthSite] | type[SubscriptSite] | type[FormatSite] | type[FileSite]

SITES: Mapping[type[Site], type[sites.TruthSite | sites.SubscriptSite | sites.FormatSite | sites.FileSite]] = {
    TruthSite: sites.TruthSite,
    SubscriptSite: sites.SubscriptSite,
    FormatSite: sites.FormatSite,
    FileSite: sites.FileSite,
}
"""The kinds of sites that a rule may listen to, and their form inside of perflint. Not part of the interface."""


class Rule(HasOptions, ABC):
    """Base of house rules. The docstring of a rule is its page, which `perflint rule CODE` prints."""

    code: ClassVar[str]
    """Two to four capital letters and three digits, such as ACM001. `TPF` is refused."""
    name: ClassVar[str]
    """Words in lower case with hyphens; the name of the bad habit, so that "ignore log-each-tensor" reads well."""
    effect: ClassVar[Effect]
    severity: ClassVar[Severity]
    listens: ClassVar[tuple[Listens, ...]]
    """The places that the rule looks at."""
    replaces: ClassVar[tuple[str, ...]] = ()
    """Codes of rules that are silent at an expression that this rule reports."""
    since: ClassVar[tuple[int, int] | None] = None
    """The first version of torch that the rule holds for."""
    until: ClassVar[tuple[int, int] | None] = None
    """The first version of torch that it does not hold for any more."""

    @abstractmethod
    def check(self, site: Any) -> Iterator[Finding]:
        """The findings at a place, made by `self.finding`. It runs for each place, so it asks cheap questions first.

        The rule keeps no state between calls and reads no files.
        """

    def finding(
        self,
        site: Site,
        message: str,
        *,
        at: ast.expr | ast.stmt | None = None,
        help: str | None = None,
        fix: Fix | None = None,
        confidence: Confidence = Confidence.HIGH,
        severity: Severity | None = None,
        heat: Heat | None = None,
    ) -> Finding:
        """A finding at a place, or at the node `at`.

        `help` says what to do there. The default profile hides findings of low confidence, of severity info, and in
        code that rarely runs: `heat=Heat.WARM` shows a finding there, too.
        """
        span = site._inner.span if at is None else site.span(at)
        return Finding(
            path=site.path,
            span=span,
            code=self.code,
            name=self.name,
            message=message,
            severity=severity or self.severity,
            confidence=confidence,
            heat=heat or (site.heat if at is None else site.heat_of(at)),
            effect=self.effect,
            help=help,
            fix=fix,
        )


_SEEN: Mapping[type[sites.Site], type[Site]] = {
    sites.CallSite: CallSite,
    **{inner: outer for outer, inner in SITES.items()},
}


def seen(site: sites.Site) -> Site:
    """A site as rules see it. Not part of the interface."""
    return _SEEN[type(site)](site)
