"""The tools for agents, through the client of the official SDK; its server mostly has a process of its own."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perflint.integrations import mcp
from perflint.integrations.mcp import server
from tests.cli.command import ROOT, Command

BAD = """\
import torch


def train(model, loader):
    for x in loader:
        with torch.cuda.amp.autocast():
            loss = model(x.cuda()).mean()
        loss.backward()
        print(loss.item())
"""
TRACES = ROOT / "docs" / "examples" / "tracing"


def ask(folder: Path, *calls: tuple[str, dict[str, Any]]) -> tuple[Any, list[Any]]:
    """The tools of a server that is started in a folder, and the results of some calls."""
    # The import takes a second, and each process of a run imports all tests.
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def talk() -> tuple[Any, list[Any]]:
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PERFLINT_NO_CACHE": "1"}
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "perflint", "mcp"], env=environment, cwd=str(folder)
        )
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            started = await session.initialize()
            listed = await session.list_tools()
            return (started, listed.tools), [await session.call_tool(name, given) for name, given in calls]

    return asyncio.run(asyncio.wait_for(talk(), 120))


def ask_here(folder: Path, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The results of some calls of a server in this process, which is in a folder."""
    from mcp import Client

    async def talk() -> list[Any]:
        async with Client(server()) as client:
            return [await client.call_tool(name, given) for name, given in calls]

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PYTHONPATH", str(ROOT))
        return asyncio.run(asyncio.wait_for(talk(), 120))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(BAD)
    (tmp_path / "requirements.txt").write_text("torch>=2.4\n")
    return tmp_path


def test_find_explain_and_fix(project: Path) -> None:
    (started, tools), results = ask(
        project,
        ("check", {}),
        ("check", {"paths": ["train.py"], "select": "TPF902", "limit": 1}),
        ("explain", {"path": "train.py", "line": 9, "cell": 1}),
        ("rule", {"rule": "scalar-read-in-loop"}),
        ("fix", {"select": "TPF902"}),
    )
    assert started.server_info.name == "perflint" and "`check` finds places" in started.instructions
    assert [tool.name for tool in tools] == ["check", "explain", "rule", "fix", "trace_summary", "compare", "verify"]
    assert all(tool.description and tool.annotations.read_only_hint is (tool.name != "verify") for tool in tools)
    assert not any(result.is_error for result in results)
    everything, one, explained, page, fixed = (result.structured_content for result in results)
    assert {"TPF902", "TPF103"} & {finding["code"] for finding in everything["findings"]}
    severities = [finding["severity"] for finding in everything["findings"]]
    assert severities == sorted(severities, key=("error", "warning", "info").index) and everything["left_off"] == 0
    assert one["findings"][0]["line"] == 6 and one["summary"]["findings"] == 1
    assert (explained["path"], explained["line"]) == ("train.py", 9)
    assert page["code"] == "TPF101" and "page" in page
    assert '+        with torch.amp.autocast("cuda"' in fixed["diff"] and "Would fix 1 finding" in fixed["notes"]
    # Nothing was written.
    assert (project / "train.py").read_text() == BAD and len(list(project.iterdir())) == 2


def test_the_page_names_the_tools() -> None:
    text = (ROOT / "docs" / "agents" / "README.md").read_text(encoding="utf-8")
    tools = asyncio.run(server().list_tools())
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [tool.name for tool in tools]


def test_traces(tmp_path: Path) -> None:
    slow, fast = str(TRACES / "slow.jsonl.gz"), str(TRACES / "fast.jsonl.gz")
    summary, compared = ask_here(
        tmp_path, ("trace_summary", {"path": slow}), ("compare", {"before": slow, "after": fast})
    )
    assert "11 steps of 17.76 ms" in summary.structured_content["summary"]
    assert compared.structured_content["step_ms"]["after"] == pytest.approx(12.1381)


def test_faults_are_errors_of_the_tool(project: Path) -> None:
    (project / "broken.py").write_text("for")
    # Not the module of Python.
    (project / "tokenize.py").write_text("raise SystemExit(3)")
    _, (missing, unknown, option, broken) = ask(
        project,
        ("trace_summary", {"path": "missing.gz"}),
        ("rule", {"rule": "TPF000"}),
        ("fix", {"paths": ["--apply", "train.py"]}),
        ("check", {"paths": ["broken.py", "train.py"], "select": "TPF902"}),
    )
    assert missing.is_error and "missing.gz cannot be read" in missing.content[0].text
    assert unknown.is_error and "no rule `TPF000`" in unknown.content[0].text
    # A path is never an option.
    assert (project / "train.py").read_text() == BAD
    assert "no such file or folder" in json.dumps([each.text for each in option.content])
    assert not broken.is_error
    found = broken.structured_content
    assert found["errors"][0]["path"] == "broken.py" and found["findings"][0]["path"] == "train.py"


ODD = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"[" * 5000,
    b"x" * 1_000_000,
    b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": 2, "method": "no/such"}',
    b'{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "rule", "arguments": []}}',
    b'{"jsonrpc": "2.0", "id": 4, "method": "tools/call",'
    b' "params": {"name": "rule", "arguments": {"rule": "\\u0000"}}}',
    b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call",'
    b' "params": {"name": "rule", "arguments": {"rule": "\\ud800"}}}',
)
"""Lines that no client should send."""


def test_odd_messages_leave_the_server_alive(project: Path) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "odd", "version": "1"}}
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    last = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}
    command = [sys.executable, "-m", "perflint", "mcp"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=project, env=environment
    ) as ran:
        assert ran.stdin is not None and ran.stdout is not None
        lines = [json.dumps(first).encode(), json.dumps(ready).encode(), *ODD, json.dumps(last).encode()]
        ran.stdin.write(b"".join(line + b"\n" for line in lines))
        ran.stdin.flush()
        answers: dict[object, Any] = {}
        while not answers.keys() >= {0, 2, 3, 4, 9}:
            answer = json.loads(ran.stdout.readline())
            answers[answer.get("id")] = answer
        ran.stdin.close()
    assert len(answers[9]["result"]["tools"]) == 7
    assert "error" in answers[2] and "error" in answers[3]
    assert answers[4]["result"]["isError"] and "null byte" in json.dumps(answers[4])


TRAINING = """\
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler(enabled=False)
for _ in range(30):
    loss = model(torch.ones(2, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


VERIFY = {"paths": ["train.py"], "select": "TPF902", "unsafe": True, "steps": 10, "repeat": 2}


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_command_that_takes_too_long_can_clean_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp.server.mcpserver.exceptions import ToolError

    slow = tmp_path / "python"
    slow.write_text(f"#!/bin/sh\ntrap 'touch {tmp_path}/removed; exit 143' TERM\nsleep 20 >&- 2>&- &\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    with pytest.raises(ToolError, match="took more than 1 seconds"):
        asyncio.run(mcp._run("verify", [], 1))
    assert (tmp_path / "removed").exists()


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_command_ends_with_its_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client cancels a request, or leaves."""
    slow = tmp_path / "python"
    slow.write_text(
        f"#!/bin/sh\ntrap 'touch {tmp_path}/ended; exit 143' TERM\ntouch {tmp_path}/begun\nsleep 60 &\nwait\n"
    )
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))

    async def cancelled() -> None:
        request = asyncio.create_task(mcp.check())
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.05)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    asyncio.run(cancelled())
    assert (tmp_path / "ended").exists()
    # What is left open warns when it is collected.
    gc.collect()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_no_text(project: Path) -> None:
    (project / os.fsdecode(b"tr\xff.py")).write_text(BAD)
    _, (checked, fixed) = ask(project, ("check", {"select": "TPF902"}), ("fix", {"select": "TPF902"}))
    assert not checked.is_error and not fixed.is_error
    assert [each["path"] for each in checked.structured_content["findings"]] == [
        "train.py",
        "tr\N{REPLACEMENT CHARACTER}.py",
    ]
    assert "in 2 files" in fixed.structured_content["notes"]


def test_numbers_that_are_too_large(project: Path) -> None:
    verified, checked, explained = ask_here(
        project,
        ("verify", {"command": ["true"], "seconds": 10**18}),
        ("check", {"limit": 10**30, "select": "TPF902"}),
        ("explain", {"path": "train.py", "line": 10**30}),
    )
    assert verified.is_error and "less than or equal to 86400" in verified.content[0].text
    assert len(checked.structured_content["findings"]) == 1
    assert explained.is_error and "has no line" in explained.content[0].text


@pytest.mark.slow
@pytest.mark.usefixtures("stated_torch")
def test_verify_runs_a_program_in_a_copy(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    _, (verified,) = ask(tmp_path, ("verify", {"command": [sys.executable, "train.py"], **VERIFY}))
    assert not verified.is_error, verified.content
    found = verified.structured_content
    assert [each["code"] for each in (*found["kept"], *found["dropped"])] == ["TPF902"], found
    assert (tmp_path / "train.py").read_text() == TRAINING


@pytest.mark.usefixtures("stated_torch")
def test_verify_without_a_result(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "broken.py").write_text("raise SystemExit('does not work')")
    failed, option, nothing = ask_here(
        tmp_path,
        ("verify", {"command": [sys.executable, "broken.py"], **VERIFY}),
        ("verify", {"command": ["true"], "paths": ["--apply", "train.py"]}),
        ("verify", {"command": ["true"], "select": "TPF201"}),
    )
    assert failed.is_error or "fail" in json.dumps(failed.structured_content)
    assert option.is_error and "no such file or folder" in option.content[0].text
    assert nothing.structured_content["kept"] == [] and "Nothing to fix" in nothing.structured_content["notes"]
    assert (tmp_path / "train.py").read_text() == TRAINING


def test_without_the_sdk(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    monkeypatch.delitem(sys.modules, "perflint.integrations.mcp", raising=False)
    ran = perflint("mcp")
    assert ran.code == 2 and "needs the package mcp" in ran.err and "pip install 'mcp>=2'" in ran.err
