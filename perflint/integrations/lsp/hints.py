"""What an editor shows between the code: devices of names, measured costs of lines, and costs of functions."""

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

_PLACES = {"cpu": "the CPU", "cuda": "the GPU"}
_LEAST = 0.005
"""The share of a step below which a cost cannot be distinguished from noise."""


def inlay_hints(
    source: Source, names: Sequence[Bound], costs: Measured | None, asked: Range, encoding: str
) -> Iterator[InlayHint]:
    """The hints in a range: the device behind each name, and the cost at the end of each line."""
    positions = Positions(source, encoding)
    for bound in names:
        if asked.start.line <= bound.span.line - 1 <= asked.end.line:
            yield InlayHint(
                positions.range(bound.span).end,
                f": {bound.device}",
                kind=InlayHintKind.Type,
                tooltip=f"perflint: the tensor is on {_PLACES[bound.device]}",
            )
    for line, ms in sorted(_worth(costs).items()) if costs is not None else ():
        if asked.start.line <= line - 1 <= asked.end.line and line <= len(source.lines):
            yield InlayHint(
                _end(positions, source, line),
                f"{ms:.3g} ms a step",
                tooltip=f"perflint: measured in {printable(costs.conditions)}" if costs else None,
                padding_left=True,
            )


def code_lenses(source: Source, costs: Measured | None, encoding: str) -> Iterator[CodeLens]:
    """The cost of each function with measured lines, and of the code outside of functions."""
    if costs is None:
        return
    by_owner: dict[ast.AST | None, float] = {}
    for line, ms in _worth(costs).items():
        owner = _function(source.tree, line)
        by_owner[owner] = by_owner.get(owner, 0.0) + ms
    positions = Positions(source, encoding)
    for owner, ms in by_owner.items():
        line = 1 if owner is None else getattr(owner, "lineno", 1)
        place = Position(line - 1, 0)
        title = f"measured: {ms:.3g} ms of {costs.step_ms:.3g} ms"
        yield CodeLens(Range(place, _end(positions, source, line)), Command(title, command=""))


def _worth(costs: Measured) -> dict[int, float]:
    """The costs by line without those that are noise."""
    return {line: ms for line, ms in costs.lines.items() if ms >= _LEAST * costs.step_ms}


def _function(tree: ast.Module, line: int) -> ast.AST | None:
    """The innermost function that a line is in."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    around = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    around = [node for node in around if node.lineno <= line <= (node.end_lineno or node.lineno)]
    return max(around, key=lambda node: node.lineno, default=None)


def _end(positions: Positions, source: Source, line: int) -> Position:
    """The end of a line."""
    length = len(source.lines[line - 1].rstrip("\r\n")) if line <= len(source.lines) else 0
    return positions.range(Span(line, length + 1, line, length + 1)).start
