"""Verdicts on rules about loaders and their copies, from runs in the simulation."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.findings import Ruling
from perflint.tracer.events import Observation
from perflint.tracer.places import Locator
from perflint.tracer.recording import Recording
from perflint.tracer.witnesses.loaders import Loaders
from tests.tracer.witnesses.running import observed, traced, verdicts

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
PROGRAM = """import json
import time
from pathlib import Path

from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset

Path("rows.json").write_text("[1]")


class Rows(Dataset):
    def __init__(self, count: int):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index: int):
        time.sleep(0.002)
        return torch.full((4,), float(index))


class Read(Rows):
    def __getitem__(self, index: int):
        rows = json.load(Path("rows.json").open())
        return torch.full((4,), float(rows[0]))


class Moved(Rows):
    def __getitem__(self, index: int):
        return torch.full((4,), 1.0).cuda()


class Placed(Rows):
    def __getitem__(self, index: int):
        # The linter cannot see what the name means.
        return globals()["on_gpu"](torch.ones(4))


def on_gpu(row: torch.Tensor):
    return row.cuda()


class Held(Rows):
    def __init__(self, rows: torch.Tensor):
        super().__init__(len(rows))
        self.rows = rows.cuda()

    def __getitem__(self, index: int):
        return self.rows[index]


def collate(rows):
    return pad_sequence([row[: 1 + at] for at, row in enumerate(rows)], batch_first=True)


model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(x):
    loss = model(x).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def alone():
    loader = DataLoader(Rows(10), batch_size=4)
    for x in loader:
        step(x.cuda())


def changed():
    later = DataLoader(Rows(8), batch_size=4)
    later.num_workers, later.prefetch_factor = 1, 2
    for x in later:
        step(x.cuda())


def epochs(none: int):
    several = DataLoader(Rows(8), batch_size=4, num_workers=1)
    single = DataLoader(Rows(8), batch_size=4, num_workers=none)
    for epoch in range(2):
        for x in several:
            step(x.cuda())
        for x in single:
            step(x.cuda())


def anew():
    data = TensorDataset(torch.ones(8, 4))
    for epoch in range(2):
        again = DataLoader(data, batch_size=4, num_workers=1)
        for (x,) in again:
            step(x.cuda())
    for epoch in range(1):
        once = DataLoader(data, batch_size=4, num_workers=1)
        for part in range(2):
            for (x,) in once:
                step(x.cuda())
    for epoch in range(2):
        cheap = DataLoader(data, batch_size=4)
        for (x,) in cheap:
            step(x.cuda())


def others(none: int):
    for x in DataLoader(Read(8), batch_size=4, num_workers=0):
        step(x.cuda())
    for x in DataLoader(Moved(8), batch_size=4, num_workers=0):
        step(x)
    for x in DataLoader(Held(torch.ones(8, 4)), batch_size=4, num_workers=none):
        step(x)
    for x in DataLoader(Rows(4), batch_size=4, collate_fn=collate, num_workers=0):
        step(x.cuda())


def ragged(size: int):
    if size == 0:
        torch.compile(model, mode="reduce-overhead")
    uneven = DataLoader(Rows(10), batch_size=4, shuffle=True, pin_memory=True, num_workers=0)
    for x in uneven:
        step(x.cuda())
    even = DataLoader(Rows(8), batch_size=4, shuffle=True, pin_memory=True, num_workers=0)
    for x in even:
        step(x.cuda())


def big():
    rows = DataLoader(TensorDataset(torch.ones(2, 400, 400, 4)), batch_size=1, num_workers=0)
    for (x,) in rows:
        step(x.cuda())
    placed = DataLoader(Placed(2), batch_size=1, num_workers=0)
    for x in placed:
        step(x.cuda())


def copies(device, x: torch.Tensor):
    torch.zeros(10).to(device, non_blocking=True)
    torch.zeros(800, 800).to(device, non_blocking=True)
    x.pin_memory().to("cuda", non_blocking=True)
    ready = x.pin_memory()
    ready.pin_memory().to("cuda", non_blocking=True)
    step(torch.ones(1, 4, device="cuda"))


alone()
changed()
epochs(0)
anew()
others(0)
ragged(1)
big()
copies("cuda", torch.ones(3))
device = torch.device(json.loads('"cpu"'))
torch.ones(9).to(device, non_blocking=True)
"""
YES, FREE, NO = Ruling.CONFIRMED, Ruling.NO_COST, Ruling.REFUTED


def test_loaders_that_ran(tmp_path: Path) -> None:
    trace = traced(tmp_path, PROGRAM)
    seen = {each.fact: each for each in trace.of(Observation) if each.place and "loader =" in each.place.text}
    assert seen["loader.batch"].detail == "Rows, by the process that iterates"
    assert seen["loader.batch"].ms >= 2 * 2 * 2
    assert seen["loader.new"].detail.startswith("dataset=Rows, batch_size=4, num_workers=0, pin_memory=False")
    assert observed(trace, "several =")["loader.workers-started"] == 2
    assert observed(trace, "pad_sequence([")["padding.sequences"] == 1
    padding = next(each for each in trace.of(Observation) if each.fact == "padding.sequences")
    assert padding.detail == "38% of 4 × 4"
    found = verdicts(tmp_path, "TPF202,TPF203,TPF401,TPF403,TPF404,TPF405,TPF406")
    assert found == {
        "loader = DataLoader(Rows(10), batch_size=4)": YES,
        "later = DataLoader(Rows(8), batch_size=4)": NO,
        "several = DataLoader(Rows(8), batch_size=4, num_workers=1)": YES,
        "single = DataLoader(Rows(8), batch_size=4, num_workers=none)": NO,
        "again = DataLoader(data, batch_size=4, num_workers=1)": YES,
        "once = DataLoader(data, batch_size=4, num_workers=1)": NO,
        "cheap = DataLoader(data, batch_size=4)": FREE,
        "return torch.full((4,), 1.0).cuda()": YES,
        "self.rows = rows.cuda()": NO,
        'rows = json.load(Path("rows.json").open())': YES,
        "torch.zeros(10).to(device, non_blocking=True)": FREE,
        "torch.zeros(800, 800).to(device, non_blocking=True)": YES,
        "torch.ones(9).to(device, non_blocking=True)": NO,
        'x.pin_memory().to("cuda", non_blocking=True)': FREE,
        'ready.pin_memory().to("cuda", non_blocking=True)': NO,
    }
    ragged = verdicts(tmp_path, "TPF407")
    assert ragged["uneven = DataLoader(Rows(10), batch_size=4, shuffle=True, pin_memory=True, num_workers=0)"] is YES
    assert ragged["even = DataLoader(Rows(8), batch_size=4, shuffle=True, pin_memory=True, num_workers=0)"] is NO
    found = verdicts(tmp_path, "TPF402")
    assert found["loader = DataLoader(Rows(10), batch_size=4)"] is FREE
    assert [ruling for line, ruling in found.items() if line.startswith("rows = ")] == [YES]
    assert [ruling for line, ruling in found.items() if line.startswith("placed = ")] == [NO]


def test_workers_are_not_traced_and_copies_need_a_gpu(tmp_path: Path) -> None:
    traced(tmp_path, WORKERS, simulate=False)
    assert verdicts(tmp_path, "TPF402,TPF405,TPF406") == {
        'rows = json.load(Path("rows.json").open())': Ruling.UNDECIDED,
        "loader = DataLoader(Read(8), batch_size=4, num_workers=1)": Ruling.UNDECIDED,
    }


WORKERS = """
import json
from pathlib import Path

from torch.utils.data import DataLoader, Dataset

Path("rows.json").write_text("[1]")


class Read(Dataset):
    def __init__(self, count: int):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index: int):
        rows = json.load(Path("rows.json").open())
        return torch.full((4,), float(rows[0]))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
loader = DataLoader(Read(8), batch_size=4, num_workers=1)
for x in loader:
    model(x.to(device)).sum().backward()
"""


def test_the_methods_of_loaders_are_restored() -> None:
    from torch.utils.data import DataLoader
    from torch.utils.data import dataloader as module

    single = module._SingleProcessDataLoaderIter

    def methods() -> list[object]:
        return [DataLoader.__iter__, DataLoader._get_iterator, single._next_data]

    before = methods()
    witness = Loaders(Recording(Locator(Path.cwd())), lambda do: lambda *given: do(*given) and None, lambda _: None)
    witness.start()
    assert not set(before) & set(methods())
    assert [batch.tolist() for batch in DataLoader([1, 2, 3], batch_size=2)] == [[1, 2], [3]]  # type: ignore[arg-type]
    other = DataLoader.__iter__
    witness.stop()
    assert methods() == before
    witness.start()
    inner = DataLoader.__iter__
    DataLoader.__iter__ = lambda loader: inner(loader)  # type: ignore[method-assign]
    later = DataLoader.__iter__
    witness.stop()
    assert DataLoader.__iter__ is later and other is not later
    DataLoader.__iter__ = before[0]  # type: ignore[method-assign, assignment]
