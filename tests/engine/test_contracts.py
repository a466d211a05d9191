"""Syncs that the program allows, and functions that are stated to be free of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import perflint
from perflint.tracer.allow import promised
from perflint.tracer.file import read_trace
from perflint.tracer.places import Locator
from perflint.tracer.promises import Promises
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


def test_a_wait_for_a_tensor_of_an_unknown_place_is_a_warning(perflint: Command) -> None:
    perflint.write(
        "a.py", "import perflint, torch\n\n@perflint.sync_free\ndef step(x: torch.Tensor):\n    x.max().item()\n"
    )
    assert "warning[TPF101] `x.max().item()`" in perflint("check", "a.py", "--select=TPF101").out


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
    assert done.err.count("program.py:13 waits in step, which must be free of syncs.\n") == code


LISTED = """\
import torch
import perflint


class Decoder:
    def tokens(self, x):
        with perflint.allow_sync("a test"):
            x.sum().item()
        for _ in range(2):
            yield helper(x)


def helper(x):
    return x.max().item()


def other(x):
    return x.min().item()


x = torch.ones(4, device="cuda")
list(Decoder().tokens(x))
other(x)
"""


def test_a_trace_holds_functions_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "program.py").write_text(LISTED)
    (tmp_path / "pyproject.toml").write_text('[tool.perflint]\nsync-free-functions = ["program.Decoder.*", "oth"]\n')
    done = warm.trace(tmp_path, "--simulate", "--warmup", "0", "--steps", "0", "app/program.py")
    assert done.code == 1, done.err
    broken = read_trace(tmp_path / "perflint-trace.jsonl.gz").broken_promises
    assert [(sync.place.line, sync.promise, sync.hits.steps) for sync in broken] == [(14, "Decoder.tokens", 2)]
    assert "app/program.py:14 waits in Decoder.tokens, which must be free of syncs.\n" in done.err


def test_names_of_the_settings() -> None:
    def outer(promises: Promises) -> str:
        return promises.around(sys._getframe())

    def found(*names: str, own: Sequence[Path] = ()) -> str:
        return outer(Promises(Locator(Path(__file__).parents[2], own), names))

    name = "test_names_of_the_settings.<locals>.outer"
    assert found("outer") == found("test_contracts.*.outer") == found("*.test_contracts.*.outer") == name
    assert found("tests.engine.test_contracts.test_names_of_the_settings") == "test_names_of_the_settings"
    assert found("oute", "engine.outer") == found() == ""
    assert found("outer", own=[Path(pytest.__file__)]) == "", "functions of other packages are not meant"


DECLARED = """\
import mylib
import perflint


@perflint.sync_free
def step():
    mylib.flush()
    with perflint.allow_sync("the queue is full"):
        mylib.flush()


def other():
    mylib.flush()
"""


def test_calls_that_the_settings_declare_to_wait(perflint: Command) -> None:
    perflint.write("a.py", DECLARED)
    command = ("check", "a.py", "--profile=audit", "--output-format=concise", "--config=sync-functions=mylib.flush")
    found = perflint(*command, "--isolated").out
    assert lines(found, "TPF137") == [7, 13]
    assert lines(found, "in `step`, which must be free of syncs") == [7]


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
