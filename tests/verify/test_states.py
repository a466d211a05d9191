"""Which parameters move, the first gradients and the final state, of runs that never ran and of some that did."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from importlib.util import find_spec

import pytest

from perflint.findings import Safety
from perflint.frozen import replace
from perflint.tracer.sketch import PROJECTIONS, Sketch
from perflint.verify.execution import Program, Run
from perflint.verify.judging import difference
from perflint.verify.states import States, other_end, other_gradients, other_moves
from tests.verify.forks import forked_run
from tests.verify.runs import run as made_run

SAFE, UNSAFE = Safety.SAFE, Safety.UNSAFE


def tensor(value: float) -> Sketch:
    """A tensor of one element."""
    return Sketch(1, hash(value), (value,) * PROJECTIONS)


def states(
    first: dict[str, float], last: dict[str, float], gradients: dict[str, float] | None = None, random: str = "a"
) -> States:
    """Parameters and their gradients."""
    start, final = ({f"parameter {name}": tensor(value) for name, value in each.items()} for each in (first, last))
    given = {name: tensor(value) for name, value in (gradients or {}).items()}
    return States(start, given, final, {"torch": random}, {"torch": random})


def run_with(ends: States) -> Run:
    """A run of equal losses with some states."""
    made = made_run([2.0, 1.0])
    assert made.seen is not None
    return replace(made, seen=replace(made.seen, states=ends))


START = {"a": 1.0, "b": 2.0}
END = {"a": 2.0, "b": 3.0}
GRADIENTS = {"a": 0.5, "b": 0.5}
KNOWN = [states(START, END, GRADIENTS)] * 2


def test_what_stays_the_same() -> None:
    for safety in (SAFE, UNSAFE):
        assert other_moves(KNOWN, KNOWN[0]) is None
        assert other_gradients(KNOWN, KNOWN[0], safety, 0.05) is None
        assert other_end(KNOWN, KNOWN[0], safety, 0.05) is None
    assert other_moves([States()] * 2, States()) is None
    assert other_gradients([States()] * 2, States(), SAFE, 0.05) is None
    assert other_end([States()] * 2, States(), SAFE, 0.05) is None


def test_parameters_that_no_longer_move() -> None:
    stopped = states(START, END | {"a": 1.0})
    assert other_moves(KNOWN, stopped) == "parameter a no longer moves"
    neither = states(START, START)
    assert other_moves(KNOWN, neither) == "parameter a no longer moves, as 1 more"
    started = [states(START, END | {"a": 1.0})] * 2
    assert other_moves(started, states(START, END)) == "parameter a moves, which it did not before"


def test_a_stopped_parameter_is_a_difference_whatever_the_losses_say() -> None:
    before, after = (run_with(KNOWN[0]), run_with(states(START, END | {"a": 1.0})))
    assert difference([before] * 2, after, UNSAFE, 0.05) == "parameter a no longer moves"
    assert difference([before] * 2, before, SAFE, 0.0) is None
    other = run_with(states(START, END, GRADIENTS | {"b": 0.9}))
    assert (difference([before] * 2, other, UNSAFE, 0.05) or "").startswith("from the same state, the gradients")
    ended = run_with(states(START, END | {"b": 3.5}, GRADIENTS))
    assert (difference([before] * 2, ended, UNSAFE, 0.05) or "").startswith("the final parameters differ")


@pytest.mark.parametrize("kind", ["buffer", "state"])
def test_buffers_and_states_of_optimizers_count_in_the_end(kind: str) -> None:
    def ended(value: float) -> States:
        first, last = ({f"{kind} a": tensor(each)} for each in (1.0, value))
        return States(first, {}, last, {}, {})

    text = {"buffer": "buffers", "state": "states of the optimizers"}[kind]
    assert other_end([ended(2.0)] * 2, ended(2.01), UNSAFE, 0.05) is None
    assert (other_end([ended(2.0)] * 2, ended(2.5), UNSAFE, 0.05) or "").startswith(f"the final {text} differ by 50.0%")


def test_where_nothing_ever_moves_nothing_stops() -> None:
    still = states(START, START)
    assert other_moves([still] * 2, still) is None
    assert other_moves([still] * 2, KNOWN[0]) == "parameter a moves, which it did not before, as 1 more"


def test_states_of_a_process_that_recorded_none() -> None:
    assert States.from_json({}) == States()


def test_rounding_is_no_movement() -> None:
    nearly = [states(START, END | {"a": 1.0 + 1e-9})] * 2
    still = states(START, END | {"a": 1.0})
    assert other_moves(nearly, still) is None
    assert other_moves([still] * 2, nearly[0]) is None


def test_a_parameter_that_a_fix_removes_is_not_compared() -> None:
    without = states({"a": 1.0}, {"a": 2.0}, {"a": 0.5})
    assert other_moves(KNOWN, without) is None
    assert other_end(KNOWN, without, UNSAFE, 0.05) is None
    assert "final parameter b changes" in (other_end(KNOWN, without, SAFE, 0.05) or "")


def test_first_gradients() -> None:
    other = states(START, END, {"a": 0.5, "b": 0.6})
    assert "the gradient of b changes in the first step" in (other_gradients(KNOWN, other, SAFE, 0.05) or "")
    assert other_gradients(KNOWN, other, UNSAFE, 0.05) == (
        "from the same state, the gradients of the first step change by 14.1%"
    )
    assert other_gradients(KNOWN, other, UNSAFE, 0.2) is None
    # Runs of the original that differ set the limit.
    noisy = [KNOWN[0], states(START, END, {"a": 0.5, "b": 0.56})]
    assert other_gradients(noisy, other, SAFE, 0.05) is None


def test_gradients_of_other_states_are_not_compared() -> None:
    other = {"a": -0.5, "b": 0.6}
    assert other_gradients(KNOWN, states(START, END, other, random="b"), UNSAFE, 0.05) is None
    assert other_gradients(KNOWN, states(START | {"a": 1.1}, END, other), UNSAFE, 0.05) is None
    # With a run of other seeds beside them, too.
    reseeded = states({"a": 3.0, "b": 4.0}, END, other, random="c")
    assert other_gradients([*KNOWN, reseeded], states(START, END, other), UNSAFE, 0.05)
    assert other_gradients([*KNOWN, reseeded], states(START, END, other, random="b"), UNSAFE, 0.05) is None


def test_a_generator_that_is_never_seeded_is_no_reason() -> None:
    known = [states(START, END, GRADIENTS, random=name) for name in "ab"]
    assert other_gradients(known, states(START, END, {"a": 0.1, "b": 0.5}, random="c"), UNSAFE, 0.05)


def test_a_gradient_of_zeros_is_as_good_as_none() -> None:
    known = [states(START, END, GRADIENTS | {"c": 0.0})] * 2
    assert other_gradients(known, KNOWN[0], SAFE, 0.05) is None


def test_the_final_state() -> None:
    near, far = states(START, END | {"b": 3.01}), states(START, END | {"b": 3.2})
    assert other_end(KNOWN, near, SAFE, 0.05) == "the final parameter b changes, and a safe fix must not change it"
    assert other_end(KNOWN, near, UNSAFE, 0.05) is None
    assert other_end(KNOWN, far, UNSAFE, 0.05) == (
        "the final parameters differ by 14.1% of their change since the first step"
    )
    assert other_end([KNOWN[0], states(START, END | {"b": 3.1})], far, SAFE, 0.05) is None


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_two_models_of_one_class_have_names_of_their_own() -> None:
    import torch

    from perflint.tracer.states import States as Watched

    class Agent(torch.nn.Module):
        def __init__(self, value: float) -> None:
            super().__init__()
            self.value = torch.nn.Parameter(torch.tensor(value))

    watched = Watched(nullcontext)
    watched.watch()
    for agent in (Agent(1.0), Agent(2.0)):
        (agent.value * 3).backward()
        torch.optim.SGD(agent.parameters(), lr=0.5).step()
    recorded = States.from_json(watched.recorded())
    assert recorded.movements().keys() == {"parameter Agent.value", "parameter optimizer 2: Agent.value"}
    assert set(recorded.movements().values()) == {1.5}
    assert {sketch.sums[0] for sketch in recorded.gradients.values()} <= {3.0, -3.0}


PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared, self.norm, self.head = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)
    def forward(self, x):
        return self.head(self.shared(self.norm(x)).relu())

def keep(parameters, held):
    for parameter, gradient in zip(parameters, held):
        if parameter.grad is not None:
            parameter.grad.copy_(gradient)

def main():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(6):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        held = [parameter.grad.clone() for parameter in model.shared.parameters()]
        model.shared.zero_grad(set_to_none=False)
        keep(model.shared.parameters(), held)
        optimizer.step()

main()
"""


Runner = Callable[..., Run]


@pytest.fixture
def run(forked: Program) -> Runner:
    """Runs the program, with one text in place of another."""

    def run(old: str = "", new: str = "") -> Run:
        done = forked_run(forked, PROGRAM.replace(old, new), warmup=1)
        assert done.status == 0 and done.seen is not None and not done.seen.problems, done.told
        return done

    return run


def test_a_fix_that_stops_shared_layers(run: Runner) -> None:
    known = [run(), run()]
    assert known[0].seen is not None and known[1].seen is not None
    recorded = known[0].seen.states
    again = known[1].seen.states
    assert (recorded.start, recorded.gradients, recorded.final) == (again.start, again.gradients, again.final)
    assert recorded.random_final["torch"] == again.random_final["torch"] != recorded.random_start["torch"]
    assert {"parameter Net.shared.weight", "buffer Net.norm.running_mean"} <= recorded.start.keys()
    assert {"state exp_avg of Net.head.bias", "state lr of group 0 of optimizer 1"} <= recorded.final.keys()
    assert recorded.gradients.keys() == {
        f"Net.{name}.{kind}" for name in ("shared", "norm", "head") for kind in ("weight", "bias")
    }
    assert all(recorded.movements().values()) and known[0].seen.memory > 1e6
    stopped = difference(known, run("shared.zero_grad(set_to_none=False)", "shared.zero_grad()"), Safety.RISKY, 0.05)
    assert stopped == "parameter Net.shared.weight no longer moves, as 1 more"


@pytest.mark.slow
def test_other_settings_of_an_optimizer(run: Runner) -> None:
    known = [run(), run()]
    fused = run("lr=0.02", "lr=0.02, fused=True")
    assert difference(known, fused, UNSAFE, 0.05) is None
    assert "must not change" in (difference(known, run("lr=0.02", "lr=0.021"), SAFE, 0.05) or "")
