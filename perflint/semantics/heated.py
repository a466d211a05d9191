"""How often the lines of one file run, besides what the interpreter finds out about it."""

from __future__ import annotations

import ast
from functools import cached_property

from perflint.findings import Heat
from perflint.semantics.heat.heat_map import HeatMap
from perflint.semantics.inferred import Inferred


class Heated(Inferred):
    """The values in one file, and how often its lines run."""

    def heat(self, node: ast.AST) -> Heat:
        """How often a node runs."""
        return self.heat_map.of(node)

    @cached_property
    def heat_map(self) -> HeatMap:
        """The heat of all nodes, with the loops, guards and callers that decide it."""
        return HeatMap(self)

    def is_over_batches(self, node: ast.expr) -> bool:
        """True if a loop over an expression iterates over the batches of a loader."""
        return self.heat_map.work.is_over_batches(node)
