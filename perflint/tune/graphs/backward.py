"""Finds the forward and backward pass of a training step, where its whole step cannot become one graph."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property

from perflint.semantics.structure import block_in, path_of
from perflint.tune.graphs.parts import Region
from perflint.tune.graphs.purity import is_gradient, loaded_names, short, stored_names
from perflint.tune.graphs.region import Finder, carrier
from perflint.tune.graphs.statements import is_method, simple
from perflint.tune.graphs.writing import BACKWARD
from perflint.tune.refused import Refused


class BackwardFinder(Finder):
    """Finds a region that ends with a backward pass. Its gradients are handed over, so other code may use them."""

    may_raise = True

    def find(self) -> Region:
        """The first region of the file that can be a graph. Raises Refused."""
        calls = [
            node for node in ast.walk(self._source.tree) if isinstance(node, ast.Call) and self._purity.begins(node)
        ]
        # The call itself, not one inside of which it stands.
        calls = [each for each in calls if not any(other in ast.walk(each) for other in calls if other is not each)]
        calls = [each for each in calls if not self._is_graph(each)]
        refused: Refused | None = None
        for call in sorted(calls, key=lambda each: each.lineno):
            try:
                return self._before(self._statement(call))
            except Refused as reason:
                refused = refused or reason
        raise refused or Refused("no backward pass began in the file", 1)

    def _is_graph(self, call: ast.Call) -> bool:
        """True for a backward pass in a function that is replayed already."""
        functions = {path_of(each.args[0]).rpartition(".")[2] for each in self._graphs.values()}
        return any(getattr(each, "name", None) in functions for each in self._chain(call))

    @cached_property
    def _graphs(self) -> dict[str, ast.Call]:
        """The names of the graphs that the file has, with the calls that make them."""
        return {
            path_of(node.targets[0]): node.value
            for node in ast.walk(self._source.tree)
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and path_of(node.value.func) == BACKWARD.name
        }

    def _is_replay(self, call: ast.Call) -> bool:
        return path_of(call.func) in self._graphs

    def _arranged(self, statements: Sequence[ast.stmt]) -> Region:
        for node in (node for each in statements for node in ast.walk(each)):
            if isinstance(node, ast.Call) and self._is_replay(node):
                raise Refused("another graph is replayed", node)
        return super()._arranged(statements)

    def _before(self, backward: ast.stmt) -> Region:
        """The region that ends with a backward pass. Raises Refused."""
        if not isinstance(backward, ast.Expr):
            raise Refused("the backward pass is part of another statement", backward)
        if any(isinstance(node, ast.keyword) and node.arg == "create_graph" for node in ast.walk(backward)):
            raise Refused("gradients of gradients may be wanted", backward)
        for last, _ in self._levels(backward):
            try:
                return self._until(last)
            except Refused as refused:
                reason = refused
        raise reason

    def _until(self, last: ast.stmt) -> Region:
        """The region that ends with a statement. Raises Refused."""
        block = block_in(self._parents.get(last), last)
        end = block.index(last) + 1
        start = next((each for each in range(end) if self._reason(block[each:end]) is None), end - 1)
        stop = self._reason(block[start - 1 : end]) if start else None
        while start < end - 1 and self._begins_behind(block[start:end]):
            start += 1
        region = self._arranged(block[start:end])
        # What only stands in front of the region is no part of it.
        while region.before and region.before[0].statement is region.whole[0] and len(region.whole) > 1:
            region.whole.pop(0)
            region.before.pop(0)
        if not self._calls_model(region):
            moved = next((each.reason for each in reversed(region.before) if not _clears(each.statement)), None)
            raise moved or stop or Refused("the model is called outside of the block of the backward pass", last)
        self._require_gradless_results(region, block[end:])
        if self._graphs:
            self._require_gradless_inputs(region, block[: block.index(region.whole[0])])
        for node in (node for each in region.kept for node in ast.walk(each)):
            if is_gradient(node, self._purity.imports):
                raise Refused(f"`{short(node)}` reads a gradient in the step that makes it", node)
        return region

    def _require_gradless_results(self, region: Region, later: Sequence[ast.stmt]) -> None:
        """Raise Refused if a later backward pass goes through a result: those of a graph end its gradients."""
        computed = self._computed(region.kept)
        for statement in later:
            used = carrier(statement, computed)
            if used and any(self._purity.begins(node) for node in ast.walk(statement)):
                raise Refused(f"the gradients of a later backward pass go through `{used}`", statement)
            computed = computed | {*stored_names(statement)} if used else computed - {*stored_names(statement)}

    def _clears(self, region: Region, statement: ast.stmt, bound: set[str]) -> bool:
        if not _clears(statement):
            return False
        if any(self._purity.begins(node) for each in region.kept for node in ast.walk(each)):
            raise Refused("gradients are cleared between two backward passes", statement)
        parts = [each for each in simple(statement) if isinstance(each, ast.stmt)]
        only = all(isinstance(each, ast.Expr) and is_method(each.value, "zero_grad") for each in parts)
        if not only or bound & {name.id for name in loaded_names(statement)}:
            raise Refused("gradients are cleared in the middle of other work", statement)
        return True


def _clears(statement: ast.stmt) -> bool:
    return any(is_method(node, "zero_grad") for node in ast.walk(statement))
