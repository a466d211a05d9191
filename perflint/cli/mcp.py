"""Serve a coding agent: check, explain, rule, fix as a diff, and summaries of traces, as tools.

The agent starts it and talks to it over standard input and output, in the Model Context Protocol.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from perflint.config.errors import ConfigurationError


def add_arguments(parser: ArgumentParser) -> None:
    """`perflint mcp` has no options."""
    parser.epilog = "The tools work in the folder in which the server is started."


def run(arguments: Namespace) -> int:
    """Serve until the agent leaves. Raises ConfigurationError without the SDK."""
    try:
        from perflint.integrations.mcp import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("mcp", "mcp_types", "pydantic"):
            raise
        help = "`pip install 'mcp>=2'` beside perflint"
        raise ConfigurationError("the server for agents needs the package mcp, 2 or later", help) from None
    serve()
    return 0
