"""A server of the Model Context Protocol: perflint as tools of a coding agent.

Each tool runs the command of the same name in a process of its own and returns its output, so agents and people get the
same. No tool writes a file of the project. `verify` runs a program, in a copy of the project.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import Sequence
from typing import Annotated, Any

from anyio import CancelScope
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from perflint import __version__

_INSTRUCTIONS = """\
perflint finds what slows PyTorch code down on GPUs. Work in this order: `check` finds places, `explain` shows \
the inferred values of a line and why, `rule` has the reasons and limits of a rule, `fix` shows the diff that \
`perflint fix --apply` would write. `verify` runs the program with and without the fixes, in a copy, and keeps those \
that are not slower and change the results no more than their safety allows. `perflint trace SCRIPT` records a run, \
`trace_summary` and `compare` read recordings. A finding is a claim; a run decides whether it costs time."""
_READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_RUNS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
"""The program that `verify` runs may do anything that programs do outside of the project."""
_SECONDS = 600
"""The longest time of a command."""
_GRACE = 120
"""Seconds that a verification may take beyond its budget: it ends a run, and applies what is decided."""
_DAY = 86_400
"""The longest budget of a verification, in seconds."""
_ENDING = 10
"""Seconds that a command may take to end."""
_BUFFERED = 2**16
"""Bytes of its output that wait to be read."""
_SEVERITIES = ("error", "warning", "info")

Paths = Annotated[list[str] | None, Field(description="files and folders; the working folder by default")]
Rules = Annotated[str | None, Field(description="codes (TPF101), beginnings of codes (TPF1) or names, with commas")]
Profile = Annotated[str | None, Field(description="default, pedantic or audit: how much is shown")]
Traces = Annotated[list[str] | None, Field(description="recordings of `perflint trace`: each finding gets a verdict")]


def serve() -> None:
    """Serve over standard input and output until the client leaves."""
    server().run("stdio")


def server() -> MCPServer[Any]:
    """The server with its tools."""
    made: MCPServer[Any] = MCPServer("perflint", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING")
    for tool in (check, explain, rule, fix, trace_summary, compare):
        made.add_tool(tool, annotations=_READS, structured_output=True)
    made.add_tool(verify, annotations=_RUNS, structured_output=True)
    return made


async def check(
    paths: Paths = None,
    select: Rules = None,
    profile: Profile = None,
    since: Annotated[str | None, Field(description="only findings on lines changed since this git revision")] = None,
    traces: Traces = None,
    limit: Annotated[int, Field(description="the most findings to give, the most severe first", ge=1)] = 50,
) -> dict[str, Any]:
    """Find what slows PyTorch code down: places with reasons, help, measured costs and fixes."""
    options = [*_option("--select", select), *_option("--profile", profile), *_option("--since", since)]
    options += [f"--trace={trace}" for trace in traces or ()]
    found = await _document("check", ["--output-format=json", *options, "--", *(paths or ["."])])
    # The sort is stable: within a severity, the order of `perflint check` stays.
    findings = sorted(found["findings"], key=lambda finding: _SEVERITIES.index(finding["severity"]))
    return {**found, "findings": findings[:limit], "left_off": max(len(findings) - limit, 0)}


async def explain(
    path: str,
    line: Annotated[int, Field(description="from 1", ge=1)],
    column: Annotated[int | None, Field(description="from 1", ge=1)] = None,
    cell: Annotated[int | None, Field(description="of a notebook, whose lines count in the cell", ge=1)] = None,
) -> dict[str, Any]:
    """Explain a line: its values and devices, how often it runs, and the decision of each rule with the reasons."""
    # In another file, the number of a cell would be read as a line.
    parts = (path, cell if path.endswith(".ipynb") else None, line, column)
    place = ":".join(str(part) for part in parts if part is not None)
    found: dict[str, Any] = await _document("explain", ["--output-format=json", "--", place])
    return found


async def rule(rule: Annotated[str, Field(description="a code such as TPF101, or a name")]) -> dict[str, Any]:
    """The page of a rule: why the pattern is slow, what it costs, examples, and when to leave it."""
    found = await _document("rule", ["--output-format=json", "--", rule])
    return found if isinstance(found, dict) else {"rules": found}


async def fix(
    paths: Paths = None,
    select: Rules = None,
    unsafe: Annotated[bool, Field(description="also fixes that may differ in rounding, memory or errors")] = False,
    risky: Annotated[bool, Field(description="also fixes that may change what is learned")] = False,
    traces: Traces = None,
) -> dict[str, Any]:
    """Show the diff of the fixes, and write nothing. `perflint fix --apply` writes, `perflint verify` measures."""
    options = [*_option("--select", select), *(f"--trace={trace}" for trace in traces or ())]
    options += ["--unsafe-fixes"] * unsafe + ["--risky-fixes"] * risky
    out, notes = await _run("fix", ["--color=never", *options, "--", *(paths or ["."])])
    return {"diff": out, "notes": notes}


async def verify(
    command: Annotated[list[str], Field(description="the program with its arguments: python train.py", min_length=1)],
    paths: Paths = None,
    select: Rules = None,
    unsafe: Annotated[bool, Field(description="also fixes that may differ in rounding, memory or errors")] = False,
    risky: Annotated[bool, Field(description="also fixes that may change what is learned")] = False,
    steps: Annotated[int, Field(description="timed steps of the optimizer in a run", ge=1)] = 100,
    repeat: Annotated[int, Field(description="pairs of runs in a comparison", ge=2)] = 3,
    seconds: Annotated[int, Field(description="stop after this time, with the decisions so far", ge=1, le=_DAY)] = 480,
) -> dict[str, Any]:
    """Run a program with and without fixes, in a copy of the project: which fixes are good, with times and a diff.

    Nothing is written. The program runs several times, so let it be short.
    """
    options = [*_option("--select", select), f"--steps={steps}", f"--repeat={repeat}", f"--time-budget={seconds}"]
    options += ["--unsafe-fixes"] * unsafe + ["--risky-fixes"] * risky
    arguments = ["--output-format=json", *options, *map(_as_path, paths or ["."]), "--", *command]
    out, notes = await _run("verify", arguments, seconds + _GRACE)
    # Without a fix there is no document.
    found: dict[str, Any] = _loaded(out) if out else {"kept": [], "dropped": [], "notes": notes}
    return found


async def trace_summary(
    path: Annotated[str, Field(description="a file of `perflint trace`")],
) -> dict[str, Any]:
    """Summarize a recorded run: the time of a step, its idle time, and the lines that wait for the GPU."""
    out, _ = await _run("report", ["--format=text", "--output=-", "--color=never", "--", path])
    return {"summary": out}


async def compare(
    before: Annotated[str, Field(description="the trace before a change")],
    after: Annotated[str, Field(description="the trace after it")],
) -> dict[str, Any]:
    """Compare two recorded runs: step time, idle time by cause, lines that wait no more or newly, work on the GPU."""
    found: dict[str, Any] = await _document("compare", ["--output-format=json", "--", before, after])
    return found


def _option(name: str, value: str | None) -> list[str]:
    # With `=`, a value that begins with a dash is not read as an option.
    return [] if value is None else [f"{name}={value}"]


def _as_path(path: str) -> str:
    # The words after `--` are the program of the user, so a path with a dash needs another mark.
    return f"./{path}" if path.startswith("-") else path


async def _document(verb: str, arguments: Sequence[str]) -> Any:
    out, _ = await _run(verb, arguments)
    return _loaded(out)


def _loaded(document: str) -> Any:
    """The values of a JSON document. Halves of surrogate pairs are replaced, since no message may contain them.

    Names of files that are not UTF-8 have such characters.
    """
    found = json.dumps(json.loads(document), ensure_ascii=False)
    return json.loads(found.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


async def _run(verb: str, arguments: Sequence[str], seconds: int = _SECONDS) -> tuple[str, str]:
    """The standard output and error of a command, which ends with the request. Raises ToolError if it fails."""
    # With -P, files of the working folder do not stand in for modules of Python.
    command = [sys.executable, "-P", "-m", "perflint", verb, *arguments]
    loop = asyncio.get_running_loop()
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(limit=_BUFFERED, loop=loop),
            *command,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
    except (ValueError, OSError) as error:
        # A zero byte, half of a surrogate pair, or more text than the system takes.
        raise ToolError(f"`perflint {verb}` cannot be run with these arguments: {error}") from None
    ran = Process(transport, protocol, loop)
    try:
        out, notes = (
            data.decode("utf-8", "replace") for data in await asyncio.wait_for(ran.communicate(), timeout=seconds)
        )
    except TimeoutError:
        raise ToolError(f"`perflint {verb}` took more than {seconds} seconds: name fewer paths") from None
    finally:
        # It takes too long, or the client cancels the request or leaves.
        if ran.returncode is None:
            with CancelScope(shield=True):
                await _end(ran)
        # What the command started may still hold its pipes.
        transport.close()
    # A check with faults in some files has findings in the others; a program that fails has no verification.
    if not out and ran.returncode not in ((0,) if verb == "verify" else (0, 1)):
        raise ToolError(notes.strip() or f"`perflint {verb}` ended with status {ran.returncode}")
    return out, notes


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a command. `verify` needs a moment to end its program and to remove its copy of the project."""
    process.terminate()
    try:
        await asyncio.wait_for(process.communicate(), timeout=_ENDING)
    except TimeoutError:
        process.kill()
        await process.wait()
