"""Graph breaks: places at which torch.compile gives up a graph and goes on with the next.

Each kind has a rule. If a break is in a loop or a `try`, torch.compile gives up the whole function: there the rule
`break-in-loop` replaces the rule of the kind.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, ClassVar

from perflint.findings import Confidence, Effect, Finding, Heat, Severity, lowered, weakest
from perflint.frozen import dataclass
from perflint.rules._statements import outward_in_function
from perflint.rules.base import Mentions, Rule, Site
from perflint.semantics.model import Model
from perflint.semantics.regions.compile_calls import gives_up
from perflint.semantics.regions.compiled import COMPILES, Compiled

_FAR = 2
"""From this number of calls between the compiled function and the line, it is less sure that the line is compiled."""


def in_compiled(*, without: tuple[str, ...] = ()) -> Mentions:
    """The condition that a file, or one that imports it, may compile something, and none has some settings of that."""
    return Mentions("compile", pattern=COMPILES.pattern, without=without, in_importers=True)


@dataclass(frozen=True, slots=True)
class Break:
    """A graph break.

    node: the smallest expression or statement that breaks the graph.
    what: the cause of the break, as a clause: "`x.item()` reads a number of a tensor".
    cure: the code to write instead.
    """

    node: ast.expr | ast.stmt
    what: str
    cure: str
    confidence: Confidence


class BreakRule(Rule):
    """Base of the rules of one kind of graph break."""

    effect, severity = Effect.GRAPH_BREAK, Severity.WARNING
    since = (2, 0)
    mentions = in_compiled()
    whole_graphs: ClassVar[bool] = False
    """True if `fullgraph=True` makes torch.compile capture it."""

    def check(self, site: Any) -> Iterator[Finding]:
        for found, compiled in self.breaks(site):
            yield report(self, site, found, compiled)

    def breaks(self, site: Site) -> Iterator[tuple[Break, Compiled]]:
        """The breaks of this kind at a site, in loops and elsewhere."""
        if not site.model.compiles:
            return
        for found in self.at(site):
            compiled = site.model.compiled(found.node)
            if compiled is not None and not (self.whole_graphs and compiled.options.fullgraph):
                yield found, compiled

    def at(self, site: Any) -> Iterator[Break]:
        """The possible graph breaks at a site; called only in files with compiled functions."""
        raise NotImplementedError


def loses_function(model: Model, node: ast.AST, compiled: Compiled) -> bool:
    """True if a break makes torch.compile give up the function around it, or one that calls that."""
    return compiled.in_loop or any(gives_up(outer, inner) for outer, inner in outward_in_function(model, node))


def report(rule: Rule, site: Site, found: Break, compiled: Compiled, *, whole: bool = False) -> Finding:
    """The finding for a break; with `whole`, all of the function runs eagerly for it."""
    model = site.model
    confidence = found.confidence
    if compiled.depth > _FAR:
        confidence = weakest(confidence, Confidence.MEDIUM)
    if compiled.options.fullgraph is not False:
        confidence = lowered(confidence)
    if compiled.options.fullgraph:
        # It would raise when it first runs, so it probably does not run.
        confidence = Confidence.LOW
    place = compiled.options.place
    ends = f": this breaks the graph of {place}"
    if whole:
        ends = f", in a loop or a `try`: all of the function that {place} compiles runs eagerly"
    return rule.finding(
        site,
        f"{found.what}{ends}",
        confidence=confidence,
        heat=_heat(model, found.node),
        span=model.source.span(found.node),
        help=found.cure,
    )


def _heat(model: Model, node: ast.AST) -> Heat:
    """How often a node runs; a function that is compiled is meant to run often, whatever its surroundings say."""
    heat, function = model.heat(node), model.function(node)
    if heat is Heat.COLD and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return Heat.WARM if model.heat(function.body[0]) is Heat.COLD else heat
    return heat


def guarded(model: Model, node: ast.AST, confidence: Confidence) -> Confidence:
    """LOW if a Python condition decides whether a node runs: torch.compile only traces the branch that is taken."""
    is_guarded = any(
        isinstance(outer, (ast.If, ast.IfExp, ast.While)) and inner is not outer.test
        for outer, inner in outward_in_function(model, node)
    )
    return Confidence.LOW if is_guarded else confidence
