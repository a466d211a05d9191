"""Policies for calls that empty the cache of the allocator or collect garbage."""

from __future__ import annotations

import ast

from perflint.findings import Finding, Severity
from perflint.frozen import replace
from perflint.rules._places import inside, loops_around
from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import conventions
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, Site
from perflint.semantics.structure import block_in, place_in, walk

CACHE = "TPF123"
"""The rule about emptying the cache of the allocator."""


def beside_evaluation(finding: Finding, site: Site) -> Finding:
    """Memory that is freed beside the loops of a function that does not train: information in two cases.

    The name of the function says that it evaluates: an evaluation takes far longer. Or a loop before calls the same in
    each iteration, which is reported.
    """
    if finding.code != CACHE or not isinstance(site, CallSite) or any(loops_around(site.model, site.node)):
        return finding
    function = site.model.function(site.node)
    if function is None or isinstance(function, ast.Lambda) or site.model.heat_map.work.steps(function):
        return finding
    is_minor = bool(conventions.analyses(function.name)) or _follows_loop_that_calls(site)
    return replace(finding, severity=Severity.INFO) if is_minor else finding


def _follows_loop_that_calls(site: CallSite) -> bool:
    """True if a loop that always runs before a call calls the same function."""
    model = site.model
    for outer in (site.node, *inside(model, site.node)):
        if not isinstance(outer, ast.stmt):
            continue
        block = block_in(model.parent(outer), outer)
        before = block[: place_in(block, outer) or 0]
        if any(isinstance(each, LOOPS) and site.target in _called_in(model, each) for each in before):
            return True
    return False


@once_per_node
def _called_in(model: Model, loop: ast.AST) -> frozenset[str]:
    """The functions that a loop calls."""
    return frozenset(model.target(node) for node in walk(loop) if isinstance(node, ast.Call))
