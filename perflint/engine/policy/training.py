"""Policies for code that the trainings of a project do not run: evaluations, analyses and samples, once per run."""

from __future__ import annotations

from perflint.engine.policy.analyses import decodes, is_in_model
from perflint.engine.policy.selections import SELECTIONS
from perflint.engine.policy.unreached import serves_project
from perflint.findings import Finding, Heat, Severity
from perflint.frozen import replace
from perflint.rules._places import loops_around
from perflint.rules._wholes import is_added_up, is_same_each_turn, whole_of
from perflint.semantics.sites import CallSite, FileSite, Site

_COPIES = "TPF109"
"""The rule about copies to the CPU."""


def outside_training(finding: Finding, site: Site) -> Finding:
    """A wait in a function that the project calls, but not in a training: information.

    It runs once for a process, and its results are for the CPU. Of five such selections that were read, none was
    worth a change.
    """
    if isinstance(site, FileSite) or finding.severity is Severity.INFO or not _counts_little(finding, site):
        return finding
    return replace(finding, severity=Severity.INFO) if is_outside_training(site) else finding


def _counts_little(finding: Finding, site: Site) -> bool:
    """True if a wait counts little where no training runs.

    Not a copy to the CPU where one before or after a loop would do. Of selections, those in a loop: others may be in
    the loop of a caller. A loop that decodes is as long as its results.
    """
    if finding.code == _COPIES:
        if not isinstance(site, CallSite):
            return False
        return whole_of(site) is None and not is_same_each_turn(site) and not is_added_up(site)
    if finding.code != SELECTIONS or finding.heat is not Heat.HOT:
        return False
    return next(loops_around(site.model, site.node), None) is not None and not decodes(site)


def is_outside_training(site: Site) -> bool:
    """True if calls of the function around a place are known, and no training leads to it.

    Not in a model, nor in code that a package offers to others.
    """
    if isinstance(site, FileSite) or not serves_project(site) or is_in_model(site.model, site.node):
        return False
    function = site.model.function(site.node)
    if function is None or any(map(site.model.heat_map.work.steps, loops_around(site.model, site.node))):
        return False
    return site.model.is_outside_training(function)
