"""The bindings and uses of the names of one scope, as `scope_flow` finds them."""

from __future__ import annotations

import ast

from perflint.frozen import dataclass, field
from perflint.semantics.binders import Loop

Use = ast.Name | ast.Attribute | ast.Subscript
"""A name, or a part of an object that stands for a name."""
USES = (ast.Name, ast.Attribute, ast.Subscript)


@dataclass(slots=True, eq=False)
class Bound:
    """A value that a plain name gets: from one place, or from several whose ways meet (`node` is None)."""

    name: str
    node: ast.AST | None
    value: ast.expr | None = None
    """The expression that the value comes from."""
    whole: bool = True
    """True if the value is all of that expression, not a part of it."""
    uses: list[Use] = field(default_factory=list)
    """The places that read it or add to it."""
    into: list[Bound] = field(default_factory=list)
    """The places at which it joins the values of other branches."""
    of: list[Bound] = field(default_factory=list)
    """The definitions that meet in it."""
    loop: Loop | None = None
    """The loop whose next iteration begins here."""
    live: bool = False
    """True if a use may see it."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The places that may use a value, and the loops that carry it from one iteration to the next."""

    uses: tuple[Use, ...]
    loops: tuple[Loop, ...]


class Flow:
    """The bindings of the plain names of a scope, and their uses outside of inner functions and classes.

    The parts of an object that nothing uses as a whole are names, too: `state.loss`, `state["loss"]`.
    """

    def __init__(self) -> None:
        self.stored: dict[ast.AST, Bound] = {}
        """By the store or parameter that binds it."""
        self.used: dict[Use, Bound] = {}
        """By the use that sees it."""
        self.bounds: list[Bound] = []
        """All of them, those where ways meet too."""

    def reach(self, bound: Bound, most: int) -> Reach | None:
        """The uses of a value; None if more than `most` bindings would have to be looked at."""
        seen, waiting = {bound}, [bound]
        uses: list[Use] = []
        loops: list[Loop] = []
        while waiting:
            each = waiting.pop()
            uses += each.uses
            if each.loop is not None:
                loops.append(each.loop)
            for further in each.into:
                if further.live and further not in seen:
                    seen.add(further)
                    waiting.append(further)
            if len(seen) + len(uses) > most:
                return None
        return Reach(tuple(uses), tuple(loops))

    def origins(self, use: ast.Name) -> list[Bound]:
        """The places that may have given a name the value that a use sees; empty if that is outside."""
        return self.behind(self.used.get(use))

    def behind(self, bound: Bound | None) -> list[Bound]:
        """The bindings at single places that meet in one; empty for None."""
        waiting = [] if bound is None else [bound]
        seen = set(waiting)
        found = []
        while waiting:
            each = waiting.pop()
            if each.node is not None:
                found.append(each)
            for before in each.of:
                if before not in seen:
                    seen.add(before)
                    waiting.append(before)
        return found

    def settle(self) -> None:
        """Find out which of all bindings a use may see."""
        for bound in self.bounds:
            for further in bound.into:
                further.of.append(bound)
        waiting = [bound for bound in self.bounds if bound.uses]
        for bound in waiting:
            bound.live = True
        while waiting:
            for before in waiting.pop().of:
                if not before.live:
                    before.live = True
                    waiting.append(before)


def part_of(node: ast.AST) -> tuple[str, str] | None:
    """The name and the key of a part of an object, `state.loss` or `state["loss"]`; None for other nodes."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id, f".{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        if isinstance(node.slice, ast.Constant):
            return node.value.id, f"[{node.slice.value!r}]"
    return None
