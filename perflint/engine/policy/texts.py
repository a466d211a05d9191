"""Policies for tensors that are turned into text or logged."""

from __future__ import annotations

import ast

from perflint.findings import Confidence, Finding, Heat, Severity
from perflint.frozen import replace
from perflint.rules._places import inside, loops_around
from perflint.semantics.sites import FileSite, Site, device_confidence
from perflint.semantics.structure import last_name, tested, walk

TEXT = "TPF108"
"""The rule about tensors that are turned into text or logged."""


def as_text(finding: Finding, site: Site) -> Finding:
    """Text outside of the steps is written once per run or epoch: information, since a message costs more than a wait.

    Of 30 findings that were read, all 11 in hot code were worth a change, and none of the 19 in other code. An
    innermost loop that counts, and certainly turns tensors of the GPU into text, is reported. So is text of each step,
    but not of every fifth.
    """
    if finding.code != TEXT or isinstance(site, FileSite):
        return finding
    if finding.heat is not Heat.WARM:
        return replace(finding, severity=Severity.INFO) if _skips_steps(site) else finding
    loop = next(loops_around(site.model, site.node), None)
    if finding.confidence is Confidence.HIGH and loop is not None and _counts(loop):
        return finding
    return replace(finding, severity=Severity.INFO)


def _skips_steps(site: Site) -> bool:
    """True if a place runs every so many steps: `if step % 5 == 0:`."""
    tests = (outer.test for outer in inside(site.model, site.node) if isinstance(outer, ast.If))
    return any(
        isinstance(test, ast.Compare) and isinstance(test.left, ast.BinOp) and isinstance(test.left.op, ast.Mod)
        for test in tests
    )


def _counts(loop: ast.AST) -> bool:
    """True if a loop iterates over `range(…)` and contains no other loop."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return False
    inner = (node for statement in loop.body for node in walk(statement))
    return last_name(loop.iter.func) == "range" and not any(isinstance(node, (ast.For, ast.While)) for node in inner)


def behind_test(finding: Finding, site: Site) -> Finding:
    """Text in a branch that the numbers of a tensor choose: information, since the test has waited for the GPU.

    `if overlap[0] > 0.5: print(boxes)`. The test is reported.
    """
    if finding.code != TEXT or isinstance(site, FileSite):
        return finding
    inner: ast.AST = site.node
    for outer in inside(site.model, site.node):
        if isinstance(outer, ast.If) and inner is not outer.test and _asks_tensor(site, outer.test):
            return replace(finding, severity=Severity.INFO)
        inner = outer
    return finding


def _asks_tensor(site: Site, test: ast.expr) -> bool:
    """True if a test, or a part of it, is a tensor that may be on the GPU."""
    return any(device_confidence(site.value(part)) is not None for part in tested(test))
