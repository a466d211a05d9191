"""The facts of a run for `perflint tune`: the places of loaders, and evaluations."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from torch.nn import Module
from torch.utils.data import DataLoader, dataloader

from perflint.tracer import look
from perflint.tracer.step_calls import StepCalls

LIBRARY = "def prepared(loader):\n    return type(loader)(loader.dataset, batch_size=loader.batch_size)\n"
PROGRAM = """
from torch.utils.data import DataLoader
data = list(range(8))
loader = DataLoader(data, batch_size=2)
loader = prepared(loader)
other = DataLoader(data, batch_size=4)
for _ in loader:
    seen.step_ended(1)
for _ in other:
    pass
"""


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> look.Look:
    """A look at programs in a folder, which leaves torch as it was."""
    base = dataloader._BaseDataLoaderIter
    watched = ((base, ("__next__", "__init__")), (DataLoader, ("_get_iterator", "__init__")), (Module, ("eval",)))
    for kind, names in watched:
        for name in names:
            monkeypatch.setattr(kind, name, getattr(kind, name))
    monkeypatch.setattr(look, "listen", lambda _: None)
    return look.Look(str(tmp_path), 3)


def test_a_loader_that_a_library_makes_of_another_has_its_place(seen: look.Look, tmp_path: Path) -> None:
    library = {"__name__": "library"}
    exec(compile(LIBRARY, "/elsewhere/library.py", "exec"), library)
    seen.start()
    names = {"__name__": "program", "seen": seen, "prepared": library["prepared"]}
    exec(compile(PROGRAM, str(tmp_path / "a.py"), "exec"), names)
    assert [place[:3] for place in seen.report()["loaders"]] == [["a.py", 4, 0], ["a.py", 6, 0]]


def test_an_evaluation_is_seen_where_it_switches_the_model(
    seen: look.Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switched: list[int] = []
    monkeypatch.setattr(StepCalls, "switched", lambda _, frame: switched.append(frame.f_lineno))
    seen.start()
    text = "from torch.nn import Linear\nnet = Linear(1, 1)\nassert net.eval() is net and not net.training\n"
    exec(compile(text, str(tmp_path / "a.py"), "exec"), {"__name__": "program"})
    seen.report()
    assert switched == [3]
