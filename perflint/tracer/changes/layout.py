"""`channels_last` for the weights of a model."""

from __future__ import annotations

from perflint.findings import Fix, Safety
from perflint.rules.traced.measured_channels_last import MeasuredChannelsLast
from perflint.tracer.changes.base import Change, Won, spelled
from perflint.tracer.changes.made import made_at
from perflint.tracer.experiments.models import ChannelsLast

_SINCE = (1, 5)


def _write(won: Won) -> Fix | None:
    """The fix for one model. Raises Refused."""
    if "channels_last" in won.source.text:
        return None
    made = made_at(won.source, won.span)
    spelling = spelled(made.symbols, "torch.channels_last", made.statement)
    return Fix(
        "Keep the weights in channels_last",
        Safety.UNSAFE,
        made.behind(f"{made.name} = {made.name}.to(memory_format={spelling.text})"),
        imports=spelling.imports,
        since=_SINCE,
    )


CHANGE = Change(
    MeasuredChannelsLast, (ChannelsLast.name,), "Convert the model and its inputs to channels_last.", _write
)
