"""The calls between functions of a project, and the lines that step optimizers."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from perflint.tracer.replays import in_graph, run_whole
from perflint.tracer.step_calls import StepCalls

PROGRAM = """
def inner():
    return sorted([2, 1], key=lambda x: x)

def outer():
    return inner()

outer()
calls.stepped(sys._getframe(), SimpleNamespace(param_groups=[]))
"""


def test_calls_are_known_by_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(PROGRAM)
    calls = StepCalls(str(tmp_path))
    code = compile(PROGRAM, str(path), "exec")
    calls.start()
    try:
        exec(code, {"calls": calls, "sys": sys, "SimpleNamespace": SimpleNamespace})
    finally:
        calls.stop()
    report = json.loads(json.dumps(calls.report()))
    assert report["calls"] == [["a.py", 3, "a.py", 3], ["a.py", 6, "a.py", 2], ["a.py", 8, "a.py", 5]]
    assert report["steps"] == [["a.py", 9, 1]]


def test_functions_that_are_called_again_are_known(tmp_path: Path) -> None:
    text = "def once():\n    return [*turns()]\n\ndef turns():\n    yield step()\n    yield step()\n\n"
    text += "@staticmethod\ndef step():\n    pass\n\nonce()\n"
    calls = StepCalls(str(tmp_path))
    calls.start()
    try:
        exec(compile(text, str(tmp_path / "a.py"), "exec"), {})
    finally:
        calls.stop()
    assert calls.report()["again"] == [("a.py", 8)]


def test_models_are_known_by_the_line_that_calls_them(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    text = "inner = torch.nn.Sequential(torch.nn.Linear(2, 1))\nloss = torch.nn.MSELoss()\n"
    text += "loss(inner(torch.ones(1, 2)), torch.ones(1, 1))\n"
    path = tmp_path / "a.py"
    path.write_text(text)
    calls = StepCalls(str(tmp_path))
    calls.start()
    try:
        exec(compile(text, str(path), "exec"), {"torch": torch})
    finally:
        calls.stop()
    assert calls.report()["models"] == [("a.py", 3, "a.py", 3, "inner", 1, (("a.py", 1, "inner"),), False)]


CLEARING = """
first, second, third = (torch.nn.Linear(1, 1) for _ in range(3))
stray = torch.nn.Linear(1, 1)
both = torch.optim.SGD([*first.parameters(), *second.parameters()])
partly = torch.optim.SGD([*third.parameters(), torch.nn.Parameter(torch.ones(1))])
for model in (first, second, third, stray):
    model.requires_grad_()
calls.cleared(sys._getframe(), first)
calls.cleared(sys._getframe(), second)
calls.cleared(sys._getframe(), third)
calls.cleared(sys._getframe(), stray)
calls.stepped(sys._getframe(), both)
calls.stepped(sys._getframe(), partly)
"""


def test_models_that_clear_gradients_are_known_with_the_steps_of_their_optimizers(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    calls = StepCalls(str(tmp_path))
    calls.start()
    try:
        exec(compile(CLEARING, str(tmp_path / "a.py"), "exec"), {"calls": calls, "sys": sys, "torch": torch})
    finally:
        calls.stop()
    # The third clears some gradients of its optimizer only, and the last one those of none.
    assert calls.report()["clears"] == [
        ("a.py", 8, "a.py", 12),
        ("a.py", 9, "a.py", 12),
        ("a.py", 10, "", 0),
        ("a.py", 11, "", 0),
    ]


def test_lines_that_log_messages_are_known(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = "logger.debug('a')\nlogger.error('b')\n"
    logger = logging.Logger("quiet", logging.ERROR)
    calls = StepCalls(str(tmp_path))
    calls.start()
    try:
        exec(compile(text, str(tmp_path / "a.py"), "exec"), {"logger": logger})
    finally:
        calls.stop()
    assert calls.report()["logs"] == [("a.py", 2)]


MOVING = """
class Trainer:
    pace = 0.5
    def fit(self, share):
        self.weight, self.same, rate = share / 2, 1.0, 1.0
        calls.stepped(sys._getframe(), SimpleNamespace(param_groups=[]))
trainer = Trainer()
for number, growing in enumerate((0.25, 0.5, 0.75)):
    trainer.fit(growing)
"""


@pytest.mark.parametrize("captures", [False, True])
def test_numbers_that_are_others_in_each_step_are_known(
    captures: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: True, is_current_stream_capturing=lambda: captures)
    monkeypatch.setattr(pytest.importorskip("torch"), "cuda", cuda)
    calls = StepCalls(str(tmp_path))
    calls.start()
    try:
        names = {"calls": calls, "sys": sys, "SimpleNamespace": SimpleNamespace}
        exec(compile(MOVING, str(tmp_path / "a.py"), "exec"), names)
    finally:
        calls.stop()
    known = [("a.py", 1, "growing"), ("a.py", 4, "self.weight"), ("a.py", 4, "share")]
    assert calls.report()["moving"] == ([] if captures else known)


def test_an_eager_step_is_seen_at_its_end_like_a_replay() -> None:
    seen: list[str] = []

    def step(name: str) -> str:
        assert in_graph(lambda: seen.append("noted"))
        seen.append(name)
        return name

    assert run_whole(step, ("step",)) == "step"
    assert seen == ["step", "noted"] and not in_graph(lambda: None)


def test_nothing_is_watched_while_torch_compiles(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch._dynamo.callback")
    watched: list[str] = []

    class Counted(StepCalls):
        def _called(self, frame: FrameType, event: str, argument: Any) -> None:
            watched.append(frame.f_code.co_filename)

    calls = Counted(str(tmp_path))
    calls.spare_compiler()
    calls.start()
    try:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        assert sys.getprofile() == calls._called
    finally:
        calls.stop()
        torch._dynamo.reset()
    assert any("eval_frame" in name for name in watched)
    assert not any("symbolic_convert" in name for name in watched)


EVALUATIONS = """
def evaluate():
    calls.switched(sys._getframe())

def prepare():
    train()
    calls.switched(sys._getframe())

def train():
    calls.stepped(sys._getframe(), "optimizer")

class Model(torch.nn.Module):
    def forward(self, x):
        calls.switched(sys._getframe())
        return x

prepare()
calls.start()
Model()(torch.ones(1))
calls.stop()
evaluate()
"""


def test_evaluations_are_seen_after_the_steps_that_are_watched(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "a.py"
    path.write_text(EVALUATIONS)
    calls = StepCalls(str(tmp_path))
    exec(compile(EVALUATIONS, str(path), "exec"), {"calls": calls, "sys": sys, "torch": torch})
    # The other functions make steps, or run in a model that may be compiled.
    assert calls.report()["evaluations"] == [("a.py", 2)]
