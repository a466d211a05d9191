"""Policies for code that the trainings of a project do not run: evaluations, analyses and samples, once per run."""

from __future__ import annotations

from perflint.engine.policy.analyses import is_in_model
from perflint.engine.policy.unreached import serves_project
from perflint.findings import Finding, Severity
from perflint.frozen import replace
from perflint.rules._places import loops_around
from perflint.rules._wholes import is_added_up, is_same_each_turn, whole_of
from perflint.semantics.sites import CallSite, Site

_COPIES = "TPF109"
"""The rule about copies to the CPU."""


def copied_outside_training(finding: Finding, site: Site) -> Finding:
    """A copy to the CPU in a function that the project calls, but not in a training: information.

    It runs once for a process, and its results are for the CPU. Not where one copy before or after a loop would do.
    """
    if finding.code != _COPIES or finding.severity is Severity.INFO or not isinstance(site, CallSite):
        return finding
    if whole_of(site) is not None or is_same_each_turn(site) or is_added_up(site) or not is_outside_training(site):
        return finding
    return replace(finding, severity=Severity.INFO)


def is_outside_training(site: Site) -> bool:
    """True if calls of the function around a place are known, and no training leads to it.

    Not in a model, nor in code that a package offers to others.
    """
    if not serves_project(site) or not isinstance(site, CallSite) or is_in_model(site.model, site.node):
        return False
    function = site.model.function(site.node)
    if function is None or any(map(site.model.heat_map.work.steps, loops_around(site.model, site.node))):
        return False
    return site.model.is_outside_training(function)
