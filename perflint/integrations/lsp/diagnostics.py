"""Findings as diagnostics."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import CodeDescription, Diagnostic, DiagnosticSeverity, DiagnosticTag

from perflint.findings import Finding, Severity
from perflint.integrations.lsp.positions import Positions
from perflint.integrations.lsp.session import Checked
from perflint.output.plain import sentences
from perflint.output.writer import rule_url
from perflint.source.suppressions import UNUSED

SOURCE = "perflint"
_SEVERITIES = {
    Severity.ERROR: DiagnosticSeverity.Error,
    Severity.WARNING: DiagnosticSeverity.Warning,
    Severity.INFO: DiagnosticSeverity.Information,
}
_DEPRECATED = "deprecated-"
"""The beginning of the names of rules about interfaces of torch that will be removed."""


def diagnostics(checked: Checked, encoding: str) -> list[Diagnostic]:
    """The diagnostics of a document."""
    positions = Positions(checked.source, encoding)
    return [diagnostic(finding, positions, checked.settings.rule_url) for finding in checked.findings]


def diagnostic(finding: Finding, positions: Positions, template: str | None) -> Diagnostic:
    """A finding, with the address of its rule's page if the pages have one."""
    address = rule_url(template, finding)
    return Diagnostic(
        range=positions.range(finding.span),
        message="\n".join(sentences(finding)),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=CodeDescription(address) if address else None,
        source=SOURCE,
        tags=list(_tags(finding)) or None,
    )


def _tags(finding: Finding) -> Iterator[DiagnosticTag]:
    if finding.code == UNUSED:
        yield DiagnosticTag.Unnecessary
    if finding.name.startswith(_DEPRECATED):
        yield DiagnosticTag.Deprecated
