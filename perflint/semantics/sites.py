"""The places that rules listen to, with the facts that the model holds of each."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.findings import Confidence, Heat, Span, weakest
from perflint.frozen import dataclass
from perflint.semantics.structure import keyword
from perflint.semantics.values import Device, Evidence, Tensor, Value
from perflint.source.concrete import cst

if TYPE_CHECKING:
    from perflint.semantics.model import Model


@dataclass(frozen=True, slots=True)
class Site:
    """A node of a file and the model that knows about it."""

    model: Model
    node: ast.expr

    @property
    def key(self) -> tuple[object, ...]:
        """The key of a site of a file, equal in any model of it."""
        return type(self), self.node, getattr(self, "sink", None), getattr(self, "construct", None)

    @property
    def heat(self) -> Heat:
        """How often the node runs."""
        return self.model.heat(self.node)

    @property
    def span(self) -> Span:
        """The position of the node."""
        return self.model.source.span(self.node)

    def text(self, node: ast.expr) -> str:
        """The source text of an expression."""
        return self.model.source.written(node)

    def value(self, node: ast.expr) -> Value:
        """The model's value of an expression."""
        return self.model.value(node)


@dataclass(frozen=True, slots=True)
class ExpressionSite(Site):
    """An expression, with its libcst node for fixes."""

    @property
    def concrete(self) -> cst.BaseExpression:
        """The libcst node of the expression, parsed when a rule first asks for it."""
        return self.model.source.concrete(self.node)


@dataclass(frozen=True, slots=True)
class CallSite(ExpressionSite):
    """A call whose target the model knows.

    `target` is the full name of the callee: "torch.nonzero", "torch.Tensor.item",
    "builtins.float", "torch.nn.Conv2d" (a constructor), "torch.nn.Module.__call__" (calling
    an object of a module class), "package.module.function" of the project.
    """

    node: ast.Call
    target: str
    receiver: Value | None
    """The object of a method call."""

    def argument(self, name: str, position: int | None = None) -> ast.expr | None:
        """The argument passed by keyword, or at a position of the call as written.

        None if it is not passed, or may be hidden by `*args` or `**kwargs`.
        """
        given = keyword(self.node, name)
        if given is not None or position is None or position >= len(self.node.args):
            return given
        if any(isinstance(arg, ast.Starred) for arg in self.node.args[: position + 1]):
            return None
        return self.node.args[position]

    @property
    def owner(self) -> ast.expr | None:
        """The expression that a method is called on; None for a bound method that has another name: `move = x.to`."""
        return self.node.func.value if isinstance(self.node.func, ast.Attribute) else None

    @property
    def concrete(self) -> cst.Call:
        """The libcst node of the call, parsed when a rule first asks for it."""
        node = self.model.source.concrete(self.node)
        assert isinstance(node, cst.Call)
        return node

    @property
    def has_unpacking(self) -> bool:
        """True if `*args` or `**kwargs` may hide arguments."""
        return any(isinstance(arg, ast.Starred) for arg in self.node.args) or any(
            keyword.arg is None for keyword in self.node.keywords
        )


@dataclass(frozen=True, slots=True)
class TruthSite(ExpressionSite):
    """An expression whose truth decides which code runs next.

    `construct` is "if", "while", "assert", "conditional expression", "and", "or", "not",
    "comprehension" or "case"; "chained comparison" (`a < b < c`, which tests `a < b`) where
    nothing around it asks for its truth, "in" for a test of membership (which tests equality).
    """

    construct: str


@dataclass(frozen=True, slots=True)
class SubscriptSite(ExpressionSite):
    """An indexing. `mode` is "load", "store", "augmented" (`x[i] += 1`) or "delete"."""

    node: ast.Subscript
    mode: str
    stored: ast.expr | None = None
    """The right-hand side of the assignment, where the mode is "store" or "augmented"."""


@dataclass(frozen=True, slots=True)
class FormatSite(ExpressionSite):
    """An expression that is turned into text.

    `sink` is "f-string", "print", "logging", "str.format", "%", "str", "repr" or "format".
    """

    sink: str


@dataclass(frozen=True, slots=True)
class FileSite(Site):
    """A whole file, for rules that look at functions, loops and classes; `node` is a placeholder."""


def device_confidence(value: Value) -> Confidence | None:
    """How sure it is that `value` is a tensor on the device; None if it is not a tensor, or on the CPU."""
    tensor = value.tensor
    if tensor is None or not tensor.off_host:
        return None
    confidence = _confidence(tensor)
    if len(value.members) > 1 and confidence is not Confidence.LOW:
        # What a model returns, or a part of it, is a tensor or holds some.
        each = [_confidence(part) for member in value.members if (part := member.tensor) is not None and part.off_host]
        if len(each) == len(value.members):
            return weakest(*each)
        return Confidence.MEDIUM if confidence is Confidence.HIGH else Confidence.LOW
    return confidence


def _confidence(tensor: Tensor) -> Confidence:
    if tensor.evidence is Evidence.USE:
        return Confidence.MEDIUM if tensor.device in (Device.CUDA, Device.MODEL) else Confidence.LOW
    if tensor.device in (Device.CUDA, Device.MODEL):
        return Confidence.HIGH if tensor.evidence >= Evidence.ANNOTATION else Confidence.MEDIUM
    return Confidence.MEDIUM if tensor.device is Device.CALLER else Confidence.LOW
