"""The formats of `--output-format`: each is a module of this package, with its writer as `WRITER`."""

from __future__ import annotations

from importlib import import_module

from perflint.config.errors import ConfigurationError
from perflint.config.settings import OutputFormat
from perflint.output.writer import Output, Writer


def writer(format: OutputFormat, to: Output) -> Writer:
    """The writer of a format. Raises ConfigurationError if it has no statistics and `to` asks for them.

    Only the module of the format is imported.
    """
    kind: type[Writer] = import_module(f"perflint.output.formats.{format.value}").WRITER
    if not to.statistics or kind.counts:
        return kind(to)
    if kind.is_for_programs:
        raise ConfigurationError(
            f"`--statistics` has no form in the format `{format.value}`", "choose full, concise, grouped or json"
        )
    from perflint.output.statistics import StatisticsWriter

    return StatisticsWriter(to)
