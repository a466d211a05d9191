"""The arguments of a loader that gets workers."""

from __future__ import annotations

import pytest

from perflint.tune.evidence import Evidence, Loader
from perflint.tune.graphs.outlining import Seen
from perflint.tune.loader import with_workers
from perflint.tune.refused import Refused

HEAD = "import torch\nfrom torch.utils.data import DataLoader\n"


def written(call: str, share: float = 0.5, line: int = 3, head: str = HEAD, workers: int = 0) -> str:
    loader = Loader("a.py", line, workers, share)
    text = with_workers({"a.py": head + call}, Evidence(Seen({}, ()), (loader,), 10.0, None))["a.py"]
    return text.removeprefix(head)


@pytest.fixture(autouse=True)
def cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)


def test_on_one_line() -> None:
    assert written("loader = DataLoader(data, 4)\n") == (
        "loader = DataLoader(data, 4, num_workers=4, persistent_workers=True, pin_memory=torch.cuda.is_available())\n"
    )


def test_on_several_lines_and_given_arguments() -> None:
    assert written("loader = DataLoader(\n    data,\n    num_workers=0,\n    pin_memory=True,\n)\n", line=5) == (
        "loader = DataLoader(\n    data,\n    num_workers=4,\n    pin_memory=True,\n    persistent_workers=True,\n)\n"
    )


def test_more_workers_for_a_loader_that_takes_most_of_a_step() -> None:
    assert "num_workers=8" in written("loader = DataLoader(data, 4)\n", 0.95)


def test_workers_that_there_are_count_with_the_whole_step() -> None:
    assert "num_workers=7" in written("loader = DataLoader(data, num_workers=2)\n", 0.64, workers=2)


def test_never_fewer() -> None:
    assert "num_workers=n, persistent_workers=True" in written("loader = DataLoader(data, num_workers=n)\n", workers=12)


def test_arguments_in_a_dictionary_that_has_workers() -> None:
    assert written("loader = DataLoader(data, **options)\n", workers=2) == (
        "loader = DataLoader(data, **options, persistent_workers=True)\n"
    )


def test_other_loaders_of_the_dictionary() -> None:
    before = "other = DataLoader(data, **options, persistent_workers=True)\n"
    assert written(before + "loader = DataLoader(data, **options)\n", line=4, workers=2).count("persistent") == 2
    with pytest.raises(Refused, match="has such workers already"):
        written(before, workers=2)
    with pytest.raises(Refused, match="in a dictionary"):
        written("loader = DataLoader(data, **dict(persistent_workers=True))\n", workers=2)


def test_without_torch_by_name() -> None:
    head = "\nfrom torch.utils.data import DataLoader\n"
    assert written("loader = DataLoader(data)\n", head=head) == (
        "loader = DataLoader(data, num_workers=4, persistent_workers=True)\n"
    )


@pytest.mark.parametrize(
    ("call", "share", "reason"),
    [
        ("loader = DataLoader(data)\n", 0.01, "wait for batches 1% of their time"),
        ("loader = DataLoader(data, **options)\n", 0.5, "in a dictionary"),
        ("loader = prepare(data)\n", 0.5, "not made by a call of a class"),
    ],
)
def test_refusals(call: str, share: float, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        written(call, share)


def test_a_loader_of_a_library_is_refused() -> None:
    with pytest.raises(Refused, match="the loader is made outside of the project"):
        with_workers({}, Evidence(Seen({}, ()), (Loader("", 1, 0, 0.5),), 10.0, 5.0))
