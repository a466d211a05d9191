"""Policies for code whose tensors are on the CPU, where nothing waits."""

from __future__ import annotations

from perflint.findings import Confidence, Effect, Finding
from perflint.frozen import replace
from perflint.semantics.sites import FileSite, Site

OF_THE_DEVICE = (Effect.SYNC, Effect.TRANSFER, Effect.ALLOCATION)
"""Effects that only tensors on the GPU have."""
_OF_TENSORS = ("TPF1", "TPF2")
"""The families of rules about waits for tensors and about their copies; the others cost time on a CPU, too."""


def in_other_code_of_the_cpu(finding: Finding, site: Site) -> Finding:
    """Drivers and the helpers of datasets work on the CPU: low confidence if the tensor's device is a guess."""
    if (
        finding.effect in OF_THE_DEVICE
        and finding.confidence is Confidence.MEDIUM
        and not isinstance(site, FileSite)
        and site.model.host_code.holds(site.node)
    ):
        return replace(finding, confidence=Confidence.LOW)
    return finding


def in_a_program_without_a_gpu(finding: Finding, site: Site) -> Finding:
    """Programs that name no device compute on the CPU, and so do trainings that fail on a GPU: low confidence."""
    if (
        finding.effect in OF_THE_DEVICE
        and finding.code.startswith(_OF_TENSORS)
        and finding.confidence is not Confidence.LOW
        and (site.model.host_code.is_whole_program or site.model.host_code.trains_on_cpu)
    ):
        return replace(finding, confidence=Confidence.LOW)
    return finding
