"""Steps and losses in CUDA graphs, with a graph that only counts its replays."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from perflint.tracer import replays
from perflint.tracer.steps import StepFinder

if find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch.cuda import graphs


class Graph:
    """Stands in for a CUDA graph."""

    def __init__(self) -> None:
        self.replays = 0

    def capture_begin(self, pool: Any = None) -> None:
        pass

    def capture_end(self) -> None:
        pass

    def replay(self) -> None:
        self.replays += 1


@pytest.fixture
def graph_class(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Graph]]:
    own = type("OwnGraph", (Graph,), dict(vars(Graph)))
    monkeypatch.setattr(graphs, "CUDAGraph", own)
    replays.watch.cache_clear()
    replays.watch()
    yield own
    replays.watch.cache_clear()


def test_what_is_captured_happens_at_each_replay(graph_class: type[Graph]) -> None:
    happened: list[str] = []
    one, other = graph_class(), graph_class()
    assert not replays.in_graph(lambda: happened.append("never"))
    for graph, name in ((one, "one"), (other, "other")):
        graph.capture_begin()
        assert replays.in_graph(lambda name=name: happened.append(name))  # type: ignore[misc]
        graph.capture_end()
    assert not happened and not replays.in_graph(lambda: happened.append("never"))
    one.replay()
    other.replay()
    one.replay()
    assert happened == ["one", "other", "one"] and (one.replays, other.replays) == (2, 1)
    one.capture_begin()
    one.capture_end()
    one.replay()
    assert len(happened) == 3


def test_a_replay_is_a_step(graph_class: type[Graph]) -> None:
    ended: list[None] = []
    finder = StepFinder(lambda: ended.append(None), ended.clear)
    finder.start()
    try:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
        optimizer.step()
        graph = graph_class()
        graph.capture_begin()
        optimizer.step()
        graph.capture_end()
        assert len(ended) == 1
        graph.replay()
        graph.replay()
        assert len(ended) == 3
    finally:
        finder.stop()
