"""The format of trace viewers: what Perfetto's reader of JSON needs."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflint.output.chrome import write_chrome
from perflint.tracer.events import KINDS, Activity, Header, Idle, Record
from perflint.tracer.trace import Trace
from tests.output.traces import RECORDS, TRACE, header, poisoned, without
from tests.tracer.test_file import records

Event = dict[str, Any]


def events(*traces: Trace) -> list[Event]:
    out = io.StringIO()
    shown = write_chrome([("trace.jsonl.gz", trace) for trace in traces], out)
    document = json.loads(out.getvalue())
    assert document["displayTimeUnit"] == "ms"
    found: list[Event] = document["traceEvents"]
    assert shown == sum(event["ph"] == "X" for event in found)
    return found


def check(found: list[Event]) -> None:
    """Kinds, numbers and names as the format has them, and no two pieces of a thread that overlap by halves."""
    pieces: defaultdict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    named = {(event["pid"], event["tid"]) for event in found if event["name"] == "thread_name"}
    for event in found:
        assert event["ph"] in ("M", "X")
        assert type(event["pid"]) is int and type(event["tid"]) is int and event["pid"] > 0
        assert isinstance(event["args"], dict)
        if event["ph"] == "X":
            assert event["dur"] >= 0 and isinstance(event["ts"], float) and event["cat"]
            assert (event["pid"], event["tid"]) in named
            pieces[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    by_thread = defaultdict(set)
    for process, thread in named:
        by_thread[thread].add(process)
    assert all(len(processes) == 1 for processes in by_thread.values())


def test_what_the_gpu_did_is_there() -> None:
    found = events(TRACE)
    check(found)
    work = [event for event in found if event["ph"] == "X" and event["cat"] in ("kernel", "copy")]
    activities = [record for record in RECORDS if isinstance(record, Activity)]
    assert [(event["name"], event["ts"], event["dur"]) for event in work] == [
        (piece.name, piece.start_us, piece.us) for piece in activities
    ]
    names = {event["args"]["name"] for event in found if event["ph"] == "M" and "name" in event["args"]}
    assert names == {"train.py --epochs 1", "steps", "idle", "stream 7"}


def test_steps_follow_each_other_and_say_what_was_idle() -> None:
    first, second = (event for event in events(TRACE) if event.get("cat") == "step")
    assert (first["name"], first["ts"], first["dur"], second["ts"]) == ("step 10", 0.0, 9500.0, 9500.0)
    assert first["args"]["idle"][0] == {"cause": "sync", "line": "train.py:11", "ms": 1.2}


def test_idle_time_has_its_cause_or_is_what_is_between() -> None:
    idle = [event for event in events(TRACE) if event.get("cat") == "idle"]
    assert [event["name"] for event in idle] == ["sync train.py:11", "loader", "sync train.py:11"]
    without_causes = [event for event in events(without(Idle)) if event.get("cat") == "idle"]
    assert [(event["ts"], event["dur"]) for event in without_causes] == [(4000.0, 400.0), (7400.0, 2100.0),
                                                                          (13500.0, 400.0)]  # fmt: skip


def test_each_rank_is_a_process() -> None:
    ranks = [replace(TRACE, header=header(rank=rank, world_size=2)) for rank in range(2)]
    found = events(*ranks)
    check(found)
    names = {event["pid"]: event["args"]["name"] for event in found if event["name"] == "process_name"}
    assert names == {1: "rank 0 of 2: train.py --epochs 1", 2: "rank 1 of 2: train.py --epochs 1"}


def test_hostile_text_can_be_read() -> None:
    found = events(Trace(poisoned(TRACE.header), tuple(poisoned(record) for record in RECORDS)))
    check(found)
    text = json.dumps(found, ensure_ascii=False)
    text.encode()
    assert "\u202e" not in text and "\\x1b" in text


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_trace_can_be_written(data: st.DataObject) -> None:
    any_record: st.SearchStrategy[Record] = st.one_of([records(kind) for kind in KINDS.values()])
    check(events(Trace(data.draw(records(Header)), tuple(data.draw(st.lists(any_record, max_size=8))))))
