"""Policies for results whose size depends on the data: positions of a mask, selected rows."""

from __future__ import annotations

import ast

from perflint.findings import Finding, Severity
from perflint.frozen import replace
from perflint.rules._statements import statement_of
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, Site
from perflint.semantics.structure import last_name, walk

SELECTIONS = "TPF110"
"""The rule about results whose size depends on the data."""


def counted(finding: Finding, site: Site) -> Finding:
    """Positions whose number a test asks for: information, since the CPU needs the number to go on.

    `found = mask.nonzero()`, then `if len(found) == 0: return`. Not in code that a package offers: its users may run it
    in each step.
    """
    if finding.code != SELECTIONS or not isinstance(site, CallSite) or site.model.is_offered:
        return finding
    statement = statement_of(site.model, site.node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return finding
    is_asked = any(_is_number_in_test(site.model, load) for load in site.model.destinations.later(target))
    return replace(finding, severity=Severity.INFO) if is_asked else finding


def _is_number_in_test(model: Model, name: ast.Name) -> bool:
    """True for a name in `if len(name) > n:` and `if name.numel() == 0:`."""
    inner: ast.AST = name
    for outer in model.ancestors(name):
        if isinstance(outer, ast.If):
            return inner is outer.test and any(_counts(part, name) for part in walk(outer.test))
        if isinstance(outer, ast.stmt):
            return False
        inner = outer
    return False


def _counts(node: ast.AST, name: ast.Name) -> bool:
    """True for `len(name)`, `name.numel()`, `name.size(0)` and `name.shape[0]`."""
    if isinstance(node, ast.Subscript):
        shape = node.value
        return isinstance(shape, ast.Attribute) and shape.attr == "shape" and shape.value is name
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.value is name and node.func.attr in ("numel", "nelement", "size")
    return last_name(node) == "len" and name in node.args
