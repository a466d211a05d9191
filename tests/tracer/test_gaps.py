"""Whose fault idle time is, from events as Kineto writes them."""

from __future__ import annotations

from typing import Any

import pytest

from perflint.tracer import gaps as module
from perflint.tracer.events import Gap, Idle, Place
from perflint.tracer.gaps import Analysis, analyse
from perflint.tracer.kineto import Interval, merged

PLACES = [Place("a.py", line, 1, line, 9, "f", "x.item()") for line in (10, 20)]
Event = dict[str, Any]


class Profile:
    """Builds events. The host is on thread 1, times are in microseconds."""

    def __init__(self) -> None:
        self.events: list[Event] = [{"ph": "M", "name": "process_name"}, {"ph": "i", "name": "x", "ts": 1}]
        self._correlation = 0

    def add(self, category: str, name: str, start: float, length: float = 1.0, **arguments: object) -> None:
        event = {"ph": "X", "cat": category, "name": name, "ts": start, "dur": length, "tid": 1, "args": arguments}
        self.events.append(event)

    def kernel(self, launched: float, start: float, length: float, stream: int = 7) -> None:
        self._correlation += 1
        self.add("cuda_runtime", "cudaLaunchKernel", launched, 2, correlation=self._correlation)
        self.add("kernel", "gemm", start, length, correlation=self._correlation, stream=stream)

    def sync(self, place: int | None, start: float, end: float, name: str = "cudaStreamSynchronize") -> None:
        self._correlation += 1
        self.add("cuda_runtime", name, start, end - start, correlation=self._correlation)
        if place is not None:
            self.add("user_annotation", f"perflint:sync:{place}", end + 1)

    def steps(self, *starts: float) -> None:
        for index, start in enumerate(starts[:-1]):
            self.add("user_annotation", f"perflint:step:{index}", start)
            self.add("gpu_user_annotation", f"perflint:step:{index}", start)
        self.add("user_annotation", "perflint:end", starts[-1])

    def analysis(self) -> Analysis:
        return analyse(self.events, PLACES)


def rows(analysis: Analysis) -> list[tuple[int, str, int | None, float, float]]:
    """Step, cause, line, milliseconds of the first gap, cost."""
    return sorted(
        ((gap.step, gap.cause, gap.place.line if gap.place else None, gap.ms, gap.cost_ms) for gap in analysis.gaps),
        key=str,
    )


def test_a_sync_that_drains_the_queue_costs_what_follows_it() -> None:
    """Each step: 800 of work, a wait, then 150 of host work before the next launch."""
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    for start in (0, 1000, 2000, 3000):
        profile.kernel(start + 10, start + 20, 800)
        profile.sync(0, start + 30, start + 830)
    analysis = profile.analysis()
    assert [(step.index, step.ms, step.busy_ms, step.idle_ms) for step in analysis.steps] == [
        (1, 1.0, 0.8, 0.2),
        (2, 1.0, 0.8, 0.2),
    ]
    assert rows(analysis) == [(1, "sync", 10, 0.2, 0.2), (2, "sync", 10, 0.2, 0.2)]
    (kernel,) = analysis.kernels
    assert (kernel.name, kernel.count, kernel.ms) == ("gemm", 2, 1.6)
    assert [activity.start_us for activity in analysis.activities] == [0, 1000]
    assert analysis.idles == (Idle(1, 800, 200, "sync", PLACES[0]), Idle(2, 1800, 200, "sync", PLACES[0]))


def test_a_sync_beside_a_full_queue_costs_nothing() -> None:
    """Another stream's result is waited for while the main one has work for long."""
    profile = Profile()
    profile.steps(0, 100, 200, 300, 400)
    for number in range(4):
        profile.kernel(number * 100 + 10, 50 + number * 1000, 1000)
        profile.kernel(number * 100 + 20, number * 100 + 30, 10, stream=8)
        profile.sync(0, number * 100 + 40, number * 100 + 45)
    assert [row for row in rows(profile.analysis()) if row[4]] == []


def test_a_step_on_the_gpu_is_what_it_launched() -> None:
    """The host is far ahead: its steps take 100, those of the GPU 1000."""
    profile = Profile()
    profile.steps(0, 100, 200, 300, 400)
    for number in range(4):
        profile.kernel(number * 100 + 10, 50 + number * 1000, 900)
    analysis = profile.analysis()
    assert [(step.ms, step.busy_ms, step.kernels) for step in analysis.steps] == [(1.0, 0.9, 1)] * 2
    assert rows(analysis) == [(1, "host", None, 0.1, 0.1), (2, "host", None, 0.1, 0.1)]


def test_a_wait_shorter_than_the_gap_costs_no_more_than_itself() -> None:
    """The GPU was idle before: the host is too slow with or without the sync."""
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    for start in (0, 1000, 2000, 3000):
        profile.kernel(start + 10, start + 20, 30)
        profile.sync(0, start + 500, start + 505)
    assert [(cause, cost) for _, cause, _, _, cost in rows(profile.analysis())] == [("sync", 0.005)] * 2


def test_catching_up_belongs_to_the_sync() -> None:
    """After a long wait the queue is empty, and small kernels come one by one until the next wait."""
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    for start in (0, 1000, 2000, 3000):
        profile.kernel(start + 10, start + 20, 500)
        profile.sync(1, start + 30, start + 530)
        for number in range(4):
            profile.kernel(start + 560 + number * 50, start + 570 + number * 50, 10)
    first = next(gap for gap in profile.analysis().gaps if gap.cause == "sync")
    assert (first.place, first.ms, first.behind_ms, first.blocked_ms) == (PLACES[1], 0.05, 0.41, 0.5)
    assert first.cost_ms == pytest.approx(0.46)


def test_two_syncs_in_one_gap_share_it_not() -> None:
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    for start in (0, 1000, 2000, 3000):
        profile.kernel(start + 10, start + 20, 500)
        profile.sync(0, start + 30, start + 530)
        profile.sync(1, start + 540, start + 541)
    assert [(line, ms) for step, _, line, ms, _ in rows(profile.analysis()) if step == 1] == [(10, 0.5), (20, 0.0)]


def test_marks_of_one_call_follow_all_its_waits() -> None:
    """torch warns when a call returns: two marks then stand after two waits."""
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    for start in (0, 1000, 2000, 3000):
        profile.kernel(start + 10, start + 20, 500)
        profile.sync(None, start + 30, start + 530)
        profile.kernel(start + 540, start + 545, 100)
        profile.sync(None, start + 550, start + 650)
        profile.add("user_annotation", "perflint:sync:0", start + 652)
        profile.add("user_annotation", "perflint:sync:1", start + 655)
    blocked = {(gap.place.line if gap.place else None): gap.blocked_ms for gap in profile.analysis().gaps}
    assert blocked == {10: 0.5, 20: 0.1}


def test_waits_of_nobody_and_of_other_threads() -> None:
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    for start in (0, 1000, 2000, 3000):
        profile.kernel(start + 10, start + 20, 500)
        profile.sync(None, start + 30, start + 530, "cudaDeviceSynchronize")
        profile.events[-1]["tid"] = 2
    assert rows(profile.analysis())[0] == (1, "sync", None, 0.5, 0.5)


def test_a_mark_without_a_wait_counts_all_the_same() -> None:
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    for start in (0, 1000, 2000, 3000):
        profile.kernel(start + 10, start + 20, 500)
        profile.add("user_annotation", "perflint:sync:0", start + 530)
    gaps = profile.analysis().gaps
    assert [(gap.count, gap.ms, gap.cost_ms) for gap in gaps] == [(1, 0.5, 0.0)] * 2


def test_waits_of_the_backward_pass() -> None:
    """Autograd's own thread waits twice; that of the program warns of it when `backward` returns."""
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    for start in (0, 1000, 2000, 3000):
        profile.kernel(start + 10, start + 20, 500)
        for at, end in ((30, 530), (540, 560)):
            profile.sync(None, start + at, start + end)
            profile.events[-1]["tid"] = 2
        for place in (0, 1):
            profile.add("user_annotation", f"perflint:sync:{place}", start + 600 + place)
    blocked = [(gap.step, gap.place, gap.blocked_ms) for gap in profile.analysis().gaps if gap.cause == "sync"]
    assert blocked == [(step, place, ms) for step in (1, 2) for place, ms in zip(PLACES, (0.5, 0.02), strict=True)]


def test_a_copy_of_pageable_memory_blocks_before_the_wait() -> None:
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    for start in (0, 1000, 2000, 3000):
        profile.kernel(start + 10, start + 20, 500)
        profile.add("cuda_runtime", "cudaMemcpyAsync", start + 30, 490)
        profile.sync(0, start + 521, start + 530)
    assert profile.analysis().gaps[0].blocked_ms == 0.5


def test_freeing_waits() -> None:
    """`empty_cache` frees three segments, of which the first waits for the work."""
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    for start in (0, 1000, 2000, 3000):
        profile.kernel(start + 10, start + 20, 500)
        for at, end in ((30, 530), (535, 545), (550, 560)):
            profile.sync(None, start + at, start + end, "cudaFree")
        profile.add("user_annotation", "perflint:sync:1", start + 565)
    assert [(gap.place, gap.count, gap.blocked_ms) for gap in profile.analysis().gaps] == [(PLACES[1], 1, 0.53)] * 2


def test_the_loader_is_named() -> None:
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    for start in (0, 1000, 2000, 3000):
        profile.add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start + 600, 390)
        profile.kernel(start + 1000, start + 1010, 500)
    assert rows(profile.analysis()) == [(1, "loader", None, 0.5, 0.5), (2, "loader", None, 0.5, 0.5)]


@pytest.mark.parametrize("starts", [(), (0,), (0, 1, 2)])
def test_too_few_steps_say_nothing(starts: tuple[float, ...]) -> None:
    profile = Profile()
    if starts:
        profile.steps(*starts)
    assert profile.analysis() == Analysis()


def test_steps_without_work() -> None:
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000, 4000)
    assert [(step.ms, step.idle_ms) for step in profile.analysis().steps] == [(1.0, 1.0)] * 2


def test_union() -> None:
    intervals = [Interval(0, 5), Interval(1, 2), Interval(4, 8), Interval(9, 10)]
    assert merged(intervals) == [Interval(0, 8), Interval(9, 10)]


def test_the_cost_of_a_gap_without_a_sync_is_its_length() -> None:
    assert Gap(0, "loader", None, 1, 2.5).cost_ms == 2.5


def test_only_the_longest_idle_stretches_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_LIMIT", 2)
    profile = Profile()
    profile.steps(0, 1000, 2000, 3000)
    for start in (0, 1000, 2000):
        for at in (20, 120, 420, 620):
            profile.kernel(start + at - 10, start + at, 50)
    assert [(piece.start_us, piece.us) for piece in profile.analysis().idles] == [(150, 250), (650, 350)]
