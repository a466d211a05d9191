"""Decides if the fix that a rule built is offered, and with which safety."""

from __future__ import annotations

from collections.abc import Callable

from perflint.config.settings import Version
from perflint.findings import Confidence, Effect, Finding, Fix, Safety
from perflint.frozen import replace

_EVERYWHERE: Version = (1, 11)
"""A project that states no bound is expected to have this torch or a newer one."""


def offered(
    finding: Finding, torch_version: Version | None, is_scripted: Callable[[int], bool], in_tests: bool = False
) -> Finding:
    """The finding with its fix as users get it.

    `torch_version` is the oldest that the project allows, if known. `is_scripted` says whether TorchScript may
    compile a line: there is no fix there, because TorchScript may not know the new code. If the file is one
    of tests, which run once and should be easy to read, a fix that only saves time or memory is shown, not written.
    """
    fix = finding.fix
    if fix is None:
        return finding
    if any(is_scripted(edit.span.line) for edit in fix.edits):
        return replace(finding, fix=None)
    if in_tests and finding.effect is not Effect.CORRECTNESS:
        fix = replace(fix, safety=Safety.DISPLAY)
    if fix.safety is Safety.RISKY and fix.proof is None and finding.confidence is not Confidence.HIGH:
        fix = replace(fix, safety=Safety.DISPLAY)
    return replace(finding, fix=_for_version(fix, torch_version))


def _for_version(fix: Fix, torch_version: Version | None) -> Fix:
    """The fix for the oldest torch that the project allows."""
    if fix.since is None:
        return fix
    if torch_version is not None:
        return fix if torch_version >= fix.since else _needing(fix, Safety.DISPLAY)
    if fix.since > _EVERYWHERE:
        return _needing(fix, Safety.UNSAFE if fix.safety is Safety.SAFE else fix.safety)
    return fix


def _needing(fix: Fix, safety: Safety) -> Fix:
    assert fix.since is not None
    major, minor = fix.since
    return replace(fix, safety=safety, message=f"{fix.message} (needs torch ≥ {major}.{minor})")
