"""Syncs that the program allows, and functions that are stated to be free of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import perflint
from perflint.tracer.allow import promised
from perflint.tracer.file import read_trace
from tests.cli.command import Command
from tests.tracer import warm

CODE = """\
import torch
from perflint import allow_sync, sync_free


@sync_free
def step(x: torch.Tensor):
    x = x.cuda()
    limit = x.max().item()
    with allow_sync("the sum is logged"):
        print(x.sum().item())
    for part in x.cpu():
        print(part.item())
    return x.clamp(max=limit)


@allow_sync("it is rare")
def logged(x: torch.Tensor, steps):
    for _ in range(steps):
        print(x.cuda().max().item())


class Decoder:
    def run(self, x: torch.Tensor):
        return x.cuda().min().item()


def other(x: torch.Tensor):
    return x.cuda().mean().item()
"""
PROGRAM = """\
import torch
import perflint


@perflint.sync_free
def step(x):
    with perflint.allow_sync("a test"):
        x.sum().item()
    return helper(x)


def helper(x):
    return x.max(){read}


x = torch.ones(4, device="cuda")
x.min().item()
step(x)
"""


@pytest.fixture
def in_project(perflint: Command) -> Command:
    perflint.write("pyproject.toml", "")
    perflint.write("a.py", CODE)
    return perflint


def lines(found: str, wanted: str) -> list[int]:
    return [int(line.split(":")[1]) for line in found.splitlines() if wanted in line]


def test_marked_functions(in_project: Command) -> None:
    found = in_project("check", "a.py", "--select=TPF1", "--profile=audit", "--output-format=concise").out
    assert lines(found, "in `step`, which must be free of syncs") == [8, 11]
    assert lines(found, "TPF") == [8, 11, 24, 28]
    shown = in_project("check", "a.py", "--select=TPF101", "--output-format=full").out
    assert "error[TPF101] `x.max().item()`" in shown


def test_functions_of_the_settings(in_project: Command) -> None:
    command = ("check", "a.py", "--select=TPF101", "--output-format=concise")
    assert 24 not in lines(in_project(*command).out, "must be free of syncs")
    found = in_project(*command, "--config", "sync-free-functions=Decoder.run").out
    assert lines(found, "in `run`, which must be free of syncs") == [24]


@pytest.mark.parametrize(("read", "code"), [(".item()", 1), ("", 0)])
def test_a_trace_holds_them(tmp_path: Path, read: str, code: int) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(read=read))
    done = warm.trace(tmp_path, "--simulate", "--warmup", "0", "--steps", "0", "program.py")
    assert done.code == code, done.err
    broken = read_trace(tmp_path / "perflint-trace.jsonl.gz").broken_promises
    assert [(sync.place.line, sync.promise) for sync in broken] == [(13, "step")] * code
    assert done.err.count("program.py:13 waits in step, which is marked `sync_free`.\n") == code


def test_marks_end_with_the_call() -> None:
    @perflint.sync_free
    def outer() -> list[str]:
        return [promised(), inner(), promised()]

    @perflint.sync_free
    def inner() -> str:
        return promised()

    @perflint.sync_free
    async def later() -> str:
        await asyncio.sleep(0)
        return promised()

    names = [name.rpartition(".")[2] for name in (*outer(), asyncio.run(later()))]
    assert names == ["outer", "inner", "outer", "later"] and promised() == ""


def test_generators_are_refused() -> None:
    with pytest.raises(TypeError, match="is a generator"):

        @perflint.sync_free
        def values() -> object:
            yield 1
