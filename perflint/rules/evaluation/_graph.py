"""The graph of a function's values, and the fate of each of them."""

from __future__ import annotations

import ast
from enum import Flag, auto
from functools import cached_property

from perflint.frozen import dataclass, field
from perflint.semantics.dataflow.flow import Bound


class Fate(Flag):
    """The fate of a value, in all of its uses in its function."""

    NONE = 0
    GRADIENT = auto()
    """Some use computes a gradient, or asks for one."""
    RETURNED = auto()
    """It leaves the function as its result."""
    STORED = auto()
    """It goes into an attribute, a global, a closure, or a container from elsewhere."""
    PASSED = auto()
    """It goes to code that is not seen, which may keep it or compute a gradient."""
    CALLED = auto()
    """It is a function or a module itself, and is called."""
    NAMED = auto()
    """It goes to code that is not seen and that is named as a loss or a model is."""
    READ = auto()
    """Some use takes the values and leaves the graph."""
    DETACHED = auto()
    """Some use detaches, which needs a graph to detach from."""
    ARRAY = auto()
    """Some use is an error where there is a graph: `.numpy()`."""


ESCAPES = Fate.GRADIENT | Fate.RETURNED | Fate.STORED | Fate.PASSED | Fate.CALLED
"""The ends from which a gradient may come back."""


@dataclass(slots=True, eq=False)
class Content:
    """The values that are put into the object that a name is bound to: `losses.append(loss)`."""

    bound: Bound


Place = ast.AST | Bound | Content
"""A holder of a value: an expression, a binding of a name, the content of an object."""
Edges = dict[Place, list[Place]]


@dataclass(eq=False)
class Flow:
    """The values of a function: an edge leads from each place of a value to the next."""

    edges: Edges = field(default_factory=dict)
    """With the value goes its graph."""
    values: Edges = field(default_factory=dict)
    """The value goes on and its graph does not: `x.argmax()`."""
    ends: dict[Place, Fate] = field(default_factory=dict)
    unseen: set[ast.Call] = field(default_factory=set)
    """The calls of code that is not seen."""
    parameters: dict[ast.arg, Bound] = field(default_factory=dict)

    def fate(self, node: ast.AST | Bound) -> Fate:
        """The fate of the value of a node, as far as its graph goes with it."""
        return self.fates.get(node, Fate.NONE)

    @cached_property
    def fates(self) -> dict[Place, Fate]:
        """The ends, brought back to all that leads to them."""
        return self._brought_back(self.edges)

    @cached_property
    def all_fates(self) -> dict[Place, Fate]:
        """The fate of values whose graph may be left behind: `x.argmax()` counts as well."""
        return self._brought_back(self.edges, self.values)

    def _brought_back(self, *all_edges: Edges) -> dict[Place, Fate]:
        before: Edges = {}
        for edges in all_edges:
            for start, others in edges.items():
                for other in others:
                    before.setdefault(other, []).append(start)
        found: dict[Place, Fate] = {}
        waiting = list(self.ends.items())
        while waiting:
            place, brought = waiting.pop()
            known = found.get(place, Fate.NONE)
            if known | brought != known:
                found[place] = known | brought
                waiting += [(other, brought) for other in before.get(place, ())]
        return found
