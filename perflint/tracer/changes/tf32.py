"""TF32 for the products of float32 matrices, switched on in front of the model."""

from __future__ import annotations

from perflint.findings import Fix, Safety
from perflint.rules.traced.measured_tf32 import MeasuredTf32
from perflint.tracer.changes.base import Change, Refused, Won, quote, spelled
from perflint.tracer.changes.made import made_at
from perflint.tracer.experiments.models import Tf32

SINCE = (1, 12)
"""The first torch with `torch.set_float32_matmul_precision`."""
SETTINGS = ("fp32_precision", "allow_tf32")
"""Other names by which a file chooses the precision of float32."""


def _write(won: Won) -> Fix | None:
    """The fix for the program of one model. Raises Refused."""
    if "set_float32_matmul_precision" in won.source.text:
        return None
    if any(word in won.source.text for word in SETTINGS):
        raise Refused("the file sets TF32 itself")
    made = made_at(won.source, won.span)
    spelling = spelled(made.symbols, "torch.set_float32_matmul_precision", made.statement)
    mark = quote(won.source)
    return Fix(
        "Multiply float32 matrices in TF32",
        Safety.RISKY,
        (made.before(f"{spelling.text}({mark}high{mark})"),),
        imports=spelling.imports,
        since=SINCE,
        proof="a trace timed it and compared the outputs",
    )


CHANGE = Change(MeasuredTf32, (Tf32.name,), "Allow TF32 for products of float32 matrices.", _write, for_process=True)
