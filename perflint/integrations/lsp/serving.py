"""Start the language server over standard input and output."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from lsprotocol import types

from perflint.integrations.lsp.answers import add_answers, add_hints
from perflint.integrations.lsp.messages import add_documents, add_settings
from perflint.integrations.lsp.server import Server

_STACK = 64 << 20
"""Bytes for the thread that checks: Python's parser needs them for deep code, and some systems give threads little."""


def serve(cache: Path | None) -> int:
    """Serve an editor over standard input and output until it leaves; the exit code."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Nothing but messages of the protocol may go to standard output.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    threading.stack_size(_STACK)
    server = made(cache)
    try:
        server.start_io(sys.stdin.buffer, out)
    finally:
        server.end()
    return server.exit_code


def made(cache: Path | None) -> Server:
    """A server with its features registered."""
    server = Server(cache)
    add_documents(server)
    add_settings(server)
    add_answers(server)
    add_hints(server)

    @server.feature(types.SHUTDOWN)
    async def shutdown(params: None) -> None:
        await server.stop()

    return server
