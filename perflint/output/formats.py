"""The writer of each format. Only the module of the chosen one is imported."""

from __future__ import annotations

from typing import TextIO

from perflint.config.settings import OutputFormat
from perflint.output.terminal import Style
from perflint.output.writer import Writer


def writer(
    format: OutputFormat,
    out: TextIO,
    style: Style,
    statistics: bool = False,
    notes: TextIO | None = None,
    note_style: Style | None = None,
) -> Writer:
    """The writer of a format. `statistics` asks for counts of rules in place of findings."""
    if format is OutputFormat.JSON:
        from perflint.output.json import JsonWriter

        return JsonWriter(out, style, statistics)
    if statistics:
        from perflint.output.statistics import StatisticsWriter

        return StatisticsWriter(out, style)
    if format is OutputFormat.CONCISE:
        from perflint.output.concise import ConciseWriter

        return ConciseWriter(out, style, notes, note_style)
    if format is OutputFormat.GROUPED:
        from perflint.output.grouped import GroupedWriter

        return GroupedWriter(out, style)
    from perflint.output.full import FullWriter

    return FullWriter(out, style)
