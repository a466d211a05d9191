"""The conventions that findings rest on: those behind the tensor of a finding, and behind the heat of its line.

They come from the steps that `perflint explain` prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflint.engine.places import nodes_of
from perflint.engine.why import Whys
from perflint.findings import Finding
from perflint.semantics.explain.reasons import Reasons
from perflint.semantics.facts.concepts import Entry
from perflint.semantics.heat.reasons import HeatReasons
from perflint.semantics.model import Model


def grounds(findings: Sequence[Finding], model: Model) -> Iterator[tuple[Finding, tuple[Entry, ...]]]:
    """Each finding of a file with the entries of conventions that it rests on."""
    nodes = nodes_of(findings, model)
    whys, reasons, heat = Whys(model), Reasons(model), HeatReasons(model)
    for finding in findings:
        node = nodes.get(finding.span)
        if node is None:
            yield finding, ()
            continue
        subject = whys.subject(node) if whys.is_about_tensors(finding) else None
        steps = [] if subject is None else reasons.of(subject)
        if model.heat(node) is finding.heat:
            # Otherwise the rule decides the heat, not the place.
            steps += heat.of(node)
        yield finding, tuple(dict.fromkeys(entry for step in steps for entry in step.entries))
