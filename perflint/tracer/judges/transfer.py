"""Rules about copies between devices."""

from __future__ import annotations

from perflint.tracer.judges.base import Judge, by_facts

JUDGES: dict[str, Judge] = {
    "TPF205": by_facts(
        {"to.other-device": "{bytes} moved to another device"},
        {"to.same-tensor": "the tensor was there already", "to.same-device": "the tensor stayed on its device"},
    ),
}
UNDECIDED: dict[str, str] = {}
