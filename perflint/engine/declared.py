"""Findings at calls of functions that the settings declare to wait for the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.engine.contracts import held
from perflint.findings import Confidence, Finding
from perflint.rules.base import often
from perflint.rules.registry import RuleSet
from perflint.semantics.model import Model
from perflint.semantics.values import Instance
from perflint.source.quoting import quoted

SYNC = "TPF137"


def declared_findings(model: Model, rules: RuleSet) -> list[Finding]:
    """The findings of a file; none if the settings declare no such functions or the rule is off."""
    declared = model.view.project.declared
    rule = next((rule for rule in rules.rules if rule.code == SYNC), None) if declared.sync else None
    if rule is None:
        return []
    found = []
    for node in model.nodes(ast.Call):
        if any(map(declared.waits, _targets(model, node))):
            site = model.call(node)
            message = f"{quoted(site.text(node))} blocks the CPU until the GPU catches up{often(site)}"
            help = "The settings list the function under `sync-functions`: call it less often, or after the loop."
            found.append(held(rule.finding(site, message, confidence=Confidence.HIGH, help=help), site))
    return [finding for finding in found if finding is not None]


def _targets(model: Model, node: ast.Call) -> Iterator[str]:
    """The full name of the called function, or one for each base class of an object without such a method."""
    target = model.target(node)
    if target or not isinstance(node.func, ast.Attribute):
        yield target
        return
    for member in model.value(node.func.value).members:
        if isinstance(member, Instance):
            yield from (f"{base}.{node.func.attr}" for base in model.lineage(member.cls)[1:])
