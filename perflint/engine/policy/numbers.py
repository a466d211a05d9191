"""Policies for copies of a few numbers of Python to the GPU."""

from __future__ import annotations

import ast

from perflint.findings import Finding, Severity
from perflint.frozen import replace
from perflint.rules._statements import statement_of
from perflint.semantics.binders import defaults
from perflint.semantics.sites import FileSite, Site
from perflint.semantics.structure import is_none

FEW_NUMBERS = frozenset({"TPF116", "TPF117", "TPF118", "TPF135"})
"""Rules about copies of a few Python numbers to the GPU."""
_LISTS = "TPF117"
"""The one of them about lists and arrays."""


def for_missing_argument(finding: Finding, site: Site) -> Finding:
    """A tensor of numbers for an argument that a call leaves out: information, since repeated calls can pass it.

    `def encode(x, lengths=None): if lengths is None: lengths = torch.tensor([x.shape[-1]], device=x.device)`.
    Not in code that a package offers, whose callers are unknown.
    """
    if finding.code != _LISTS or isinstance(site, FileSite) or site.model.is_offered:
        return finding
    function, statement = site.model.function(site.node), statement_of(site.model, site.node)
    outer = None if statement is None else site.model.parent(statement)
    if function is None or not isinstance(statement, ast.Assign) or not isinstance(outer, ast.If):
        return finding
    name = _missing(outer.test) if statement in outer.body else ""
    is_bound = any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
    is_optional = is_bound and is_none(defaults(function).get(name))
    return replace(finding, severity=Severity.INFO) if is_optional else finding


def _missing(test: ast.expr) -> str:
    """The name that is None if a test holds: "x" of `x is None`; "" for other tests."""
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name) or len(test.ops) != 1:
        return ""
    return test.left.id if isinstance(test.ops[0], ast.Is) and is_none(test.comparators[0]) else ""
