"""The ranks of a run joined: traces made up, and of two GPUs, recorded with torch 2.11."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perflint.output.ranks import ranks_text
from perflint.output.terminal import Style
from perflint.tracer import ranks as module
from perflint.tracer.events import Activity, Gap, Header, Hits, Place, Record, Step, Sync
from perflint.tracer.file import read_trace
from perflint.tracer.ranks import are_ranks, is_collective, join_ranks
from perflint.tracer.trace import Trace

DATA = Path(__file__).parent / "data"
HEADER = Header("0", "3.12", "2.11", ("GPU",), ("a.py",), "/p", "", "optimizer", 5, 3, 1, "finished", True)
PLACE = Place("a.py", 7, 1, 7, 12, "f", "loss.item()")
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def rank(number: int, world: int, work: float, idle: float, meeting: float, *more: Record, steps: int = 3) -> Trace:
    """A rank whose steps are work, then time without any, then a collective that overlaps with half of the work."""
    records: list[Record] = [Step(0, 1, 10.0)]
    for step in range(1, steps + 1):
        start = step * 100_000.0
        records.append(Step(step, 1, 10.0, True, 10.0 - idle, idle))
        records.append(Activity(step, start, work * 1000, 7, "kernel", "gemm"))
        records.append(Activity(step, start + work * 500, meeting * 1000, 17, "kernel", ALL_REDUCE))
    return Trace(replace(HEADER, rank=number, world_size=world), (*records, *more))


def test_the_rank_with_the_shortest_collectives_keeps_the_others_waiting() -> None:
    """It has 4 ms more to do than the others."""
    report = join_ranks([rank(2, 3, 4, 0.1, 6), rank(0, 3, 4, 0.1, 5.5), rank(1, 3, 8, 0.1, 1)])
    assert [row.rank for row in report.ranks] == [0, 1, 2] and report.missing == () and report.uneven == ()
    found = report.straggler
    assert found is not None
    assert (found.rank, found.wait_ms, found.steps, found.compared) == (1, 4.75, 3, 3)
    assert (found.more_work_ms, found.more_idle_ms, found.cause) == (4.0, 0.0, "")
    row = report.ranks[1]
    assert (row.step_ms, row.own_ms, row.idle_ms, row.collective_ms, row.exposed_ms) == (10.0, 8.0, 0.1, 1.0, 0.0)
    assert report.ranks[2].exposed_ms == 4.0
    text = ranks_text(report, Style(False))
    assert "Rank 1 makes the others wait, 4.75 ms per step (in 3 of 3 profiled steps): its GPU has 4.00 ms more" in text


@pytest.mark.parametrize(
    ("gaps", "reason"),
    [
        ((Gap(1, "host", None, 1, 6.0), Gap(1, "sync", PLACE, 1, 1.0)), "because its CPU is late."),
        ((Gap(1, "loader", None, 1, 6.0),), "waiting for data."),
        ((Gap(1, "sync", PLACE, 1, 6.0), Gap(1, "host", None, 1, 1.0)), "after a.py:7  loss.item()"),
        ((Gap(1, "sync", None, 1, 6.0),), "because its CPU is late."),
    ],
)
def test_a_rank_that_idles(gaps: tuple[Gap, ...], reason: str) -> None:
    report = join_ranks([rank(0, 2, 4, 5, 1, *gaps), rank(1, 2, 4, 0, 6)])
    assert report.straggler is not None and report.straggler.more_idle_ms == 5.0
    assert f"its GPU idles 5.00 ms longer, {reason}\n" in ranks_text(report, Style(False))


def test_ranks_that_take_turns_or_hardly_wait_are_not_named() -> None:
    assert join_ranks([rank(0, 2, 4, 0, 2), rank(1, 2, 4, 0, 2.2)]).straggler is None
    first, second = rank(0, 2, 4, 0, 2, steps=2), rank(1, 2, 4, 0, 2, steps=2)
    longer = [replace(record, us=6000.0) for record in first.of(Activity) if record.name == ALL_REDUCE]
    turns = [
        replace(trace, records=tuple(longer[at] if record == short else record for record in trace.records))
        for at, (trace, short) in enumerate(
            (trace, [record for record in trace.of(Activity) if record.name == ALL_REDUCE][at])
            for at, trace in enumerate((first, second))
        )
    ]
    report = join_ranks(turns)
    assert report.straggler is None
    assert "No rank makes the others wait." in ranks_text(report, Style(False))


def test_without_collectives_nobody_knows() -> None:
    bare = [Trace(replace(HEADER, rank=number, world_size=4), (Step(0, 1, 2.0),)) for number in (0, 3)]
    report = join_ranks(bare)
    assert report.straggler is None and report.missing == (1, 2)
    text = ranks_text(report, Style(False))
    assert "No trace of ranks 1, 2." in text and "no collectives were profiled" in text
    assert text.splitlines()[1].split() == ["0", "2.00", "?", "?", "?", "?"]


def test_syncs_of_some_ranks() -> None:
    sync = Sync(PLACE, "implicit", Hits(3))
    once = replace(sync, place=replace(PLACE, line=9), hits=Hits(0, 4))
    move = replace(sync, place=replace(PLACE, line=1), origin="module-move")
    everywhere = replace(sync, place=replace(PLACE, line=8))
    report = join_ranks([rank(0, 2, 4, 0, 2, sync, once, move, everywhere), rank(1, 2, 4, 0, 2, everywhere)])
    assert [(found.place, found.ranks) for found in report.uneven] == [(PLACE, (0,))]
    assert "Only rank 0 synchronizes: a.py:7  loss.item()\n" in ranks_text(report, Style(False))


def test_a_step_that_is_cut_off_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [rank(0, 2, 4, 0, 1), rank(1, 2, 4, 0, 6)]
    monkeypatch.setattr(module, "ACTIVITY_LIMIT", len(traces[0].of(Activity)))
    straggler = join_ranks(traces).straggler
    assert straggler is not None and straggler.compared == 2


def test_what_can_be_joined() -> None:
    alone = Trace(HEADER)
    two = [Trace(replace(HEADER, rank=number, world_size=2)) for number in range(2)]
    assert are_ranks(two) and not are_ranks(two[:1]) and not are_ranks([alone, alone])
    assert not are_ranks([two[0], two[0]]) and not are_ranks([])
    assert not are_ranks([two[0], Trace(replace(HEADER, rank=1, world_size=4))])
    with pytest.raises(ValueError, match="not the ranks of one run"):
        join_ranks([alone])


def test_the_names_of_collectives() -> None:
    assert is_collective(ALL_REDUCE) and is_collective("ncclKernel_AllGather_RING_LL_Sum_int8_t")
    assert not is_collective("void at::native::vectorized_elementwise_kernel<4>")


def recorded(kind: str) -> list[Trace]:
    return [read_trace(DATA / f"straggler-{kind}.rank{number}.jsonl.gz") for number in range(2)]


def test_a_slow_host_of_two_gpus() -> None:
    """Rank 1 reads its loss and then works 8 ms on the CPU, in each step."""
    report = join_ranks(recorded("host"))
    found = report.straggler
    assert found is not None and (found.rank, found.steps, found.compared) == (1, 3, 3)
    assert found.wait_ms == pytest.approx(10.4, abs=0.1) and found.more_idle_ms == pytest.approx(8.7, abs=0.1)
    assert found.cause == "sync" and found.place is not None and found.place.text == "loss.item()"
    assert [(sync.place.line, sync.ranks) for sync in report.uneven] == [(54, (1,))]


def test_a_gpu_of_two_with_more_to_do() -> None:
    """Three products of matrices more in each step of rank 0."""
    report = join_ranks(recorded("gpu"))
    found = report.straggler
    assert found is not None and (found.rank, found.cause, found.place) == (0, "", None)
    assert found.wait_ms == pytest.approx(9.5, abs=0.1) and found.more_work_ms == pytest.approx(6.9, abs=0.1)
    assert report.uneven == ()
