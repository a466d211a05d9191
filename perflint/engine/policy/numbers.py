"""Policies for copies of a few numbers of Python to the GPU."""

from __future__ import annotations

import ast

from perflint.findings import Finding, Severity
from perflint.frozen import replace
from perflint.rules._places import inside
from perflint.semantics.binders import defaults
from perflint.semantics.sites import FileSite, Site

FEW_NUMBERS = frozenset({"TPF116", "TPF117", "TPF118", "TPF135"})
"""Rules about copies of a few Python numbers to the GPU."""


def for_missing_argument(finding: Finding, site: Site) -> Finding:
    """Numbers in place of an argument that a call leaves out: information, since repeated calls can pass a tensor.

    `def encode(x, lengths=None): if lengths is None: lengths = torch.tensor([x.shape[-1]], device=x.device)`.
    """
    if finding.code not in FEW_NUMBERS or isinstance(site, FileSite):
        return finding
    function = site.model.function(site.node)
    optional = {} if function is None else defaults(function)
    inner: ast.AST = site.node
    for outer in inside(site.model, site.node):
        if isinstance(outer, ast.If) and inner in outer.body and _is_none(optional.get(_missing(outer.test))):
            return replace(finding, severity=Severity.INFO)
        inner = outer
    return finding


def _missing(test: ast.expr) -> str:
    """The name that is None if a test holds: "x" of `x is None`; "" for other tests."""
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name) or len(test.ops) != 1:
        return ""
    return test.left.id if isinstance(test.ops[0], ast.Is) and _is_none(test.comparators[0]) else ""


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
