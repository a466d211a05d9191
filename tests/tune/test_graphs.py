"""Steps as graphs on a simulated GPU: each program computes the same, bit for bit, or is refused with a reason."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.once import once
from tests.tracer import warm

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(path.stem for path in (Path(__file__).parent / "programs").glob("*.py"))
REFUSED = {
    "accumulated": "the optimizer steps only if a condition holds, so gradients may add up",
    "added_before": "`penalty.backward()` may leave gradients to which the step adds its own",
    "cleared_between": "`model.zero_grad()` frees gradients that a graph may write to",
    "cleared_in_part": "the step does not clear the gradients of `optimizer`, so they add up",
    "cleared_elsewhere": "`other.zero_grad()` frees gradients that a graph may write to",
    "given_model": "it calls `backward_pass`: `options.weight` is read, which a.py:28 changes",
    "changed_around": "it calls `loss_of`: `weight` is read, which a.py:25 changes (a.py:14)",
    "counting_in_dict": "each step changes `model.seen['calls']`, which a graph does not repeat",
    "counting_module": "each call of a Metric changes its `total`, which a graph does not repeat",
    "gradients_kept": "`model.weight.grad` reads a gradient outside of the step that made it",
    "filled_by_model": "fails while a graph is made",
    "gradient_read": "`model[0].weight.grad` reads a gradient outside of the step that made it",
    "kept_weights": "it calls `forward`: `self.weights` is read, which a.py:13 changes",
    "made_in_front": "the step does not clear the gradients of `optimizer`, so they add up",
    "manual_backward": "`self.manual_backward(loss)` has an effect that a graph does not repeat",
    "pooled": "`random.choice(self.images[-5:])` may do something else in each step",
    "two_loops": "`self.scale` is read, which a.py:33 changes",
    "scheduled_before": "`scheduler.step()` has an effect that a graph does not repeat",
    "wrapped_optimizer": "`group['lr']` outside of the step is changed",
    "writes_input": "the step writes to one of its inputs, and a graph gets copies of them",
}

BACKWARD = {
    "changed_around": REFUSED["changed_around"],
    "counting_in_dict": REFUSED["counting_in_dict"],
    "counting_module": REFUSED["counting_module"],
    "copied": "the step calls no model with parameters",
    "filled_by_model": REFUSED["filled_by_model"],
    "kept_weights": REFUSED["kept_weights"],
    "mixed": "`scaler.step(optimizer)` has an effect that a graph does not repeat",
    "phases": "`optimizer.step()` has an effect that a graph does not repeat",
    "two_loops": REFUSED["two_loops"],
    "writes_input": REFUSED["writes_input"],
}
"""Those without a graph of the forward and backward pass."""

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture(scope="session")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The sentence for each program; all run once, in a process of its own."""

    def run(target: Path) -> None:
        done = warm.script(ROOT, "tests/tune/simulated.py", str(target))
        assert done.code == 0, done.err

    return dict(once(tmp_path_factory, "graphs", run))


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs(name: str, verdicts: dict[str, str]) -> None:
    if name in REFUSED:
        assert REFUSED[name] in verdicts[name]
    else:
        assert verdicts[name] == "equal"


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_of_the_forward_and_backward_pass(name: str, verdicts: dict[str, str]) -> None:
    if name in BACKWARD:
        assert BACKWARD[name] in verdicts[f"{name} backward"]
    else:
        assert verdicts[f"{name} backward"] == "equal"
