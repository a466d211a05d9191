"""Additions to findings that are shown: the reason, the cost, and findings that belong together."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from perflint.engine.severity import severity_at
from perflint.engine.why import Whys
from perflint.findings import Effect, Finding, Heat, Span
from perflint.frozen import replace
from perflint.rules.base import Rule
from perflint.semantics.dataflow.origins import Source
from perflint.semantics.model import Model


def placed(findings: Sequence[Finding], rules: Iterable[Rule], model: Model) -> list[Finding]:
    """The findings of a file as they are shown: with reasons, costs, groups, and severities of their places."""
    costs = {rule.code: rule for rule in rules}
    nodes = nodes_of(findings, model)
    whys = Whys(model)
    groups = _Groups()
    for index, finding in enumerate(findings):
        node = nodes.get(finding.span)
        if node is not None:
            groups.add(index, _causes(finding, node, model, whys))
    names = groups.names(findings)
    shown = []
    for index, finding in enumerate(findings):
        node, rule = nodes.get(finding.span), costs.get(finding.code)
        is_cold = finding.heat is Heat.COLD
        cost = finding.cost or (rule.measured_cost() if rule is not None else None)
        shown.append(
            replace(
                finding,
                severity=severity_at(finding),
                why=whys.clause(finding, node) if node is not None else None,
                cost=None if is_cold else cost,
                function=_function(node, model),
                group=names.get(index),
            )
        )
    return shown


_Node = ast.expr | ast.stmt
_OF_CONSTRUCTION = (Effect.COMPUTE, Effect.MEMORY, Effect.PIPELINE)
"""Effects of construction: equal constructions in one function have one reason."""


def nodes_of(findings: Sequence[Finding], model: Model) -> dict[Span, _Node]:
    """The node of each span: the outermost that takes just that stretch, or else the outermost that begins there."""
    wanted = {finding.span for finding in findings}
    lines = {span.line for span in wanted}
    exact: dict[Span, _Node] = {}
    beginning: dict[tuple[int, int], _Node] = {}
    for node in model.everything():
        if isinstance(node, (ast.expr, ast.stmt)) and node.lineno in lines:
            span = model.source.span(node)
            if span in wanted:
                exact.setdefault(span, node)
            beginning.setdefault((span.line, span.column), node)
    starts = {span: (span.line, span.column) for span in wanted}
    found = {span: exact.get(span, beginning.get(start)) for span, start in starts.items()}
    return {span: node for span, node in found.items() if node is not None}


def _function(node: _Node | None, model: Model) -> str | None:
    function = model.function(node) if node is not None else None
    while isinstance(function, ast.Lambda):
        function = model.function(function)
    info = model.module.defined_by(function)
    return info.qualname if info is not None else None


def _causes(finding: Finding, node: _Node, model: Model, whys: Whys) -> list[tuple[object, ...]]:
    """The cause that a finding shares with others of its rule in its function: its tensor's source, or the line."""
    function = model.function(node)
    place = (finding.code, function.lineno, function.col_offset) if function is not None else (finding.code, 0, 0)
    causes: list[tuple[object, ...]] = [(*place, "line", finding.span.line), (*place, finding.message)]
    if finding.effect in _OF_CONSTRUCTION:
        causes.append(place)
    subject = whys.subject(node)
    if subject is not None:
        origin = model.origins.of(subject)
        has_node = origin.source not in (Source.OUTSIDE, Source.STATE)
        causes.append((*place, origin.source, origin.node if has_node else origin.root))
    return causes


class _Groups:
    """Numbers that have a cause in common, directly or by way of others."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}
        self._by_cause: dict[tuple[object, ...], int] = {}

    def add(self, index: int, causes: Iterable[tuple[object, ...]]) -> None:
        """Add a number with its causes."""
        self._parents[index] = index
        for cause in causes:
            other = self._first(self._by_cause.setdefault(cause, index))
            own = self._first(index)
            self._parents[max(own, other)] = min(own, other)

    def _first(self, index: int) -> int:
        while self._parents[index] != index:
            self._parents[index] = self._parents[self._parents[index]]
            index = self._parents[index]
        return index

    def names(self, findings: Sequence[Finding]) -> dict[int, str]:
        """The name of the group of each number that is not alone."""
        firsts = {index: self._first(index) for index in self._parents}
        sizes: dict[int, int] = {}
        for first in firsts.values():
            sizes[first] = sizes.get(first, 0) + 1
        return {index: _name(findings[first]) for index, first in firsts.items() if sizes[first] > 1}


def _name(first: Finding) -> str:
    return f"{first.path}:{first.span.line}:{first.span.column}:{first.code}"
