"""Measures how long an editor waits for the diagnostics of an edited file.

    python benchmarks/speed/editor.py FOLDER ... [--files 10] [--edits 20] [--seed 1] [--json FILE]

For each folder, a copy is served by `perflint lsp` with a cache of its own. Files that import torch are opened one
by one. Each is edited in some random places, half a second after the first diagnostics for the last edit: a new
statement, every other time between two functions and else in a function, then the text as it was. After each fifth edit
the pause lasts until the server is idle. The figures are milliseconds from the change to the first diagnostics of that
version, of the wall clock and of the CPU of the server (median, p90 and worst; p90 also for the edits in functions
alone), and after the fifth edits also to the last diagnostics, which are final; the time of the first file and the
median of the other ones when they are opened; and the memory of the server in MiB after the first file and at the end.
"""

from __future__ import annotations

import argparse
import ast
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
SETTLES = 5
"""Edits of which one is followed by a longer pause."""
IDLE = 0.8
"""Seconds without work and answers after which the last answer was final; the server pauses for half a second."""


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

    last = [0.0]

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def publish(params: types.PublishDiagnosticsParams) -> None:
        last[0] = time.perf_counter()
        arrived.setdefault((params.uri, params.version), asyncio.Event()).set()

    async def seconds(uri: str, version: int) -> float:
        start = time.perf_counter()
        event = arrived.setdefault((uri, version), asyncio.Event())
        await asyncio.wait_for(event.wait(), LIMIT)
        return time.perf_counter() - start

    async def settled() -> None:
        busy, used = time.perf_counter(), cpu_seconds(client)
        while time.perf_counter() - max(busy, last[0]) < IDLE:
            await asyncio.sleep(0.05)
            if cpu_seconds(client) - used > 0.01:
                busy, used = time.perf_counter(), cpu_seconds(client)

    await client.start_io(sys.executable, "-m", "perflint", "lsp", "--cache-dir", str(cache), cwd=folder)
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities(), root_uri=folder.as_uri()))
    client.initialized(types.InitializedParams())
    every = [path for path in sorted(folder.rglob("*.py")) if "import torch" in path.read_text("utf-8", "replace")]
    opened, edited, worked, inside, sizes, lines = [], [], [], [], [], []
    final: list[tuple[float, float]] = []
    for path in dice.sample(every, min(files, len(every))):
        text = path.read_text("utf-8", "replace")
        uri = path.as_uri()
        lines.append(text.count("\n"))
        item = types.TextDocumentItem(uri, "python", 0, text)
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        opened.append(await seconds(uri, 0))
        sizes.append(resident(client))
        for version in range(1, edits + 1):
            is_inside = version % 4 in (1, 2)
            now = with_line(text, dice, is_inside) if version % 2 else text
            change = types.TextDocumentContentChangeWholeDocument(now)
            identifier = types.VersionedTextDocumentIdentifier(version, uri)
            before, begin = cpu_seconds(client), time.perf_counter()
            client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
            edited.append(await seconds(uri, version))
            worked.append(cpu_seconds(client) - before)
            if is_inside:
                inside.append(worked[-1])
            if version % SETTLES:
                await asyncio.sleep(PAUSE)
            else:
                await settled()
                final.append((last[0] - begin, cpu_seconds(client) - before))
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
        "edit in a function, p90 CPU ms": round(statistics.quantiles(inside, n=10)[-1] * 1000),
        "final answer, median and p90 ms": spread([wall for wall, _ in final]),
        "final answer, median and p90 CPU ms": spread([cpu for _, cpu in final]),
        "memory, MiB": f"{sizes[0]}, {sizes[-1]}",
    }


def spread(seconds: list[float]) -> str:
    """Median and p90 in milliseconds."""
    return f"{statistics.median(seconds) * 1000:.0f}, {statistics.quantiles(seconds, n=10)[-1] * 1000:.0f}"


def with_line(text: str, dice: random.Random, is_inside: bool) -> str:
    """The text with a new statement in a function, or between two functions or classes; it can be parsed, as before.

    The statements of all functions are equally likely.
    """
    lines = text.splitlines(keepends=True)
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    bodies = [statement for function in functions for statement in function.body]
    bodies = [each for each in bodies if not lines[each.lineno - 1][: each.col_offset].strip()]
    if is_inside and bodies:
        place = dice.choice(bodies)
        number, indent = place.lineno - 1, lines[place.lineno - 1][: place.col_offset]
        if not isinstance(place, (ast.FunctionDef, ast.ClassDef)):
            return "".join([*lines[:number], f"{indent}_edited = {dice.randrange(1000)}\n", *lines[number:]])
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
