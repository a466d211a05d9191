"""A region: some statements of a training step that one graph replays."""

from __future__ import annotations

import ast

from perflint.frozen import dataclass, field
from perflint.tune.refused import Refused

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Moved:
    """A statement that stands among those of the region and is moved out of it."""

    statement: ast.stmt
    reason: Refused
    """Why it cannot stay."""
    lifted: tuple[ast.expr, ...] = ()
    """Its parts that the region computes for it."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition of the region with a branch that no graph can replay: where it is taken, the step stays eager."""

    test: ast.expr
    eager: bool
    """The value of the condition with which the branch is taken."""
    reason: Refused


@dataclass(slots=True)
class Region:
    """Some statements of a block that one graph replays."""

    owner: ast.Module | Function
    """The function that they belong to, or the module."""
    loops: tuple[ast.stmt, ...]
    """The loops of the owner around them, the outermost first."""
    whole: list[ast.stmt]
    """The statements from the first to the last one."""
    kept: list[ast.stmt] = field(default_factory=list)
    """Those of them that the graph replays, and lifted parts of others; a `with` without what moves out of it."""
    before: list[Moved] = field(default_factory=list)
    """Statements that are moved in front of it."""
    behind: list[Moved] = field(default_factory=list)
    """Statements that are moved behind it, also out of a `with` in it."""
    conditions: list[ast.If] = field(default_factory=list)
    """Those around the step of the optimizer, without its backward pass: they must always be the same."""
    guards: list[Guard] = field(default_factory=list)
    """Conditions that must always be the same, too."""
