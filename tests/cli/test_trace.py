"""The verb `trace`: its options, its faults, its summary."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.output.terminal import Style
from perflint.output.trace import trace_text
from perflint.tracer.events import Failure, Gap, Header, Hits, PageableCopy, Place, Record, Step, Sync
from perflint.tracer.trace import Trace
from tests.cli.command import Command, python

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def header(**changes: object) -> Header:
    facts: dict[str, object] = {
        "perflint": "0.1.0", "python": "3.12", "torch": "2.11", "devices": ("GPU",), "program": (), "root": "/",
        "started": "", "step_source": "optimizer", "warmup": 5, "steps": 12, "steps_per_window": 1, "ended": "finished",
        "lines_recorded": True,
    }  # fmt: skip
    return Header(**facts | changes)  # type: ignore[arg-type]


def at(line: int, text: str = "x.item()") -> Place:
    return Place("a.py", line, 1, line, 9, "f", text)


def text(*records: Record, **changes: object) -> str:
    return trace_text(Trace(header(**changes), records), Path("/a.gz"), Style(False))


STEPS = (Step(0, 1, 9.0), Step(1, 1, 9.2), Step(2, 1, 9.1, True, 7.5, 1.6), Step(3, 1, 9.1, True, 7.5, 1.6))


def test_the_lines_that_cost_most_come_first() -> None:
    syncs = [Sync(at(line), "implicit", Hits(often)) for line, often in ((3, 12), (4, 120), (5, 1))]
    gaps = [Gap(2, "sync", at(3), 1, 1.5, 9.0), Gap(3, "sync", at(3), 1, 1.0, 9.0), Gap(2, "sync", at(4), 1, 0.1, 9.0)]
    assert text(*STEPS, *syncs, *gaps) == (
        "perflint trace: 12 steps of 9.10 ms (counted by optimizer.step()), GPU idle for 1.60 ms (18%) of each\n"
        "  ms/step  syncs/step  line\n"
        "    1.250        1.00  a.py:3  x.item()\n"
        "    0.050       10.00  a.py:4  x.item()\n"
        "    0.000        0.08  a.py:5  x.item()\n"
        "Written to /a.gz.\n"
    )


def test_what_is_not_known_is_not_said() -> None:
    said = text(Step(0, 1, 9.0), Sync(at(3), "implicit", Hits(12)))
    assert "costs are not known" in said and "        ?        1.00  a.py:3" in said


def test_allowed_syncs_copies_and_failures() -> None:
    said = text(
        *STEPS,
        Sync(at(3), "implicit", Hits(12), allowed="logged"),
        Sync(at(4), "implicit", Hits(12), origin="module-move"),
        Sync(at(5), "implicit", Hits(0, 7)),
        PageableCopy(at(6), "host-to-device", 1, Hits(3)),
        Failure("timeline", "no \x1b[2J events"),
    )
    assert "No line synchronized in a recorded step." in said
    assert "12 syncs allowed" in said and "not pinned: a.py:6." in said
    assert "timeline: no \\x1b[2J events" in said


def test_a_line_that_waits_in_few_steps_says_in_how_many() -> None:
    rare = Sync(at(3), "implicit", Hits(24, windows=(0, 24)))
    each = Sync(at(4), "implicit", Hits(12, windows=(1,) * 12))
    said = text(*STEPS, rare, each)
    assert "(in 1 of 12 steps)" in said and said.count("(in ") == 1
    late = Sync(at(5), "implicit", Hits(24, windows=(*(0,) * 12, 24)))
    assert "(after the last of 12 steps)" in text(*STEPS, late)


def test_lines_that_wait_in_few_steps_come_last_where_no_cost_is_known() -> None:
    rare = Sync(at(3), "implicit", Hits(600, windows=(0, 600)))
    each = Sync(at(4), "implicit", Hits(12, windows=(1,) * 12))
    said = text(*STEPS[:2], rare, each)
    assert said.index("a.py:4") < said.index("a.py:3") and "50.00  a.py:3" in said
    often = text(*STEPS[:2], replace(rare, hits=Hits(600)), each)
    assert often.index("a.py:3") < often.index("a.py:4")


def test_places_on_one_line_have_columns() -> None:
    there = [Sync(replace(at(3), column=column), "implicit", Hits(12)) for column in (5, 20)]
    said = text(*STEPS, *there, Sync(at(4), "implicit", Hits(12)))
    assert "a.py:3:5   x.item()" in said and "a.py:3:20  x.item()" in said and "a.py:4     x.item()" in said


def test_many_lines() -> None:
    syncs = [Sync(at(line), "implicit", Hits(12)) for line in range(1, 14)]
    assert "3 more lines synchronized." in text(*STEPS, *syncs)


def test_nothing_seen() -> None:
    assert "used no GPU" in text(devices=(), steps=0)
    assert "No steps were found" in text(steps=0)
    assert "(rank 1 of 2)" in text(rank=1, world_size=2)
    assert "put nothing on the simulated GPU" in text(devices=(), steps=0, simulated=True)
    launched = text(devices=(), steps=0, step_source="", children_seconds=31.4)
    assert "started processes that worked for 31 s. Trace these: `torchrun --no-python" in launched
    assert "used no GPU" in text(devices=(), children_seconds=31.4)
    assert "saw nothing but lines" in text(devices=(), steps=0, watched=False)
    assert "The program uses torch.compile" in text(*STEPS, lines_recorded=False)
    assert "Python 3.11 cannot record every executed line" in text(*STEPS, lines_recorded=False, python="3.11.9")


@needs_torch
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "error: there is no program to trace\n  help: perflint trace SCRIPT"),
        (["--steps", "3"], "there is no program"),
        (["nothing.py"], "error: there is no file nothing.py"),
        (["nothing.py", "--exp", "x", "--s", "3"], "error: there is no file nothing.py"),
        (["--output", "no/where.gz", "a.py"], "error: there is no folder"),
    ],
)
def test_faults_in_the_usage(perflint: Command, arguments: list[str], message: str) -> None:
    perflint.write("a.py", "print(1)")
    ran = perflint("trace", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err and "help:" in ran.err


@pytest.mark.parametrize("arguments", [["--steps", "-1", "a.py"], ["--warmup", "x", "a.py"], ["--unknown", "a.py"]])
def test_faults_that_argparse_finds(perflint: Command, arguments: list[str]) -> None:
    ran = perflint("trace", *arguments)
    assert ran.code == 2 and ran.err.startswith("error: ") and "help: " in ran.err


def test_without_torch(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perflint.cli.trace.find_spec", lambda name: None)
    ran = perflint("trace", "a.py")
    assert ran.code == 2
    assert ran.err == "error: the tracer needs torch\n  help: install torch beside perflint: pip install torch\n"


@needs_torch
@pytest.mark.parametrize("form", [["--", "a.py"], ["a.py"], ["-m", "a"]])
def test_forms_of_the_command(tmp_path: Path, form: list[str]) -> None:
    (tmp_path / "a.py").write_text("import sys; print(sys.argv[1:])")
    ran = python("-m", "perflint", "trace", "--steps", "1", *form, "--steps", "--", "-o", "x", cwd=tmp_path)
    assert (ran.code, ran.out) == (0, "['--steps', '--', '-o', 'x']\n"), ran.err
    assert ran.err.endswith(f"Written to {tmp_path / 'perflint-trace.jsonl.gz'}.\n")


def test_help_documents_the_exit_codes(perflint: Command) -> None:
    assert "Exit codes: those of the program; 1 where it succeeded" in " ".join(perflint("trace", "--help").out.split())
