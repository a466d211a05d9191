"""Findings about deprecated names, which cost no time.

The default profile shows them only if the project states a torch that warns, once in a file. The fix of that
finding changes all places of the file that have a fix of the same safety; each other one changes its own place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise

from perflint.config.settings import Profile, Version
from perflint.engine.profiles import shows
from perflint.findings import Finding, Fix, Severity
from perflint.frozen import replace
from perflint.rules.base import Rule


def once_per_file(
    findings: Sequence[Finding],
    rules: Iterable[Rule],
    torch_version: Version | None,
    is_silenced: Callable[[Finding], object],
) -> list[Finding]:
    """The findings of a file in their order: those about deprecated names as the profiles are to judge them.

    `torch_version` is the oldest that the project states; a rule is off if that torch does not deprecate its names.
    """
    codes = {rule.code for rule in rules if rule.is_deprecation}
    settled = list(findings)
    places: dict[str, list[int]] = {}
    for index, finding in enumerate(findings):
        if finding.code in codes and not is_silenced(finding):
            places.setdefault(finding.code, []).append(index)
    for indices in places.values():
        same = [findings[index] for index in indices]
        if torch_version is None:
            same = [replace(finding, severity=Severity.INFO) for finding in same]
        first = min(same, key=lambda finding: (not shows(Profile.DEFAULT, finding), finding.span))
        for index, finding in zip(indices, same, strict=True):
            if finding is first:
                settled[index] = replace(finding, fix=_joined(finding.fix, same))
            else:
                settled[index] = replace(finding, severity=Severity.INFO, verdict=None)
    return settled


def _joined(fix: Fix | None, findings: Sequence[Finding]) -> Fix | None:
    """A fix with the edits of all places that change as safely; without them if some of the edits meet."""
    if fix is None:
        return None
    fixes = [each.fix for each in findings if each.fix is not None and each.fix.safety is fix.safety]
    edits = sorted({edit for each in fixes for edit in each.edits}, key=lambda edit: (edit.span, edit.text))
    if len(fixes) == 1 or any(left.span.overlaps(right.span) for left, right in pairwise(edits)):
        return fix
    others = len(fixes) - 1
    return replace(
        fix,
        message=f"{fix.message}, and change {others} other {'place' if others == 1 else 'places'} of the file alike",
        edits=tuple(edits),
        imports=tuple(dict.fromkeys(chain.from_iterable(each.imports for each in fixes))),
        since=max((each.since for each in fixes if each.since is not None), default=None),
    )
