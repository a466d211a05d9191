"""Serve an editor: findings while you type, fixes, and what perflint believes of an expression.

The editor starts it and talks to it over standard input and output, in the Language Server Protocol.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from perflint.cli import means
from perflint.config.errors import ConfigurationError


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint lsp`."""
    parser.add_argument("--stdio", action="store_true")
    means.add_cache(parser)


def run(arguments: Namespace) -> int:
    """Serve until the editor leaves. 0 if it has asked for the end, else 1. Raises ConfigurationError without pygls."""
    try:
        from perflint.integrations.lsp.serving import serve
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        help = "`pip install 'pygls>=2'` beside perflint"
        raise ConfigurationError("the language server needs pygls 2 or later", help) from None
    return serve(means.cache_folder(arguments))
