"""The formats of `--output-format`: each is a module of this package, with its writer as `WRITER`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module

from perflint.config.errors import ConfigurationError
from perflint.config.settings import OutputFormat
from perflint.output.writer import Output, Writer


def writer(format: OutputFormat, to: Output) -> Writer:
    """The writer of a format. Raises ConfigurationError if it has no statistics and `to` asks for them.

    Only the module of the format is imported.
    """
    if format is OutputFormat.AUTO:
        format = of_environment(os.environ, to_file=to.out is not sys.stdout)
    kind: type[Writer] = import_module(f"perflint.output.formats.{format.value}").WRITER
    if not to.statistics or kind.counts:
        return kind(to)
    if kind.is_for_programs:
        raise ConfigurationError(
            f"`--statistics` has no form in the format `{format.value}`", "choose full, concise, grouped or json"
        )
    from perflint.output.statistics import StatisticsWriter

    return StatisticsWriter(to)


def of_environment(variables: Mapping[str, str], to_file: bool) -> OutputFormat:
    """The format of the service whose job has these environment variables. GitLab reads its format from a file."""
    if variables.get("GITHUB_ACTIONS"):
        return OutputFormat.GITHUB
    if variables.get("TF_BUILD"):
        return OutputFormat.AZURE
    if variables.get("GITLAB_CI") and to_file:
        return OutputFormat.GITLAB
    return OutputFormat.CONCISE if variables.get("CI") or variables.get("GITLAB_CI") else OutputFormat.FULL
