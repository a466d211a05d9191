"""Evaluation: whether autograd recorded it in vain, in which mode the layers ran, and whether models move."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.findings import Ruling
from perflint.tracer.events import Observation
from tests.tracer import warm
from tests.tracer.witnesses.running import observed, traced, verdicts

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
C, N, R = Ruling.CONFIRMED, Ruling.NO_COST, Ruling.REFUTED
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.1))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.body(x))


model = Net()
batches = [torch.randn(16, 8) for _ in range(4)]
"""
MODES = (
    NET
    + """
class Outer:
    def __init__(self, net):
        self.net = net

    def encode(self, x):
        return self.net(x)


class Asks(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, self.training)


def train(optimizer, frozen):
    for x in batches:
        out = model(x)  # trained
        out[:, 0] = 0
        frozen(x)  # frozen
        optimizer.zero_grad()
        out.mean().backward()
        optimizer.step()


frozen = nn.Linear(8, 8).requires_grad_(False)
train(torch.optim.SGD(model.parameters(), lr=0.1), frozen)
for x in batches:
    model(x)  # dropped, training
model.eval()
outer = Outer(model)
for x in batches:
    outer.encode(x)  # dropped, eval
with torch.no_grad():
    for x in batches:
        taught = model(x)  # not recorded
        student = Asks()(x)  # asks
with torch.inference_mode():
    model(batches[0])  # inference
frozen.requires_grad_(True)
frozen(batches[0]).sum().backward()
head = nn.Linear(4, 4)
used = head(taught)  # takes the result
held = model(batches[0])  # held
"""
)


def test_graphs_and_modes(tmp_path: Path) -> None:
    trace = traced(tmp_path, MODES, simulate=False)
    assert observed(trace, "# trained") == {"forward.graph-reached": 4, "forward.training-used": 4}
    assert observed(trace, "# frozen") == {"forward.no-graph": 4}
    assert observed(trace, "# dropped, training") == {"forward.graph-dropped": 4, "forward.training-unused": 4}
    assert observed(trace, "outer.encode(x)") == {"forward.graph-dropped": 4, "forward.eval": 4}
    assert observed(trace, "# not recorded") == {"forward.no-grad": 4, "forward.eval": 4, "forward.result-recorded": 1}
    assert observed(trace, "# asks") == {"forward.no-grad": 4}
    assert observed(trace, "# inference") == {"forward.inference": 1, "forward.eval": 1}
    assert observed(trace, "# takes the result") == {"forward.graph-held": 1, "forward.modeless": 1}
    assert observed(trace, "# held") == {"forward.graph-held": 1, "forward.eval": 1}
    # The input of each layer, what batch norm and dropout keep, 512 bytes each or a part of it.
    dropped = [each for each in trace.of(Observation) if each.place and "# dropped, training" in each.place.text]
    assert 1024 <= max(each.bytes for each in dropped) <= 8192


WIDE = """
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
x = torch.randn(2, 256)
for _ in range(3):
    model(x)  # dropped
"""


def test_the_memory_of_a_graph_is_without_the_weights(tmp_path: Path) -> None:
    trace = traced(tmp_path, WIDE, simulate=False)
    dropped = [each for each in trace.of(Observation) if each.place and "# dropped" in each.place.text]
    # The input of each layer and the output of each activation: 2 × 256 numbers. A weight has 256 × 256.
    assert {each.bytes for each in dropped if each.fact == "forward.graph-dropped"} == {3 * 2 * 256 * 4}


MANY = """
model = nn.Linear(4, 4)
x = torch.randn(2, 4)
for _ in range(320):
    model(x)  # dropped
"""


def test_calls_that_are_sampled_count_for_the_others(tmp_path: Path) -> None:
    assert observed(traced(tmp_path, MANY, simulate=False), "# dropped")["forward.graph-dropped"] == 320


EVALUATIONS = (
    NET
    + """
from helper import call_without_autograd


def wasteful(model, loader):
    model.eval()
    correct = 0
    for x in loader:
        correct += model(x).argmax(1).sum()  # wasteful
    return correct.item()


def evaluate(model, loader):
    model.eval()
    correct = 0
    for x in loader:
        correct += model(x).argmax(1).sum()  # off elsewhere
    return correct.item()


@torch.no_grad()  # plain
def predict(model, loader):
    model.eval()
    return [model(x).argmax(1).tolist() for x in loader]


@torch.no_grad()  # inside
def predict_inside(model, loader):
    model.eval()
    return [model(x).argmax(1).tolist() for x in loader]


def distill(loader):
    values, slow = Net(), Net()
    slow.load_state_dict(values.state_dict())
    optimizer = torch.optim.SGD(values.parameters(), lr=0.1)
    for x in loader:
        best = torch.max(slow(x), dim=1)[0]  # target
        loss = F.mse_loss(values(x)[:, 0], 0.99 * best)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def train(loader, optimizer, path):
    net = Net().train()
    other = Net().train()
    for number, x in enumerate(loader):
        net.to("cpu")  # stays
        other.to(torch.float32 if number % 2 else torch.float64)  # moves
        net(x).sum().backward()
        optimizer.step()
        torch.load(path)  # again
        torch.save({number: x}, "changes.pt")
        torch.load("changes.pt")  # changed


wasteful(model, batches)
call_without_autograd(evaluate, model, batches)
predict(model, batches)
with torch.inference_mode():
    predict_inside(model, batches)
distill(batches)
torch.save({}, "weights.pt")
train(batches, torch.optim.SGD(model.parameters(), lr=0.1), "weights.pt")
"""
)
HELPER = """
import torch

def call_without_autograd(function, *arguments):
    with torch.no_grad():
        return function(*arguments)
"""


def test_verdicts_on_evaluations_and_moves(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    traced(tmp_path, EVALUATIONS, simulate=False)
    rulings = verdicts(tmp_path, "TPF501,TPF502,TPF504")
    assert {text.partition("# ")[2]: ruling for text, ruling in rulings.items()} == {
        "wasteful": C,
        "off elsewhere": R,
        "plain": C,
        "inside": R,
        "target": C,
        "stays": N,
        "moves": C,
        "again": C,
        "changed": R,
    }


MODE_UNSET = (
    NET
    + """
from helper import switched


def validate(net, loader):
    correct = 0
    for x in loader:
        correct += net(x).argmax(1).sum().item()  # unset
    return correct


def test(net, loader):
    correct = 0
    for x in loader:
        correct += net(x).argmax(1).sum().item()  # set elsewhere
    return correct


validate(model, batches)
test(switched(model), batches)
"""
)


def test_verdicts_on_modes(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def switched(model):\n    return model.train(False)\n")
    traced(tmp_path, MODE_UNSET, simulate=False)
    rulings = verdicts(tmp_path, "TPF503")
    assert {text.partition("# ")[2]: ruling for text, ruling in rulings.items()} == {"unset": C, "set elsewhere": R}


UNCHANGED = """
import gc

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.ones(2, 4)).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
del model, optimizer, loss
gc.collect()
left = [each for each in gc.get_objects() if isinstance(each, (nn.Linear, torch.optim.SGD))]
rest = nn.Linear(4, 4)(torch.ones(1, 4)).sum().item()
open("result.txt", "w").write(f"{rest} {len(left)}")
"""


def test_the_program_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "program.py").write_text(f"import torch\nfrom torch import nn\n{UNCHANGED}")
    assert warm.script(tmp_path / "plain", "program.py").code == 0
    traced(tmp_path, UNCHANGED, simulate=False)
    plain = (tmp_path / "plain" / "result.txt").read_text()
    assert (tmp_path / "result.txt").read_text() == plain
    assert plain.endswith(" 0")


def test_the_wrappers_end() -> None:
    import torch

    from perflint.tracer.session import trace

    names = ("__call__", "to", "cuda", "half")
    before = [vars(torch.nn.Module)[name] for name in names], torch.load
    with trace():
        layer = torch.nn.Linear(2, 2)
        layer(torch.ones(1, 2))
        assert vars(torch.nn.Module)["__call__"] is not before[0][0]
    assert ([vars(torch.nn.Module)[name] for name in names], torch.load) == before
