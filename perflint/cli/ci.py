"""Check as `perflint check` does, and write findings in the form of the service that runs the job."""

from __future__ import annotations

from argparse import ArgumentParser

from perflint.cli import check
from perflint.config.settings import OutputFormat

run = check.run


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint ci`, which are those of `perflint check`."""
    check.add_arguments(parser, OutputFormat.AUTO)
