"""Messages that no editor sends: the server answers the next question, and runs nothing that they name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ROOT

TEXT = "import torch\n\n\ndef f(x: torch.Tensor):\n    for _ in range(9):\n        print(x.cuda().item())\n"
ANSWER = b'"id":99,'


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def message(method: str, values: object, number: object = None) -> bytes:
    document: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": values}
    return framed(json.dumps(document | ({} if number is None else {"id": number})).encode())


def opened(address: str, text: str = TEXT, version: object = 1) -> bytes:
    document = {"uri": address, "languageId": "python", "version": version, "text": text}
    return message("textDocument/didOpen", {"textDocument": document})


def changed(address: str, *changes: object) -> bytes:
    return message(
        "textDocument/didChange", {"textDocument": {"uri": address, "version": 2}, "contentChanges": [*changes]}
    )


def hover(address: str, line: int, character: int, number: object = 5) -> bytes:
    place = {"textDocument": {"uri": address}, "position": {"line": line, "character": character}}
    return message("textDocument/hover", place, number)


def as_notebook(address: str) -> bytes:
    """A notebook without cells, opened at an address."""
    notebook = {"uri": address, "notebookType": "jupyter-notebook", "version": 1, "cells": []}
    return message("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": []})


FAR = {"start": {"line": 999_999, "character": 99}, "end": {"line": 0, "character": 0}}
ODD = {
    "a system file": opened("file:///etc/passwd"),
    "a null in the path": opened("file:///tmp/%00x.py"),
    "half a character in the path": opened("file:///tmp/%ff%ed%a0%80.py"),
    "another scheme": opened("http://a.example/b.py") + opened("untitled:1") + opened(""),
    "a long path": opened(f"file:///tmp/{'a' * 5000}.py"),
    "half a character": opened("file:///tmp/x.py", "\ud800 = 1"),
    "a null": opened("file:///tmp/x.py", "\0"),
    "deep": opened("file:///tmp/x.py", "(" * 5000),
    "no number for a version": opened("file:///tmp/x.py", version="x"),
    "a change of no file": changed("file:///tmp/none.py", {"text": "x"}),
    "a change out of the text": opened("file:///tmp/x.py") + changed("file:///tmp/x.py", {"range": FAR, "text": "x"}),
    "places out of the text": opened("file:///tmp/x.py") + hover("file:///tmp/x.py", 2**31 - 1, 9),
    "places before the text": opened("file:///tmp/x.py") + hover("file:///tmp/x.py", -1, -1),
    "no values": message("textDocument/hover", {}, 6) + message("textDocument/codeAction", {"range": 3}, 7),
    "an unknown method": message("nothing/here", {}, 8) + message("$/cancelRequest", {"id": "x"}),
    "a command": message("workspace/executeCommand", {"command": "os.system", "arguments": ["touch MARK"]}, 9),
    "settings": message(
        "workspace/didChangeConfiguration", {"settings": {"perflint": {"config": ["house-rules=['mark']"]}}}
    ),
    "settings of another type": message("workspace/didChangeConfiguration", {"settings": 3}),
    "no JSON": framed(b"{") + framed(b"\xff\xfe") + framed(b"[" * 20_000),
    "no message": framed(b"[]") + framed(b'{"jsonrpc":"2.0"}') + framed(b'{"jsonrpc":"2.0","id":1e999,"method":"x"}'),
}


@pytest.mark.parametrize("names", [list(ODD)[::2], list(ODD)[1::2], list(ODD)[::-1]], ids=["even", "odd", "all"])
def test_the_server_goes_on(tmp_path: Path, names: list[str]) -> None:
    (tmp_path / "mark.py").write_text("open('MARK', 'w').close()\n")
    address = (tmp_path / "train.py").as_uri()
    first = {"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {}}
    odd = b"".join(ODD[name] for name in names) + as_notebook(address)
    sent = message("initialize", first, 1) + message("initialized", {}) + odd
    with subprocess.Popen(
        [sys.executable, "-m", "perflint", "lsp"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(sent + opened(address) + hover(address, 5, 16, 99))
        server.stdin.flush()
        os.set_blocking(server.stdout.fileno(), False)
        seen, end = b"", time.monotonic() + 60
        while ANSWER not in seen.replace(b" ", b"") and time.monotonic() < end and server.poll() is None:
            seen += server.stdout.read() or b""
            time.sleep(0.05)
        server.kill()
    assert ANSWER + b'"jsonrpc":"2.0","result":{' in seen.replace(b" ", b""), seen[-2000:]
    assert not (tmp_path / "MARK").exists()
