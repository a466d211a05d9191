"""Code that prepares data: it works on the host, in the workers of a loader, unless it says otherwise."""

from __future__ import annotations

import ast
from dataclasses import replace

from perflint.findings import Confidence, Effect, Finding, Heat
from perflint.semantics import conventions
from perflint.semantics.sites import Site

OF_THE_DEVICE = (Effect.SYNC, Effect.TRANSFER, Effect.ALLOCATION)
"""What only happens where tensors are on the device."""


def as_sure_as_data(finding: Finding, site: Site) -> Finding:
    """The finding, with low confidence if it is about a tensor on an unknown device in data-preparation code."""
    if (
        finding.effect in OF_THE_DEVICE
        and finding.confidence is Confidence.MEDIUM
        and finding.heat is Heat.WARM
        and conventions.prepares_data(site.model.module.name)
        and not _works_on_results(site)
    ):
        return replace(finding, confidence=Confidence.LOW)
    return finding


def _works_on_results(site: Site) -> bool:
    functions = (outer for outer in site.model.ancestors(site.node) if isinstance(outer, ast.FunctionDef))
    return any("post" in function.name.split("_") for function in functions)
