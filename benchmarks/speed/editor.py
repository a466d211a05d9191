"""Measures how long an editor waits for the diagnostics of an edited file.

    python benchmarks/speed/editor.py FOLDER ... [--files 10] [--edits 20] [--seed 1] [--json FILE]

For each folder, a copy is served by `perflint lsp` with a cache of its own. Files that import torch are opened one
by one. Each is edited in some random places, half a second after the last diagnostics: a new line, then the text as
it was. The figures are wall milliseconds
from the change to the diagnostics of that version (median, p90 and worst), the CPU time of the server meanwhile, the
time of the first file and the median of the other ones when they are opened, and the memory of the server in MiB after
the first file and at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from lsprotocol import types
from packages import table
from pygls.lsp.client import LanguageClient

PAUSE = 0.5
LIMIT = 60
"""Seconds for one answer."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="measure how long an editor waits")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--files", type=int, default=10, help="files that are opened (default: 10)")
    parser.add_argument("--edits", type=int, default=20, help="edits of each file (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of files and places (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to a file")
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, {len(os.sched_getaffinity(0))} CPUs", flush=True)
    figures: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(prefix="perflint-editor-") as temporary:
        for folder in options.folders:
            copy = Path(temporary) / folder.name
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.so", ".git", "__pycache__"))
            (copy / "pyproject.toml").touch()
            work = measured(copy, Path(temporary) / "cache", options.files, options.edits, random.Random(options.seed))
            figures[folder.name] = found = asyncio.run(work)
            print(table(["figure", folder.name], [[name, str(value)] for name, value in found.items()]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


async def measured(folder: Path, cache: Path, files: int, edits: int, dice: random.Random) -> dict[str, object]:
    """The figures of a folder."""
    client = LanguageClient("benchmark", "1")
    arrived: dict[tuple[str, int | None], asyncio.Event] = {}

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def publish(params: types.PublishDiagnosticsParams) -> None:
        arrived.setdefault((params.uri, params.version), asyncio.Event()).set()

    async def seconds(uri: str, version: int) -> float:
        start = time.perf_counter()
        event = arrived.setdefault((uri, version), asyncio.Event())
        await asyncio.wait_for(event.wait(), LIMIT)
        return time.perf_counter() - start

    await client.start_io(sys.executable, "-m", "perflint", "lsp", "--cache-dir", str(cache), cwd=folder)
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities(), root_uri=folder.as_uri()))
    client.initialized(types.InitializedParams())
    every = [path for path in sorted(folder.rglob("*.py")) if "import torch" in path.read_text("utf-8", "replace")]
    opened, edited, worked, sizes, lines = [], [], [], [], []
    for path in dice.sample(every, min(files, len(every))):
        text = path.read_text("utf-8", "replace")
        uri = path.as_uri()
        lines.append(text.count("\n"))
        item = types.TextDocumentItem(uri, "python", 0, text)
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        opened.append(await seconds(uri, 0))
        sizes.append(resident(client))
        for version in range(1, edits + 1):
            now = with_line(text, dice) if version % 2 else text
            change = types.TextDocumentContentChangeWholeDocument(now)
            identifier = types.VersionedTextDocumentIdentifier(version, uri)
            before = cpu_seconds(client)
            client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
            edited.append(await seconds(uri, version))
            worked.append(cpu_seconds(client) - before)
            await asyncio.sleep(PAUSE)
        client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
    sizes.append(resident(client))
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return {
        "files, lines of the edited ones": f"{len(list(folder.rglob('*.py')))}, {sum(lines)}",
        "first file, ms": round(opened[0] * 1000),
        "other files, median ms": round(statistics.median(opened[1:] or opened) * 1000),
        "edit, median ms": round(statistics.median(edited) * 1000),
        "edit, p90 ms": round(statistics.quantiles(edited, n=10)[-1] * 1000),
        "edit, worst ms": round(max(edited) * 1000),
        "edit, median CPU ms": round(statistics.median(worked) * 1000),
        "edit, p90 CPU ms": round(statistics.quantiles(worked, n=10)[-1] * 1000),
        "edit, worst CPU ms": round(max(worked) * 1000),
        "memory, MiB": f"{sizes[0]}, {sizes[-1]}",
    }


def with_line(text: str, dice: random.Random) -> str:
    """The text with a new statement between two of its functions or classes; it can be parsed, as the text can."""
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if line.startswith(("def ", "class "))]
    # Not below a decorator.
    starts = [number for number in starts if number and not lines[number - 1].strip()] or [len(lines)]
    number = dice.choice(starts)
    return "".join([*lines[:number], f"\n_edited = {dice.randrange(1000)}\n", *lines[number:]])


def resident(client: LanguageClient) -> int:
    """The memory of the server in MiB; 0 where it is unknown."""
    server = client._server
    status = Path(f"/proc/{server.pid}/statm") if server is not None else Path()
    return int(status.read_text().split()[1]) * 4096 >> 20 if status.is_file() else 0


def cpu_seconds(client: LanguageClient) -> float:
    """The CPU time of the server, in steps of a hundredth of a second; 0 where it is unknown."""
    server = client._server
    status = Path(f"/proc/{server.pid}/stat") if server is not None else Path()
    if not status.is_file():
        return 0.0
    user, system = status.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
