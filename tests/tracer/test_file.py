"""The file: what is written is read back, and other files are refused with a reason."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflint.tracer import file as module
from perflint.tracer.events import KINDS, Failure, Gap, Header, Hits, Place, Record, Step, Sync, SyncCost
from perflint.tracer.file import TraceError, read_trace, write_trace
from perflint.tracer.trace import Trace
from tests.tracer.device import ROOT

HEADER = Header(
    "0.1.0", "3.12.3", "2.11.0", ("GPU",), ("train.py", "-x"), "/root", "2026-01-01T00:00:00+00:00", "optimizer",
    5, 10, 1, "finished", True,
)  # fmt: skip
PLACE = Place("a.py", 3, 5, 3, 12, "f", "x.item()")
TRACE = Trace(HEADER, (Step(0, 1, 1.5), Sync(PLACE, "implicit", Hits(3, 1, (1, 2)), stack=("a.py:3 f",))))


def written(folder: Path, trace: Trace = TRACE) -> Path:
    path = folder / "a.jsonl.gz"
    write_trace(path, trace)
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def packed(path: Path, *lines: object) -> Path:
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode("utf-8", "surrogatepass")))
    return path


def strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that events have."""
    if is_dataclass(hint):
        return records(hint)
    if get_origin(hint) is tuple:
        return st.lists(strategy(get_args(hint)[0]), max_size=3).map(tuple)
    if get_args(hint):
        return st.none() | strategy(next(choice for choice in get_args(hint) if choice is not type(None)))
    scalars: dict[type, st.SearchStrategy[Any]] = {
        str: st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20),
        int: st.integers(-(2**62), 2**62),
        float: st.floats(-1e99, 1e99),
        bool: st.booleans(),
    }
    return scalars[hint]


def records(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{field.name: strategy(hints[field.name]) for field in fields(kind)})


@settings(deadline=None)
@given(st.data())
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    any_record: st.SearchStrategy[Record] = st.one_of([records(kind) for kind in KINDS.values()])
    trace = Trace(data.draw(records(Header)), tuple(data.draw(st.lists(any_record, max_size=6))))
    assert read_trace(written(tmp_path_factory.getbasetemp(), trace)) == trace


def test_texts_of_a_program_do_not_make_its_trace_unreadable(tmp_path: Path) -> None:
    trace = replace(TRACE, records=(Failure("timeline", "no \0 and no \ud800"),))
    assert read_trace(written(tmp_path, trace)).of(Failure) == (Failure("timeline", "no \\x00 and no \\ud800"),)


def test_the_same_trace_gives_the_same_bytes(tmp_path: Path) -> None:
    assert written(tmp_path).read_bytes() == written(tmp_path).read_bytes()
    assert list(tmp_path.iterdir()) == [tmp_path / "a.jsonl.gz"]


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX's")
def test_the_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    assert written(tmp_path).stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_or_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    write_trace(tmp_path / "pipe", TRACE)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode) and os.listdir(tmp_path) == ["pipe"]
    reader.join(10)
    assert read == [written(tmp_path).read_bytes()]


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written(tmp_path).read_bytes()
    bad = Trace(HEADER, (Step(0, 1, float("nan")),))
    with pytest.raises(ValueError, match="JSON"):
        write_trace(tmp_path / "a.jsonl.gz", bad)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    whole = written(tmp_path).read_bytes()
    path = tmp_path / "cut.gz"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(TraceError) as caught:
            read_trace(path)
        assert "cut.gz" in caught.value.message and caught.value.help


def test_lines_cut_off_anywhere_are_refused(tmp_path: Path) -> None:
    text = gzip.decompress(written(tmp_path).read_bytes())
    path = tmp_path / "cut.gz"
    for length in range(len(text)):
        path.write_bytes(gzip.compress(text[:length], 1))
        with pytest.raises(TraceError, match="cut"):
            read_trace(path)


def test_changed_bytes_are_refused_or_read(tmp_path: Path) -> None:
    """The checksum sees to it; no other exception than TraceError comes out."""
    whole = written(tmp_path).read_bytes()
    path = tmp_path / "changed.gz"
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            assert read_trace(path) == TRACE
        except TraceError as error:
            assert error.help


HEAD = {"record": "header", "format": "perflint-trace", "version": 1}
GOOD = HEAD | {
    "perflint": "", "python": "", "torch": "", "devices": [], "program": [], "root": "", "started": "",
    "step_source": "", "warmup": 0, "steps": 0, "steps_per_window": 1, "ended": "", "lines_recorded": False,
}  # fmt: skip
END = {"record": "end", "records": 1}
HOSTILE = {
    "nothing": [],
    "no JSON": ["{"],
    "a list": [[1]],
    "a number": ["7"],
    "deep": ["[" * 100_000],
    "another format": [{"format": "other"}],
    "newer": [HEAD | {"version": 2}],
    "version of another type": [HEAD | {"version": [1] * 1000}],
    "header without fields": [HEAD],
    "header of other types": [GOOD | {"devices": "abc"}],
    "a long number": [json.dumps(GOOD).replace('"warmup": 0', '"warmup": ' + "9" * 5000)],
    "a great number": [GOOD | {"warmup": 10**30}],
    "no number": [GOOD, '{"record":"step","index":0,"count":1,"ms":NaN}', END],
    "infinite": [GOOD, '{"record":"step","index":0,"count":1,"ms":1e999}', END],
    "a time beyond all times": [GOOD, '{"record":"step","index":0,"count":1,"ms":1e101}', END],
    "half a character in the root": ['{"root":"\\ud800",' + json.dumps(GOOD)[1:].replace('"root": "", ', ""), END],
    "a null in the root": [GOOD | {"root": "a\0b"}, END],
    "true for a number": [GOOD, {"record": "step", "index": True, "count": 1, "ms": 1}, END],
    "a step without time": [GOOD, {"record": "step", "index": 0, "count": 1}, END],
    "a place that is none": [GOOD, {"record": "graph-break", "place": 1, "reason": "", "count": 1}, END],
    "too few": [GOOD, END],
    "more after the end": [GOOD, END | {"records": 0}, {}],
    "two ends": [GOOD, END | {"records": 0}, END],
    "kind of another type": [GOOD, {"record": ["step"]}, END | {"records": 2}],
    "a line without end": [json.dumps(GOOD) + "x" * module.LINE_LIMIT],
}


@pytest.mark.parametrize("lines", HOSTILE.values(), ids=HOSTILE)
def test_hostile_content_is_refused(tmp_path: Path, lines: list[object]) -> None:
    with pytest.raises(TraceError) as caught:
        read_trace(packed(tmp_path / "a.gz", *lines))
    assert caught.value.help and len(caught.value.message) < 300


@pytest.mark.parametrize("content", [b"", b"hello", b"\x1f\x8b", b"\x80\x04K\x01.", b"\x00" * 1000])
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(TraceError):
        read_trace(tmp_path / "a")


def test_files_of_nsight_systems_are_refused(tmp_path: Path) -> None:
    database = tmp_path / "profile.sqlite"
    with closing(sqlite3.connect(database)) as made:
        made.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        made.commit()
    report = tmp_path / "profile.nsys-rep"
    report.write_bytes(b"\0" * 99)
    for path in (database, report):
        with pytest.raises(TraceError, match="files of Nsight Systems do not show which lines wait") as caught:
            read_trace(path)
        assert caught.value.help is not None and "with_stack=True" in caught.value.help


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(TraceError, match="cannot be read"):
            read_trace(path)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIZE_LIMIT", 10_000)
    with pytest.raises(TraceError, match="larger"):
        read_trace(packed(tmp_path / "a", GOOD, *[{"record": "unknown"}] * 1000))


def test_a_file_of_very_many_lines_is_refused_before_it_takes_long(tmp_path: Path) -> None:
    start = time.process_time()
    with pytest.raises(TraceError, match="larger"):
        read_trace(packed(tmp_path / "a", GOOD, "\n".join(["{}"] * 10_000_000)))
    assert time.process_time() - start < 20


def test_a_long_line_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_LIMIT", 1000)
    with pytest.raises(TraceError, match="larger"):
        read_trace(packed(tmp_path / "a", "x" * 1_000_000))


def test_unknown_records_and_keys_are_passed_over(tmp_path: Path) -> None:
    path = packed(tmp_path / "a", GOOD | {"new": 1}, {"record": "later"}, END)
    trace = read_trace(path)
    assert trace.records == () and trace.header.steps == 0
    step = {"record": "step", "index": 0, "count": 1, "ms": 2, "new": [1]}
    assert read_trace(packed(path, GOOD, step, END)).of(Step) == (Step(0, 1, 2.0),)


def test_the_records_say_what_they_are(tmp_path: Path) -> None:
    header, step, sync, end = lines_of(written(tmp_path))
    assert (header["record"], header["format"], header["version"]) == ("header", "perflint-trace", 1)
    assert (step["record"], sync["record"], end) == ("step", "sync", {"record": "end", "records": 2})
    assert sync["place"]["file"] == "a.py" and sync["kind"] == "implicit"


def test_a_reader_needs_no_torch(tmp_path: Path) -> None:
    written(tmp_path)
    code = (
        "import sys; from pathlib import Path; from perflint.tracer.file import read_trace\n"
        "from perflint.output.trace import trace_text; import perflint.tracer.gaps\n"
        "assert read_trace(Path('a.jsonl.gz')).step_ms == 1.5\n"
        "assert not {'torch', 'numpy', 'libcst'} & set(sys.modules)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=environment)


def test_what_the_profiler_adds_is_no_cost() -> None:
    """It makes steps of 9 into steps of 10, of which 2 are idle: half of that is its own."""
    records = (Step(0, 1, 9.0), Step(1, 1, 10.0, True, 8.0, 2.0), Gap(1, "sync", PLACE, 1, 1.0, 7.0, 0.6))
    trace = replace(TRACE, records=records)
    assert trace.idle_share == 0.5 and trace.cost_ms(PLACE) == pytest.approx(0.8)
    assert replace(TRACE, records=records[1:]).idle_share == 1.0
    assert replace(TRACE, records=(Step(0, 1, 3.0), *records[1:])).idle_share == 0.0
    assert trace.cost_ms(replace(PLACE, line=4)) == 0.0


def test_what_a_replay_says_is_the_cost() -> None:
    records = (Step(1, 1, 10.0, True, 8.0, 2.0), Gap(1, "sync", PLACE, 1, 1.0, 7.0), SyncCost(PLACE, 0.4, 0.1))
    trace = replace(TRACE, records=records)
    assert trace.cost_ms(PLACE) == 0.4 and trace.cost_ms(replace(PLACE, line=4)) == 0.0


def test_times_of_steps() -> None:
    trace = replace(TRACE, records=(Step(0, 1, 9.0), Step(1, 1, 1.0), Step(2, 1, 3.0), Step(3, 1, 50.0, profiled=True)))
    assert trace.step_ms == 3.0 and trace.profiled_steps == 1
    assert Trace(HEADER).step_ms is None and Trace(HEADER).cost_ms(PLACE) is None
