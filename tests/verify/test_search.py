"""Which fixes are kept, and how many runs it takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from perflint.findings import Safety
from perflint.verify.execution import Run
from perflint.verify.plan import Candidate, Chosen
from perflint.verify.search import ProgramError, Search, Verification, expected_runs
from tests.verify.runs import candidate, run

A, B, C, D = (candidate(code) for code in "ABCD")
R = candidate("R", safety=Safety.RISKY)
U, V, W = (candidate(code, safety=Safety.UNSAFE) for code in "UVW")
CURVE = [2.0, 1.0, 0.5]


class Programs:
    """A program: what fixes make of its step time and of its losses."""

    def __init__(self, ms: dict[Candidate, float] | None = None, loss: dict[Candidate, float] | None = None) -> None:
        self.ms = ms or {}
        self.loss = loss or {}
        self.fails: set[Candidate] = set()
        self.together: tuple[Chosen, float] = (frozenset(), 0.0)
        self.other_seed = 1.0
        self.noise = 0.0
        self.needs: dict[Candidate, Candidate] = {}
        self.slow_runs: set[int] = set()
        self.failing_runs: set[str] = set()
        """Runs in which it fails, by what runs and how often it did before."""
        self.runs: list[str] = []

    def run(self, chosen: Chosen, reseed: bool) -> Run:
        self.runs.append("".join(sorted(one.code for one in chosen)) + "!" * reseed)
        name = self.runs[-1]
        if self.fails & chosen or f"{name} {self.runs.count(name) - 1}" in self.failing_runs:
            return run(status=1, told="RuntimeError: no", times=[])
        drift = self.noise * len(self.runs)
        factor = self.other_seed if reseed else 1.0
        factor += sum(self.loss.get(one, 0.0) for one in chosen) + drift
        ms = 10.0 + sum(self.ms.get(one, 0.0) for one in chosen) + 0.01 * (len(self.runs) % 3)
        ms += 5.0 if len(self.runs) - 1 in self.slow_runs else 0.0
        ms += self.together[1] if self.together[0] <= chosen and self.together[0] else 0.0
        return run([loss * factor for loss in CURVE], times=[ms])

    def changes(self, chosen: Chosen) -> dict[str, object]:
        """Fixes that need another change nothing without it."""
        effective = {one for one in chosen if self.needs.get(one, one) in chosen}
        return {one.code: one for one in effective}

    def verify(self, *candidates: Candidate, each: bool = False) -> Verification:
        return Search(self.run, self.changes, 2, 0.05, each).verify(frozenset(candidates))


def kept(result: Verification) -> str:
    return "".join(sorted(one.code for one in result.kept))


def dropped(result: Verification) -> dict[str, str]:
    return {one.candidate.code: one.reason for one in result.dropped}


def test_all_are_fine() -> None:
    program = Programs(ms={A: -2.0})
    result = program.verify(A, B)
    assert kept(result) == "AB" and not result.dropped
    assert program.runs == ["", "AB", "AB", ""]
    assert result.trial.timing is not None and result.trial.timing.is_faster
    assert len(result.originals) == 2 and result.reseeded is None


def test_one_that_slows_down_is_found() -> None:
    program = Programs(ms={C: 1.0})
    result = program.verify(A, B, C, D)
    assert kept(result) == "ABD"
    assert list(dropped(result)) == ["C"] and dropped(result)["C"].startswith("a step takes 1.1")
    assert result.trial.chosen == result.kept
    assert len(result.trial.before) == len(result.trial.after) == 2
    assert not set(program.runs) - {"", "ABCD", "AB", "ABC", "ABD"}


def test_one_that_changes_results_is_found_by_single_runs() -> None:
    program = Programs(loss={C: 1e-9})
    result = program.verify(A, B, C, D)
    assert kept(result) == "ABD"
    assert "a safe fix must not change it" in dropped(result)["C"]
    assert [program.runs.count(one) for one in ("ABCD", "AB", "ABC", "ABCD")] == [2, 1, 1, 2]


def test_one_with_which_the_program_fails() -> None:
    program = Programs()
    program.fails = {B}
    result = program.verify(A, B)
    assert kept(result) == "A"
    assert dropped(result) == {"B": "the program failed with status 1: RuntimeError: no"}


def test_unsafe_ones_may_change_results_a_little() -> None:
    result = Programs(loss={U: 0.01}).verify(A, U)
    assert kept(result) == "AU"
    program = Programs(loss={U: 0.01, V: 0.2})
    result = program.verify(A, U, V)
    assert kept(result) == "AU" and "changes from" in dropped(result)["V"]
    assert program.runs.count("!") == 1
    assert result.reseeded is not None


def test_risky_ones_are_tried_after_the_unsafe_ones() -> None:
    program = Programs(loss={R: 0.2, U: 0.2})
    result = program.verify(A, R, U)
    assert kept(result) == "A" and "changes from" in dropped(result)["R"]
    assert program.runs.index("AU") < program.runs.index("AR")
    assert kept(Programs(loss={R: 0.01}).verify(A, R)) == "AR"


def test_a_safe_one_cannot_hide_behind_an_unsafe_one() -> None:
    result = Programs(loss={A: 0.01, U: 0.01}).verify(A, B, U)
    assert kept(result) == "BU"
    assert "a safe fix must not change it" in dropped(result)["A"]


def test_other_random_numbers_may_do_what_other_seeds_do() -> None:
    program = Programs(loss={U: 0.2})
    program.other_seed = 0.8
    assert kept(program.verify(U)) == "U"
    program = Programs(loss={A: 0.2})
    program.other_seed = 0.8
    assert kept(program.verify(A)) == ""
    assert "!" not in program.runs


def test_a_program_that_is_not_reproducible() -> None:
    program = Programs(loss={C: 0.5})
    program.noise = 1e-4
    result = program.verify(A, B, C)
    assert kept(result) == "AB" and list(dropped(result)) == ["C"]


def test_none_is_kept() -> None:
    program = Programs(ms={A: 5.0})
    result = program.verify(A)
    assert not result.kept and program.runs == ["", "A", "A", ""] * 2
    assert result.trial.chosen == {A} and result.trial.timing is not None


def test_one_that_was_slower_by_chance() -> None:
    program = Programs()
    program.slow_runs = {1, 2}
    result = program.verify(A)
    assert result.kept == {A} and program.runs == ["", "A", "A", ""] * 2
    assert result.trial.timing is not None and len(result.trial.timing.median.after) == 4


def test_each_by_itself() -> None:
    """Together they are faster, which hides the one that is slower."""
    program = Programs(ms={A: -3.0, B: 1.0})
    assert kept(program.verify(A, B)) == "AB"
    result = program.verify(A, B, each=True)
    assert kept(result) == "A" and list(dropped(result)) == ["B"]


def test_one_that_needs_another() -> None:
    program = Programs(loss={A: 0.5})
    program.needs = {B: A}
    result = program.verify(A, B)
    assert kept(result) == "" and dropped(result)["B"] == "it cannot be applied without one that was dropped"


def test_two_that_are_slow_only_together() -> None:
    program = Programs()
    program.together = frozenset({A, C}), 4.0
    result = program.verify(A, B, C)
    assert kept(result) == "AB" and list(dropped(result)) == ["C"]


def test_those_that_are_slow_together_though_each_is_fine() -> None:
    """Each takes less than can be told from noise, after those before it."""
    result = Programs(ms={A: 0.08, B: 0.08, C: 0.08}).verify(A, B, C)
    assert not result.kept
    assert set(dropped(result)) == {"A", "B", "C"}
    assert all(reason.startswith("with all that would be kept, a step takes") for reason in dropped(result).values())


def test_one_that_fails_in_some_runs() -> None:
    """The run that settles the losses is fine, the second one of those that are timed fails."""
    program = Programs(loss={A: 0.5})
    program.failing_runs = {"B 2"}
    result = program.verify(A, B)
    assert not result.kept
    assert "RuntimeError" in dropped(result)["B"]


def test_a_program_that_fails_with_other_random_numbers() -> None:
    program = Programs(loss={U: 0.2})
    program.failing_runs = {"! 0"}
    result = program.verify(U)
    assert not result.kept and result.reseeded is not None and result.reseeded.failed
    assert "+20.0%" in dropped(result)["U"]
    assert program.runs.count("!") == 1


def test_each_that_does_harm_is_named() -> None:
    assert list(dropped(Programs(ms={A: 1.0, C: 1.0}).verify(A, B, C))) == ["A", "C"]
    assert list(dropped(Programs(loss={A: 0.5, C: 0.5}).verify(A, B, C))) == ["A", "C"]


def test_rules_are_halved_near_the_middle() -> None:
    program = Programs()
    program.fails = {C}
    result = program.verify(candidate("A", 1), candidate("A", 2), B, C)
    assert kept(result) == "AAB" and "AA" in program.runs


def test_rules_are_halved_before_lines() -> None:
    program = Programs()
    lines = [candidate("A", line) for line in range(1, 4)]
    program.fails = {D}
    result = program.verify(*lines, D)
    assert len(result.kept) == 3
    assert program.runs[:5] == ["", "AAAD", "", "AAA", "D"] or "AAA" in program.runs


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: run(status=1, told="x\nValueError: boom", times=[]), "without any fix, the program failed"),
        (lambda: run(times=[]), "no steps of the program were timed"),
    ],
)
def test_a_program_that_cannot_be_compared(made: Callable[[], Run], message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        Search(lambda chosen, reseed: made(), Programs().changes, 2, 0.05).verify(frozenset({A}))
    assert message in caught.value.message


@pytest.mark.parametrize("each", [False, True])
def test_good_fixes_take_as_many_runs_as_expected(each: bool) -> None:
    for candidates in ((A,), (A, B), (A, B, C, D)):
        program = Programs()
        program.verify(*candidates, each=each)
        assert len(program.runs) == expected_runs(frozenset(candidates), 2, each)
    program = Programs(loss={U: 0.2})
    program.other_seed = 1.3
    assert kept(program.verify(A, U)) == "AU"
    assert len(program.runs) == expected_runs(frozenset({A, U}), 2, False) == 6


def test_a_search_that_is_stopped_has_its_results_so_far() -> None:
    """With C slow, A and B pass; then the search stops before D is tried."""
    program = Programs(ms={C: 1.0})
    search = Search(lambda chosen, reseed: stop_at(program, D, chosen, reseed), program.changes, 2, 0.05)
    candidates = frozenset({A, B, C, D})
    before = search.so_far(candidates)
    assert (before.kept, before.dropped, before.undecided, before.runs) == (frozenset(), (), candidates, 0)
    with pytest.raises(KeyboardInterrupt):
        search.verify(candidates)
    partial = search.so_far(candidates)
    assert partial.kept == {A, B} and [one.candidate for one in partial.dropped] == [C]
    assert partial.undecided == {D} and partial.runs == len(program.runs)


def stop_at(program: Programs, last: Candidate, chosen: Chosen, reseed: bool) -> Run:
    """A run, but none with some fix and without C."""
    if last in chosen and C not in chosen:
        raise KeyboardInterrupt
    return program.run(chosen, reseed)
