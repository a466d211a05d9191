"""Inlay hints and code lenses: devices of names, and measured costs of lines and functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from lsprotocol.types import CodeLens, Command, InlayHint, InlayHintKind, Position, Range

from perflint.engine.devices import Bound
from perflint.findings import Span
from perflint.integrations.lsp.positions import Positions
from perflint.output.terminal import printable
from perflint.source.text import Source
from perflint.tracer.costs import Measured

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_PLACES = {"cpu": "the CPU", "cuda": "the GPU"}
_LEAST = 0.005
"""The share of a step below which a cost cannot be distinguished from noise."""


def inlay_hints(
    source: Source, names: Sequence[Bound], costs: Measured | None, asked: Range, encoding: str
) -> Iterator[InlayHint]:
    """The hints in a range: the device behind each name, and the cost at the end of each line."""
    positions = Positions(source, encoding)
    lines = range(asked.start.line + 1, min(asked.end.line + 1, len(source.lines)) + 1)
    for bound in names:
        if bound.span.line in lines:
            yield InlayHint(
                positions.range(bound.span).end,
                f": {bound.device}",
                kind=InlayHintKind.Type,
                tooltip=f"perflint: the tensor is on {_PLACES[bound.device]}",
            )
    if costs is None:
        return
    for line, ms in sorted(_worth(costs).items()):
        if line in lines:
            yield InlayHint(
                _end(positions, source, line),
                f"{ms:.3g} ms a step",
                tooltip=f"perflint: measured in {printable(costs.conditions)}",
                padding_left=True,
            )


def code_lenses(source: Source, costs: Measured | None, encoding: str) -> Iterator[CodeLens]:
    """The cost of each function with measured lines, and of the code outside of functions."""
    if costs is None:
        return
    functions = [node for node in ast.walk(source.tree) if isinstance(node, _Function)]
    by_owner: dict[_Function | None, float] = {}
    for line, ms in _worth(costs).items():
        owner = _innermost(functions, line)
        by_owner[owner] = by_owner.get(owner, 0.0) + ms
    positions = Positions(source, encoding)
    for owner, ms in by_owner.items():
        line = 1 if owner is None else owner.lineno
        place = Position(line - 1, 0)
        title = f"measured: {ms:.3g} ms of {costs.step_ms:.3g} ms"
        yield CodeLens(Range(place, _end(positions, source, line)), Command(title, command=""))


def _worth(costs: Measured) -> dict[int, float]:
    """The milliseconds by line, without those that may be noise."""
    return {line: ms for line, ms in costs.lines.items() if ms >= _LEAST * costs.step_ms}


def _innermost(functions: Sequence[_Function], line: int) -> _Function | None:
    """The innermost function that a line is in, or None."""
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or node.lineno)]
    return max(around, key=lambda node: node.lineno, default=None)


def _end(positions: Positions, source: Source, line: int) -> Position:
    """The end of a line."""
    length = len(source.lines[line - 1].rstrip("\r\n")) if line <= len(source.lines) else 0
    return positions.range(Span(line, length + 1, line, length + 1)).start
