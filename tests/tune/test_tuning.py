"""The search: the order of changes, what is kept, and what is compared, with runs that never ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from xml.etree import ElementTree

import pytest

from perflint.frozen import replace
from perflint.output.terminal import Style
from perflint.output.tune import tuning_text
from perflint.output.tune_page import tuning_page
from perflint.tracer.sketch import Sketch
from perflint.tracer.steps import StepSource
from perflint.tune.changes import LOADER, Change, Texts
from perflint.tune.evidence import Evidence
from perflint.tune.proof import Kind, compared
from perflint.tune.refused import Refused
from perflint.tune.tuning import Outcome, Tuning, Way
from perflint.verify.execution import Run
from perflint.verify.states import States
from perflint.verify.stopping import TIME_SPENT, Stopped
from tests.verify.runs import run

LOSSES = [2.0, 1.0, 0.5]
LOOK = {"calls": [], "steps": [["a.py", 3, 9]], "loaders": [], "busy_ms": 4.0}


def program(ms: float, factor: float = 1.0, final: int = 1, status: int = 0) -> Run:
    done = run([loss * factor for loss in LOSSES], times=[ms, ms + 1.0], status=status)
    assert done.seen is not None
    states = States(final={"parameter fc": Sketch(1, final, (1.0,))})
    return replace(done, seen=replace(done.seen, look=LOOK, states=states))


class Programs:
    """A program whose file holds the names of its changes."""

    def __init__(self, **ms: float) -> None:
        self.ms = ms
        self.other: dict[str, float] = {}
        self.fails: set[str] = set()
        self.graphs_differ = False
        self.runs: list[str] = []
        self.most = 100

    def run(self, texts: Mapping[str, str], way: Way) -> Run:
        text = texts.get("a.py", "")
        if len(self.runs) == self.most:
            raise Stopped("the budget is spent", 1)
        self.runs.append(text + {Way.PLAIN: "", Way.RESEEDED: "!", Way.DETERMINISTIC: "="}[way])
        names = [name for name in text.replace("(eager)", "").split("+") if name]
        ms = 10.0 + sum(self.ms[name] for name in names)
        factor = 1.0
        for name in names:
            factor *= self.other.get(name, 1.0)
        if way is Way.RESEEDED:
            factor = 1.0
        final = 2 if self.graphs_differ and "(eager)" in text else 1
        return program(ms, factor, final, status=1 if self.fails & set(names) else 0)

    def search(self, *changes: Change, inexact: bool = False) -> Outcome:
        tuning = Tuning(self.run, lambda _: "", 2, 0.05, inexact)
        self.outcome = tuning.outcome
        tuning.start()
        return tuning.search(changes)


def change(name: str, forecast: float = 0.5, clears: bool = False, needs: str = "", graph: bool = False) -> Change:
    def write(texts: Texts, evidence: Evidence) -> dict[str, str]:
        if needs not in texts["a.py"]:
            raise Refused(f"it needs {needs}", 1)
        return {"a.py": f"{texts['a.py']}+{name}"}

    eager: Callable[[str], str] | None = (lambda text: f"{text}(eager)") if graph else None
    return Change(name, name, write, lambda _: forecast, clears, eager)


def names(outcome: Outcome) -> list[str]:
    return [each.change.name for each in outcome.kept]


def test_the_best_forecast_is_first_and_gains_add_up() -> None:
    programs = Programs(a=-2.0, b=-4.0)
    outcome = programs.search(change("a", 0.1), change("b", 0.9))
    assert names(outcome) == ["b", "a"] and outcome.texts == {"a.py": "+b+a"}
    assert programs.runs == ["", "+b", "", "+b", "+b+a", "+b", "+b+a"]
    assert [each.proof.kind for each in outcome.kept if each.proof is not None] == [Kind.IDENTICAL] * 2


def test_what_does_not_pay_is_not_kept() -> None:
    outcome = Programs(a=1.0, b=-0.1).search(change("a"), change("b", 0.4))
    assert not names(outcome) and not outcome.texts
    assert [each.reason for each in outcome.trials] == [
        "a step takes 1.10 times as long",
        "no gain beyond the spread: 1.01 ×",
    ]


def test_what_could_save_nearly_nothing_is_not_run() -> None:
    programs = Programs(a=-5.0, b=-1.0)
    outcome = programs.search(change("a", 0.01), change("b", 0.03))
    assert names(outcome) == ["b"] and outcome.refused == {"a": "it could save 1.0% of a step at most"}


def test_a_change_that_fails() -> None:
    programs = Programs(a=-5.0)
    programs.fails = {"a"}
    (trial,) = programs.search(change("a")).trials
    assert not trial.kept and trial.reason.startswith("the program failed with status 1")


def test_one_that_clears_the_way_for_another() -> None:
    programs = Programs(fixes=0.0, graph=-5.0)
    both = change("graph", needs="fixes"), change("fixes", clears=True)
    assert names(programs.search(*both)) == ["fixes", "graph"]
    alone = Programs(fixes=0.0).search(both[1])
    assert not names(alone) and not alone.texts


def test_numbers_that_change_need_permission() -> None:
    programs = Programs(a=-5.0)
    programs.other = {"a": 1.5}
    outcome = programs.search(change("a"))
    assert not names(outcome) and "+" not in "".join(outcome.texts) and "!" in "".join(programs.runs)
    inexact = replace(change("a"), is_inexact=True)
    assert not names(programs.search(inexact)) and not names(programs.search(change("a"), inexact=True))
    assert names(programs.search(inexact, inexact=True)) == ["a"]
    programs.other = {"a": inf}
    assert not names(programs.search(inexact, inexact=True))


def test_rounding_is_a_class_of_its_own() -> None:
    programs = Programs(a=-5.0)
    programs.other = {"a": 1.0001}
    (trial,) = programs.search(change("a")).kept
    assert trial.proof is not None and trial.proof.kind is Kind.ROUNDING
    assert trial.proof.text.startswith("loss 1 is ")


@pytest.mark.parametrize("draws", [False, True])
def test_gradients_count_only_if_the_same_random_numbers_were_drawn(draws: bool) -> None:
    def states(gradient: float, random: str) -> States:
        start, generators = {"parameter fc": Sketch(1, 1, (1.0,))}, {"torch": random}
        return States(start, {"parameter fc": Sketch(1, int(gradient), (gradient,))}, start, generators, generators)

    def made(factor: float, state: States) -> Run:
        done = program(10.0, factor)
        assert done.seen is not None
        return replace(done, seen=replace(done.seen, states=state))

    before, seeds = made(1.0, states(1.0, "a")), made(1.02, states(3.0, "b"))
    after = made(1.01, states(2.0, "c" if draws else "a"))
    proof = compared([before], after, 0.05, lambda: seeds)
    assert proof.kind is (Kind.RANDOM if draws else Kind.OTHER)
    assert ("first gradients" in proof.text) is False
    assert ("the gradients of the first step change by" in proof.text) is not draws


def test_graphs_are_held_against_their_eager_steps_bit_for_bit() -> None:
    programs = Programs(a=-5.0)
    assert names(programs.search(change("a", graph=True))) == ["a"]
    assert programs.runs[-2:] == ["+a=", "+a(eager)="]
    programs.graphs_differ = True
    (trial,) = programs.search(change("a", graph=True)).trials
    assert not trial.kept and trial.reason.startswith("its graph does not compute what its eager steps do: the final")


@pytest.mark.parametrize(
    ("factors", "finals", "is_kept"),
    [
        ((1.0, 1.0 + 1e-7, 1.0 - 1e-7), (1, 1, 1), True),
        ((1.0, 1.0 + 1e-7, 1.0 - 1e-7), (1, 1, 2), False),
        ((1.0, 1.0 + 1e-7, 1.0 - 1e-7), (2, 1, 1), False),
        ((1.001, 1.0, 1.0 - 1e-7), (1, 1, 1), False),
        ((1.0, 1.0, 1.0), (2, 1, 3), False),
    ],
)
def test_losses_of_graphs_may_vary_as_those_of_eager_steps_do_if_the_state_is_the_same(
    factors: tuple[float, ...], finals: tuple[int, ...], is_kept: bool
) -> None:
    programs = Programs(a=-5.0)
    made = iter(zip(factors, finals, strict=True))

    def ran(texts: Mapping[str, str], way: Way) -> Run:
        done = programs.run(texts, way)
        return program(5.0, *next(made)) if way is Way.DETERMINISTIC else done

    tuning = Tuning(ran, lambda _: "", 2, 0.05, (Kind.IDENTICAL,))
    tuning.start()
    (trial,) = tuning.search([change("a", graph=True)]).trials
    assert trial.kept is is_kept and next(made, None) is None
    if not is_kept:
        assert trial.reason.startswith("with deterministic kernels, too, runs of its eager steps differ")
    else:
        assert trial.proof is not None and trial.proof.text.endswith("whose losses vary from run to run")


def test_a_program_without_steps_is_an_error() -> None:
    tuning = Tuning(lambda *_: run(times=[]), lambda _: "", 2, 0.05, [])
    with pytest.raises(Refused, match="no steps of the program were timed"):
        tuning.start()


def test_the_report() -> None:
    outcome = Programs(a=-5.0, b=2.0).search(change("a"), change("b", 0.1), change("c", needs="x"))
    assert tuning_text(outcome, Style(False)).splitlines() == [
        "perflint tune: 1.91 × as fast: a step takes 5.500 ms, not 10.500 ms",
        "In the original the GPU works 38% of a step, and 0% of it wait for batches.",
        "Means of 2 steps after warm-up, on the clock of the CPU, torch 2.13.",
        "Kept:",
        "  a: a, 1.91 ×",
        "    ms/step 10.500–10.500 before, 5.500–5.500 after",
        "    whole run 3.0 s before, 3.0 s after",
        "    identical: 3 losses, the final parameters, buffers and optimizer state are equal",
        "Not kept:",
        "  b: b, 0.73 ×",
        "    ms/step 5.500–5.500 before, 7.500 after",
        "    whole run 3.0 s before, 3.0 s after",
        "    a step takes 1.36 times as long",
        "Not tried:",
        "  c: it needs x",
    ]
    assert "stopped: interrupted. This is the best so far." in tuning_text(outcome, Style(False), "interrupted")


def test_the_page() -> None:
    outcome = Programs(a=-5.0, b=2.0).search(change("a"), change("b", 0.1), change("c", needs="x"))
    page = tuning_page(outcome, ["python", "train.py"], "+a <b>\n", "1.0", "interrupted")
    root = ElementTree.fromstring(page.partition("\n")[2] if page.startswith("<!") else page)
    shown = " ".join("".join(root.itertext()).split())
    for part in (
        "1.91 × as fast: a step takes 5.500 ms, not 10.500 ms",
        "The search was stopped: interrupted. This is the best so far.",
        "identical: 3 losses",
        "a step takes 1.36 times as long",
        "it needs x",
        "+a <b>",
    ):
        assert part in shown


def test_what_clears_the_way_is_run_once_until_it_is_all_that_is_kept() -> None:
    programs = Programs(f=-3.0, g=-4.0)
    outcome = programs.search(change("f", clears=True), change("g", needs="f"))
    assert programs.runs == ["", "+f", "+f+g", "+f", "+f+g"] and names(outcome) == ["f", "g"]
    programs = Programs(f=-3.0)
    assert names(programs.search(change("f", clears=True))) == ["f"] and programs.runs == ["", "+f", "", "+f"]


def test_a_search_that_is_stopped_leaves_no_patch_that_only_cleared_the_way() -> None:
    programs = Programs(f=0.0, g=-4.0)
    programs.most = 3
    with pytest.raises(Stopped):
        programs.search(change("f", clears=True), change("g", needs="f"))
    assert not programs.outcome.texts and [each.kept for each in programs.outcome.trials] == [False]


def test_a_failure_is_told_though_nothing_is_kept() -> None:
    programs = Programs(f=0.0, g=-4.0)
    programs.fails = {"g"}
    outcome = programs.search(change("f", clears=True), change("g", needs="f"))
    assert not names(outcome)
    assert [each.reason.partition(":")[0] for each in outcome.trials] == [
        "no gain beyond the spread",
        "the program failed with status 1",
    ]


def test_a_change_of_one_place_is_tried_again_on_the_next_one() -> None:
    programs = Programs(a=-3.0)
    outcome = programs.search(replace(change("a"), again=True))
    assert names(outcome) == ["a", "a", "a"] and [each.kept for each in outcome.trials] == [True] * 3 + [False]


def scripted(
    before: list[list[float]], after: list[list[float]], clears: bool = False, repeat: int = 2
) -> tuple[Outcome, int]:
    """The search for one change whose runs, and those of the original, take these times; and the runs with it."""
    left = {"": [*before], "+a": [*after]}

    def ran(texts: Mapping[str, str], way: Way) -> Run:
        times = left[texts.get("a.py", "")].pop(0) if way is Way.PLAIN else before[0]
        done = run(LOSSES, times=times)
        assert done.seen is not None
        return replace(done, seen=replace(done.seen, look=LOOK))

    tuning = Tuning(ran, lambda _: "", repeat, 0.05, (Kind.IDENTICAL, Kind.ROUNDING))
    tuning.start()
    return tuning.search([change("a", clears=clears)]), len(after) - len(left["+a"])


def test_a_gain_that_chance_may_explain_needs_more_pairs() -> None:
    slow, usual, fast = [15.0, 15.2], [9.0, 9.2], [8.0, 8.2]
    outcome, count = scripted([slow, usual, fast, fast], [fast, fast, fast, fast])
    assert not names(outcome) and count == 3
    outcome, count = scripted([slow, usual, usual, usual], [fast, fast, fast, fast])
    assert names(outcome) == ["a"] and count == 4
    outcome, count = scripted([[9.1], usual], [fast, fast])
    assert names(outcome) == ["a"] and count == 2


def test_one_of_six_runs_may_be_slow() -> None:
    slow, usual, fast = [11.0], [10.0], [7.0]
    outcome, count = scripted([usual] * 6, [fast, slow, *[fast] * 4], repeat=3)
    assert names(outcome) == ["a"] and count == 6
    outcome, count = scripted([usual] * 6, [fast, slow, fast, slow, fast, fast], repeat=3)
    assert not names(outcome) and count == 4 and outcome.trials[0].reason == "no gain beyond the spread: 1.11 ×"
    outcome, count = scripted([usual] * 4, [fast, slow, fast, fast])
    assert not names(outcome) and count == 2


@pytest.mark.parametrize(("status", "count"), [(TIME_SPENT, 1), (130, 0)])
def test_pairs_that_were_to_exclude_chance_count_though_the_time_is_spent(status: int, count: int) -> None:
    slow, usual, fast = 15.0, 9.0, 8.0
    left = {"": [slow, usual, usual], "+a": [fast, fast]}

    def ran(texts: Mapping[str, str], way: Way) -> Run:
        if not left[texts.get("a.py", "")]:
            raise Stopped("the budget is spent", status)
        return program(left[texts.get("a.py", "")].pop(0))

    tuning = Tuning(ran, lambda _: "", 2, 0.05, (Kind.IDENTICAL,))
    tuning.start()
    with suppress(Stopped):
        tuning.search([change("a")])
    assert len(tuning.outcome.trials) == count


def test_what_saves_little_is_not_tried_before_what_takes_minutes() -> None:
    programs = Programs(a=1.0, b=1.0, c=1.0)
    programs.search(change("a", 0.09), replace(change("b", 0.4), is_slow=True), change("c", 0.1))
    assert [each for each in programs.runs if each] == ["+c", "+b", "+a"]


def loaded(share: float) -> Run:
    """A run whose steps wait so long for a loader in line 1."""
    done = program(10.0)
    assert done.seen is not None
    return replace(done, seen=replace(done.seen, look={**LOOK, "loaders": [["a.py", 1, 0, share]]}))


@pytest.mark.parametrize("waits", [0.6, 0.2])
def test_a_change_that_only_makes_steps_wait_longer_is_tried_with_the_loader(waits: float) -> None:
    runs: list[str] = []
    with_graph, whole = "import torch\nloader = DataLoader(x)\ngraph\n", "num_workers="

    def ran(texts: Mapping[str, str], way: Way) -> Run:
        text = texts.get("a.py", "")
        runs.append(text)
        if whole in text:
            return program(4.0)
        return loaded(waits if "graph" in text else 0.3)

    loader = replace(LOADER, write=lambda texts, _: {"a.py": texts["a.py"] + whole})
    graph = replace(change("graph"), write=lambda *_: {"a.py": with_graph}, beside=loader)
    tuning = Tuning(ran, lambda _: "", 2, 0.05, (Kind.IDENTICAL, Kind.ROUNDING))
    tuning.start()
    outcome = tuning.search([graph])
    if waits > 0.3:
        assert names(outcome) == ["graph and loader"] and outcome.texts == {"a.py": with_graph + whole}
        assert outcome.kept[0].change.title == "graph, and batches are prepared by worker processes"
    else:
        assert not names(outcome) and whole not in "".join(runs)


def test_without_any_result_nothing_is_proved() -> None:
    proof = compared([run()], run(), 0.05, run)
    assert (proof.kind, proof.text.partition(",")[0]) == (
        Kind.OTHER,
        "the program has no losses and calls no model in its first steps",
    )
    one, other = (calling(*LOSSES), calling(2.0, 1.0, 0.501))
    assert compared([one], one, 0.05, run).text == "3 results are equal"
    assert compared([one], other, 0.05, run).text.startswith("result 3 is 0.501 instead of 0.5; results stay")


def calling(*results: float) -> Run:
    """A run of a program that only calls a model."""
    done = run(results)
    assert done.seen is not None
    return replace(done, seen=replace(done.seen, source=int(StepSource.MODULE)))


def test_steps_that_stall_by_chance_are_no_reason_against_a_change() -> None:
    calm, stalled = [10.0] * 9 + [20.0], [8.0] * 9 + [60.0]
    outcome, count = scripted([calm] * 4, [stalled] + [[8.0] * 10] * 3)
    assert count == 2 and "no gain beyond the spread" in outcome.trials[0].reason
    outcome, count = scripted([calm], [[12.0] * 9 + [30.0]])
    assert count == 1 and outcome.trials[0].reason == "a step takes 1.25 times as long"
    outcome, count = scripted([calm, calm], [stalled, stalled], clears=True)
    assert count == 2 and outcome.trials[0].reason == "a step takes 1.20 times as long"


def test_a_change_that_hides_the_steps() -> None:
    outcome, _ = scripted([[10.0]], [[]])
    assert not names(outcome) and outcome.trials[0].reason == "none of its steps were seen"


def test_parts_are_tried_where_the_whole_fails() -> None:
    programs = Programs(f=0.0, a=-1.0, b=-1.0, g=-5.0)
    programs.fails = {"f"}
    whole = replace(change("f", clears=True), parts=lambda: [change("a", clears=True), change("b", clears=True)])
    outcome = programs.search(whole, change("g"))
    assert names(outcome) == ["a", "b", "g"] and programs.runs[:4] == ["", "+f", "+a", "+a+b"]
    programs.fails = set()
    programs.other = {"f": 1.5, "b": 1.5}
    programs.runs.clear()
    assert names(programs.search(whole)) == ["a"] and programs.runs == ["", "+f", "!", "+a", "+a+b", "", "+a"]
    programs.other = {}
    assert names(programs.search(replace(whole, clears=False))) == []


@pytest.mark.parametrize("grows", [False, True])
def test_what_gained_nothing_is_tried_again_where_it_promises_more(grows: bool) -> None:
    programs = Programs(a=-5.0, b=-4.0)
    tried: list[float] = []

    def forecast(evidence: Evidence) -> float:
        return (9.0 if grows else 0.6) if evidence.step_ms < 8 else 0.6

    def write(texts: Texts, evidence: Evidence) -> dict[str, str]:
        tried.append(evidence.step_ms)
        return {"a.py": texts["a.py"] + ("+b" if "a" in texts["a.py"] else "+c")}

    programs.ms["c"] = 0.5
    outcome = programs.search(replace(change("b"), write=write, forecast=forecast), change("a", 0.5))
    assert names(outcome) == (["a", "b"] if grows else ["a"]) and len(tried) == 1 + grows


def test_parts_are_tried_where_a_graph_is_not_proved() -> None:
    programs = Programs(a=-5.0, b=-4.0)
    programs.graphs_differ = True
    part = change("b")
    outcome = programs.search(replace(change("a", graph=True), parts=lambda: [part]))
    assert names(outcome) == ["b"] and "does not compute" in outcome.trials[0].reason


def test_another_form_is_learned_from_a_failure() -> None:
    programs = Programs(a=-5.0, b=-4.0)
    programs.fails = {"a"}
    texts: list[Texts] = []

    def learn(told: str, known: Texts, tried: Texts) -> list[Change]:
        texts.extend([known, tried])
        return [change("b")]

    outcome = programs.search(replace(change("a"), learn=learn))
    assert names(outcome) == ["b"] and texts == [{"a.py": ""}, {"a.py": "+a"}]


def test_several_that_clear_the_way_are_compared_with_the_original_together() -> None:
    programs = Programs(a=-0.3, b=-0.3)
    outcome = programs.search(change("a", clears=True), change("b", clears=True))
    assert names(outcome) == ["a", "b"] and programs.runs == ["", "+a", "+a+b", "", "+a+b"]
    idle = Programs(a=0.0, b=0.0).search(change("a", clears=True), change("b", clears=True))
    assert not names(idle) and not idle.texts


def test_what_is_kept_is_told_at_once() -> None:
    told: list[list[str]] = []
    programs = Programs(a=-3.0, b=-2.0)
    Tuning(programs.run, lambda _: "", 2, 0.05, tuple(Kind), lambda outcome: told.append(names(outcome))).start()
    tuning = Tuning(programs.run, lambda _: "", 2, 0.05, tuple(Kind), lambda outcome: told.append(names(outcome)))
    tuning.start()
    tuning.search([change("a"), change("b")])
    assert told == [["a"], ["a", "b"]]
