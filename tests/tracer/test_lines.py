"""Which lines are seen to run, with the interpreter's monitoring or a trace function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perflint.tracer import lines
from perflint.tracer.lines import Lines

PROGRAM = """\
def work(n):
    x = 0
    for i in range(n):
        x += i
        if i == 2:
            step()
            x = 1
    return x

def other():
    return 5
"""


@pytest.fixture
def loaded(tmp_path: Path) -> tuple[dict[str, Any], Lines, list[set[int]]]:
    """The program's functions, what watches it, and what was taken at each step."""
    path = tmp_path / "program.py"
    watch = Lines(lambda name: name == str(path))
    taken: list[set[int]] = []
    names: dict[str, Any] = {"step": lambda: taken.append({line for _, line in watch.take()})}
    exec(compile(PROGRAM, str(path), "exec"), names)
    return names, watch, taken


def test_lines_are_those_since_the_last_time(loaded: tuple[dict[str, Any], Lines, list[set[int]]]) -> None:
    names, watch, taken = loaded
    step: Callable[[], None] = names["step"]
    watch.start()
    try:
        names["work"](1)
        step()
        names["work"](4)
        names["other"]()
        step()
        names["other"]()
    finally:
        watch.stop()
    body = [taken_at & {2, 3, 4, 5, 6, 7, 8, 11} for taken_at in taken]
    # A trace function begins with the first recorded step.
    assert body[0] == ({2, 3, 4, 5, 8} if watch.sees_all else set())
    assert body[1:] == [{2, 3, 4, 5, 6}, {3, 4, 5, 7, 8, 11}]
    assert watch.sees_all == (sys.version_info >= (3, 12))
    assert {line for _, line in watch.take()} == {11}
    names["other"]()
    assert not watch.take()


def test_nothing_is_left(loaded: tuple[dict[str, Any], Lines, list[set[int]]]) -> None:
    _, watch, _ = loaded
    before = sys.gettrace()
    watch.start()
    watch.take()
    watch.stop()
    assert sys.gettrace() is before
    if lines._monitoring is not None:
        assert all(lines._monitoring.get_tool(number) != "perflint" for number in range(6))


def test_a_debugger_is_left_alone(loaded: tuple[dict[str, Any], Lines, list[set[int]]]) -> None:
    names, watch, _ = loaded

    def debugger(*_: object) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        watch.start()
        watch.take()
        names["other"]()
        assert sys.gettrace() is debugger
        watch.stop()
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("simulated", [False, True])
def test_a_trace_function_stops_after_a_while(
    loaded: tuple[dict[str, Any], Lines, list[set[int]]], monkeypatch: pytest.MonkeyPatch, simulated: bool
) -> None:
    names, _, _ = loaded
    monkeypatch.setattr(lines, "_monitoring", None)
    watch = Lines(lambda path: True, simulated)
    # After the tracer has been made, as a plugin of a recorded program does.
    monkeypatch.setattr(lines, "SIMULATED_SECONDS" if simulated else "TRACED_SECONDS", 0.0)
    before = sys.gettrace()
    sys.settrace(None)
    try:
        watch.take()
        names["other"]()
        assert sys.gettrace() is None and not watch.take()
    finally:
        watch.stop()
        sys.settrace(before)
