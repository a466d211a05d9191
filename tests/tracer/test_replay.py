"""What a step would take without a sync: profiles made up, and recorded on an H200 with torch 2.11."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from perflint.tracer.events import Place, SyncCost
from perflint.tracer.gaps import analyse
from perflint.tracer.kineto import sort_out, waits
from perflint.tracer.moments import moments_of
from perflint.tracer.replay import PLACE_LIMIT, savings
from tests.tracer.test_gaps import PLACES, Profile

DATA = Path(__file__).parent / "data"


def saved(profile: Profile, plain: float | None = None, handling: float = 0.0) -> dict[int, tuple[float, float]]:
    """By place, its share and what it saves alone, in microseconds per step."""
    found = savings(sort_out(profile.events), plain, handling)
    return {number: (round(saving.share, 1), round(saving.alone, 1)) for number, saving in found.items()}


def loop(step: float, count: int = 8) -> tuple[Profile, list[float]]:
    """A profile of steps, and when each starts."""
    starts = [number * step for number in range(count + 1)]
    profile = Profile()
    profile.steps(*starts)
    return profile, starts[:-1]


def test_a_drained_queue_costs_the_host_work_behind_it() -> None:
    """800 of work on the GPU, a wait, 200 on the host."""
    profile, starts = loop(1030)
    for start in starts:
        profile.kernel(start + 10, start + 20, 800)
        profile.sync(0, start + 30, start + 830)
    ((share, alone),) = saved(profile).values()
    assert share == alone == pytest.approx(1030 - 800, abs=3)


def test_a_wait_beside_a_full_queue_costs_nothing() -> None:
    """Each step waits for the work of the one before."""
    profile, starts = loop(1000)
    for start in starts:
        profile.kernel(start + 10, start + 900, 999)
        profile.sync(0, start + 20, start + 905)
    assert saved(profile)[0] == pytest.approx((0.0, 0.0), abs=2)


def test_two_waits_for_the_same_work_share_what_they_cost() -> None:
    """One less saves next to nothing, both less what comes after them."""
    profile, starts = loop(1030)
    for start in starts:
        profile.kernel(start + 10, start + 20, 800)
        profile.sync(0, start + 30, start + 825)
        profile.sync(1, start + 826, start + 830)
    found = saved(profile)
    assert found[0][0] == pytest.approx(115, abs=4) and found[1][0] == pytest.approx(115, abs=4)
    assert max(alone for _, alone in found.values()) < 10
    assert sum(share for share, _ in found.values()) == pytest.approx(230, abs=4)


def many_launches(read: bool) -> tuple[Profile, float]:
    """The host launches 20 pieces of work of 5 with 50 between, and reads a number in the middle, for 30."""
    profile, starts = loop(1060)
    for start in starts:
        for number in range(20):
            at = start + 50 * number + (60 if number >= 10 else 0)
            profile.kernel(at, at + 5, 5)
            profile.add("cpu_op", "aten::mul", at - 3)
        if read:
            profile.add("cpu_op", "aten::item", start + 510, 30)
        profile.sync(0, start + 520, start + 535)
    return profile, 1060.0


def test_a_read_goes_with_its_wait() -> None:
    """The host is the bottleneck, so all of the time that it takes to read counts, and no more."""
    profile, _ = many_launches(read=True)
    assert saved(profile)[0] == pytest.approx((30.0, 30.0), abs=0.5)
    without, _ = many_launches(read=False)
    assert saved(without)[0] == pytest.approx((15.0, 15.0), abs=0.5)


def test_what_the_profiler_costs_is_taken_out() -> None:
    """Without the profiler a step takes less than half as long, because events are recorded in the host's time."""
    profile, starts = loop(2000)
    for start in starts:
        profile.kernel(start + 10, start + 20, 600)
        profile.sync(0, start + 30, start + 630)
        for number in range(100):
            profile.add("cpu_op", "aten::view", start + 640 + 13 * number)
    ((inside, _),) = saved(profile).values()
    assert inside == pytest.approx(600, abs=5), "the host is the bottleneck, so a step saves the wait"
    ((outside, _),) = saved(profile, plain=1500).values()
    assert outside == pytest.approx(600, abs=8)
    ((outside, _),) = saved(profile, plain=900).values()
    assert outside == pytest.approx(900 - 600, abs=8), "then the GPU is the bottleneck"


def test_the_tracers_own_work_is_left_out() -> None:
    profile, starts = loop(1230)
    for start in starts:
        profile.kernel(start + 10, start + 20, 800)
        profile.sync(0, start + 30, start + 830)
        profile.add("user_annotation", "perflint:own", start + 830, 200)
    ((share, _),) = saved(profile).values()
    assert share == pytest.approx(230, abs=3)


def test_another_thread_that_goes_on_meanwhile_is_not_held_up() -> None:
    """A thread of its own waits for copies of its own, while this one launches."""
    profile, starts = loop(1000)
    for start in starts:
        for number in range(4):
            profile.kernel(start + 10 + 250 * number, start + 20 + 250 * number, 100)
        profile.kernel(start + 5, start + 30, 600, stream=9)
        profile.events[-2]["tid"] = 2
        profile.sync(None, start + 40, start + 640)
        profile.add("user_annotation", "perflint:sync:0", start + 641)
        for event in profile.events[-2:]:
            event["tid"] = 2
    assert saved(profile)[0] == pytest.approx((0.0, 0.0), abs=1)


def test_work_that_waits_for_another_stream() -> None:
    """The main stream goes on when the other one's work has ended, which is no delay of the launch."""
    profile, starts = loop(1230)
    for start in starts:
        profile.kernel(start + 10, start + 20, 500, stream=9)
        profile.kernel(start + 12, start + 521, 300)
        profile.sync(0, start + 30, start + 825)
    events = sort_out(profile.events)
    runs = [run for moment in moments_of(events, waits(events)) for run in moment.runs if run.stream == 7]
    assert {(run.after, run.delay) for run in runs} == {(1, 10.0)}
    ((share, _),) = saved(profile).values()
    assert share == pytest.approx(1230 - 501, abs=3), "the next step's work on the other stream need not wait"


def test_many_places_are_divided_by_what_they_waited() -> None:
    profile, starts = loop(4000, 5)
    count = PLACE_LIMIT + 4
    for start in starts:
        for number in range(count):
            at = start + 150 * number
            profile.kernel(at, at + 5, 100)
            profile.sync(number, at + 10, at + 110)
    found = saved(profile)
    assert len(found) == count
    assert sum(share for share, _ in found.values()) == pytest.approx(100 * count, rel=0.05)


def test_too_few_steps_and_no_syncs() -> None:
    profile = Profile()
    profile.steps(0, 10, 20)
    assert saved(profile) == {}
    profile, starts = loop(100)
    for start in starts:
        profile.kernel(start + 10, start + 20, 30)
    assert saved(profile) == {}


def test_costs_become_records() -> None:
    profile, starts = loop(1030)
    for start in starts:
        profile.kernel(start + 10, start + 20, 800)
        profile.sync(1, start + 30, start + 830)
    (cost,) = analyse(profile.events, PLACES, 1.03, 5.0).costs
    assert isinstance(cost, SyncCost) and cost.place == PLACES[1]
    assert cost.ms == pytest.approx(0.225, abs=0.01)


def recorded(name: str, plain_ms: float, handling_us: float = 25.0) -> dict[str, tuple[float, float]]:
    """The costs of a recorded profile by the name of the plant, in milliseconds."""
    document = json.loads(gzip.decompress((DATA / f"{name}.replay.json.gz").read_bytes()))
    keys = ("tid", "ts", "dur", "correlation", "stream")
    events: list[dict[str, Any]] = []
    for number, *row in document["rows"]:
        category, text = document["names"][number]
        values = dict(zip(keys, row, strict=True))
        arguments = {key: values.pop(key) for key in ("correlation", "stream")}
        events.append({"ph": "X", "cat": category, "name": text, "args": arguments, **values})
    places = [Place("planted.py", number, 1, number, 9, "step", text) for number, text in enumerate(document["places"])]
    costs = analyse(events, places, plain_ms, handling_us).costs
    return {cost.place.text.partition("plant: ")[2]: (cost.ms, cost.alone_ms) for cost in costs}


def test_many_launches_after_a_sync() -> None:
    """A step of 11.28 ms, which takes 8.80 ms without the sync; with the profiler it takes 13.4 ms."""
    assert recorded("then-launches", 11.28)["item"][0] == pytest.approx(11.28 - 8.80, rel=0.1)


def test_three_syncs_each_before_work_of_its_own() -> None:
    """Without the one or the other a step of 22.46 ms takes 21.35, 20.33 and 19.29 ms, without all 16.19 ms."""
    found = recorded("several", 22.46)
    assert {name: share for name, (share, _) in found.items()} == pytest.approx(
        {"first": 1.11, "second": 2.13, "third": 3.17}, rel=0.1
    )
    assert sum(share for share, _ in found.values()) == pytest.approx(22.46 - 16.19, rel=0.05)


def test_two_syncs_one_after_the_other() -> None:
    """Without one of them a step of 13.95 ms takes 13.90 ms, without both 10.81 ms."""
    found = recorded("adjacent", 13.95)
    assert sum(share for share, _ in found.values()) == pytest.approx(13.95 - 10.81, rel=0.1)
    assert all(alone < 0.15 for _, alone in found.values())


def test_eighty_reads_where_the_gpu_waits_for_the_host_anyhow() -> None:
    """A step of 4.18 ms (4.25 ms traced, 7.4 ms profiled) takes 3.33 ms without them."""
    assert recorded("launch-bound", 4.2524, 3.4)["item"][0] == pytest.approx(4.18 - 3.33, rel=0.15)
