"""What counts as the same result, and as slower."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflint.findings import Safety
from perflint.verify.execution import Run
from perflint.verify.judging import Measure, difference, failure, measure, noise, timing
from tests.verify.runs import run

CURVE = [2.3 - 0.01 * step for step in range(100)]


def scaled(by: float, curve: Sequence[float] = CURVE) -> list[float]:
    return [loss * by for loss in curve]


def noisy(seed: int, by: float) -> list[float]:
    """Runs that drift apart."""
    random_ = random.Random(seed)
    return [loss + by * step * random_.uniform(-1, 1) for step, loss in enumerate(CURVE)]


def said(before: Sequence[Run], after: Run, safety: Safety = Safety.SAFE, tolerance: float = 0.05) -> str:
    return difference(before, after, safety, tolerance) or ""


def test_safe_fixes_keep_losses_bit_for_bit() -> None:
    before = [run(CURVE), run(CURVE)]
    assert not said(before, run(CURVE))
    other = [*CURVE[:41], math.nextafter(CURVE[41], 9), *CURVE[42:]]
    assert said(before, run(other)).startswith("loss 42 changes from 1.89 to 1.89")


def test_unsafe_fixes_change_losses_within_the_tolerance() -> None:
    before = [run(CURVE), run(CURVE)]
    assert not said(before, run(scaled(1.04)), Safety.UNSAFE)
    assert "the mean of losses 1 to 10 changes from 2.255 to 2.43" in said(before, run(scaled(1.08)), Safety.UNSAFE)
    assert "(+8.0%)" in said(before, run(scaled(1.08)), Safety.UNSAFE)
    assert said(before, run(scaled(1.04)), Safety.UNSAFE, tolerance=0.03)


def test_what_the_program_does_by_itself_sets_the_limit() -> None:
    before = [run(noisy(seed, 1e-5)) for seed in range(3)]
    assert not said(before, run(noisy(9, 1e-5)))
    assert said(before, run(noisy(9, 1e-2)))
    assert said(before, run(scaled(1.01)))
    assert 0 < noise(before) < 2e-3


@pytest.mark.parametrize("seed", range(20))
def test_one_more_run_of_a_noisy_program_is_no_change(seed: int) -> None:
    before = [run(noisy(100 * seed + one, 1e-4)) for one in range(2)]
    assert not said(before, run(noisy(100 * seed + 50, 1e-4)))


def test_one_more_run_of_few_losses_is_no_change() -> None:
    """The first losses of two runs are close by chance; the others show how far they are apart."""
    apart = [0.00001, 0.00002, 0.0012, 0.001, 0.0012, 0.0009, 0.001, 0.001, 0.0011, 0.001]
    other = [loss + by for loss, by in zip(CURVE, apart, strict=False)]
    third = [CURVE[0] + 0.0025, *CURVE[1:10]]
    assert not said([run(CURVE[:10]), run(other)], run(third))
    assert said([run(CURVE[:10]), run(other)], run([CURVE[0] + 0.1, *CURVE[1:10]]))


def test_small_losses_are_judged_by_the_greatest() -> None:
    falling = [2.0 * 0.9**step for step in range(100)]
    slightly = [loss + 1e-4 for loss in falling]
    assert not said([run(falling)] * 2, run(slightly), Safety.UNSAFE)


@pytest.mark.parametrize("safety", [Safety.SAFE, Safety.UNSAFE])
def test_losses_that_are_no_numbers(safety: Safety) -> None:
    broken = [*CURVE[:50], *[math.nan] * 50]
    assert said([run(CURVE)] * 2, run(broken), safety)
    assert said([run(broken)] * 2, run(CURVE), safety)
    assert not said([run(broken)] * 2, run(broken), safety)
    infinite = [*CURVE[:50], *[math.inf] * 50]
    assert not said([run(infinite)] * 2, run(infinite), safety)


def test_other_numbers_of_losses() -> None:
    assert said([run(CURVE)] * 2, run(CURVE[:-1]), Safety.UNSAFE) == "it computes 99 losses instead of 100"
    # A program that stops by the clock.
    assert not said([run(CURVE), run(CURVE[:-3])], run(CURVE[:-1]))


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1), st.sampled_from(Safety))
def test_a_run_is_never_different_from_itself(curve: list[float], safety: Safety) -> None:
    assert not said([run(curve)] * 2, run(curve), safety)


def test_what_is_compared() -> None:
    assert measure([run(CURVE)]) is Measure.LOSS
    assert measure([run(out="top-1 0.7 in 3.2 s\n"), run(out="top-1 0.7 in 2.9 s\n")]) is Measure.OUTPUT
    assert measure([run(out="run a\n"), run(out="run b\n")]) is Measure.STATUS
    assert measure([run()]) is Measure.STATUS


def test_what_is_printed() -> None:
    before = [run(out="accuracy 0.70 at 12.5 it/s\n"), run(out="accuracy 0.70 at 12.9 it/s\n")]
    assert not said(before, run(out="accuracy 0.70 at 99 it/s\n"))
    assert said(before, run(out="accuracy 0.71 at 12.5 it/s\n")) == "it prints 0.71 instead of 0.7"
    assert not said(before, run(out="accuracy 0.71 at 12.5 it/s\n"), Safety.UNSAFE)
    assert said(before, run(out="accuracy 0.50 at 12.5 it/s\n"), Safety.UNSAFE)
    assert "`accuracy nan at 12.5 it/s` instead of" not in said(before, run(out="accuracy nan at 12.5 it/s\n"))
    assert said(before, run(out="accuracy nan at 12.5 it/s\n"))
    assert "it prints something else: `no` instead of `accuracy" in said(before, run(out="no\n"))


def test_progress_bars_show_the_time() -> None:
    bars = (
        "Epoch 0/299 ━━━━      129/938 0:00:02 • 0:00:10 83.45it/s loss: 0.5\n",
        " 7%|▋  | 9/128 [00:01<00:20, 2.1s/it]\n",
    )
    later = (
        "Epoch 0/299 ━━━╸    130/938 0:00:01 • 0:00:07 117.84it/s loss: {}\n",
        " 9%|▉  | 11/128 [00:01<00:20, 1.1s/it]\n",
    )
    before = [run(out="".join(bars)), run(out="".join(bars))]
    assert not said(before, run(out="".join(later).format(0.5)))
    assert said(before, run(out="".join(later).format(0.9))) == "it prints 0.9 instead of 0.5"
    assert said([run(out="a ━━ 1:02\n")], run(out="a ━━━ 1:03\n"))


def test_what_a_training_prints_counts_too() -> None:
    before = [run(CURVE, out="accuracy 0.70\n")] * 2
    assert not said(before, run(CURVE, out="accuracy 0.70\n"))
    assert said(before, run(CURVE, out="accuracy 0.10\n"), Safety.UNSAFE) == "it prints 0.1 instead of 0.7"
    assert not said([run(CURVE, out="a"), run(CURVE, out="b")], run(CURVE, out="c"))


def test_numbers_that_vary_are_no_results() -> None:
    before = [run(out="id 4 loss 0.5\n"), run(out="id 7 loss 0.5\n")]
    assert not said(before, run(out="id 9 loss 0.5\n"))
    assert said(before, run(out="id 9 loss 0.6\n"))


def test_times_without_a_unit_are_no_results_in_any_line() -> None:
    def printed(*waits: str, loss: str = "0.5") -> Run:
        return run(out="".join(f"step {at} wait {wait} ({wait}) loss {loss}\n" for at, wait in enumerate(waits)))

    before = [printed("0.004", "0.000"), printed("0.007", "0.000")]
    assert not said(before, printed("0.003", "0.001"))
    assert said(before, printed("0.003", "0.001", loss="0.6")) == "it prints 0.6 instead of 0.5"
    assert said([before[0]] * 2, printed("0.004", "0.001")) == "it prints 0.001 instead of 0"
    other = [run(out=f"wait {wait}\nloss 0.5\n") for wait in ("0.004", "0.007")]
    assert said(other, run(out="wait 0.003\nloss 0.7\n")) == "it prints 0.7 instead of 0.5"


def test_failures() -> None:
    told = "Traceback\nKeyError: 'x'\n\n"
    assert failure(run(status=1, told=told)) == "the program failed with status 1: KeyError: 'x'"
    first = "Traceback (most recent call last):\n  File 'a.py'\n    step()\ntorch.Error: no waits\nCompile again.\n\n"
    then = "\nDuring handling of the above exception, another exception occurred:\n\n"
    other = first.replace("no waits", "ended")
    assert failure(run(status=1, told=first)) == "the program failed with status 1: torch.Error: no waits"
    assert failure(run(status=1, told=first + then + other)).endswith("torch.Error: no waits")
    assert failure(run(status=1, told=first + "going on\n" + other)).endswith("torch.Error: ended")
    assert failure(run(status=-11)) == "the program was ended by signal 11"
    assert failure(run(status=None)) == "it did not end within 3 s"
    assert said([run(CURVE)] * 2, run(CURVE, status=2), Safety.UNSAFE) == "the program failed with status 2"
    assert not run(CURVE, status=1, stopped=True).failed
    assert run(CURVE, status=None, stopped=True).failed


def timed(before: Sequence[float], after: Sequence[float]) -> tuple[bool, bool]:
    found = timing([run(times=[ms]) for ms in before], [run(times=[ms]) for ms in after])
    assert found is not None
    return found.harm is not None, found.is_faster


def test_slower_and_faster() -> None:
    assert timed([10, 10.1, 10.2], [10.5, 10.4, 10.6]) == (True, False)
    assert timed([10, 10.1, 10.2], [9.5, 9.4, 9.6]) == (False, True)
    assert timed([10, 10.1, 10.5], [10.4, 10.6, 10.7]) == (False, False)
    assert timed([10, 10, 10], [10.05, 10.05, 10.05]) == (False, False)
    assert timed([0, 0], [0, 0]) == (False, False)


def test_times() -> None:
    found = timing([run(times=[9, 10, 11]), run(times=[8, 8, 12])], [run(times=[5, 5, 5]), run(times=[4])])
    assert found is not None
    assert (found.median.before, found.median.after) == ((10, 8), (5, 4))
    assert (found.median.ratios, found.median.ratio) == ((0.5, 0.5), 0.5)
    assert found.mean.before == (10, 28 / 3) and found.total is not None and found.total.ratio == 1
    assert found.before_steps == (8.25, 10.75)
    assert timing([run()], [run(times=[])]) is None
    assert timing([], []) is None
