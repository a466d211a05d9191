"""torch.compile and captures of CUDA graphs in real runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.findings import Ruling
from tests.tracer.witnesses.running import observed, traced, verdicts

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
COMPILED = """
import torch._dynamo

torch._dynamo.config.suppress_errors = True
torch._dynamo.config.cache_size_limit = 10**4
permitted = getattr(torch._dynamo.config, "reorderable_logging_" + "functions")


@torch.compile(backend="eager")
def plain(x):
    if x.shape[0] > 100:
        print("never")
    if x.dim() == 1:
        print("broken")
    y = x * 2
    return y


@torch.compile(backend="eager")
def loop(x):
    for i in range(2):
        print("in a loop")
        x = x + 1
    return x


@torch.compile(backend="eager")
def whole(x, mode):
    if mode:
        print("here")
    return x.sum() + 1


class Net(nn.Module):
    def forward(self, x):
        return torch.compile(lambda t: t * 2, backend="eager")(x)


net = Net()
torch.compile(net, backend="eager")
for step in range(4):
    y = plain(torch.ones(3)) + loop(torch.ones(3))
    permitted.add(print)
    whole(torch.ones(3), True)
    permitted.discard(print)
    net(torch.ones(2))
"""
CAPTURED = """
def fake(self):
    return self


torch.cuda.graph = type("graph", (), {"__enter__": fake, "__exit__": lambda self, *error: False})
from perflint.tracer import session
from perflint.tracer.witnesses.compilers import Captures

for witness in session._current._witnesses._all:
    if isinstance(witness, Captures):
        witness.start()
x = torch.ones(3, device="cuda")
with torch.cuda.graph():
    y = x.sum().cpu()


def fails(x):
    raise RuntimeError("not permitted")


try:
    with torch.cuda.graph():
        z = fails(x)
except RuntimeError:
    pass
"""


def test_compiled_functions(tmp_path: Path) -> None:
    trace = traced(tmp_path, COMPILED, simulate=False)
    assert "compile.traced" in observed(trace, "y = x * 2")
    assert observed(trace, 'print("broken') == observed(trace, 'print("never') == {}
    assert "compile.gave-up" in observed(trace, 'print("in a loop")')
    assert observed(trace, "torch.compile(lambda")["compile.called"] >= 4
    assert observed(trace, "torch.compile(net")["compile.unused"] == 1
    found = verdicts(tmp_path, "TPF702,TPF703,TPF705,TPF710,TPF711,TPF713")
    confirmed = {text for text, ruling in found.items() if ruling is Ruling.CONFIRMED}
    assert confirmed == {
        'print("broken")',
        'print("in a loop")',
        'return torch.compile(lambda t: t * 2, backend="eager")(x)',
        'torch.compile(net, backend="eager")',
    }
    assert found['print("never")'] is None
    assert {text for text, ruling in found.items() if ruling is Ruling.REFUTED} == {
        "torch._dynamo.config.suppress_errors = True",
        "torch._dynamo.config.cache_size_limit = 10**4",
        'print("here")',
    }


AGAIN = """
import torch._dynamo

torch._dynamo.config.recompile_limit = 10**4
torch._dynamo.config.automatic_dynamic_shapes = False


class Counting(nn.Module):
    steps = 0

    def forward(self, x):
        self.steps += 1
        return x + self.steps


net = torch.compile(Counting(), backend="eager")
for _ in range(TIMES):
    net(torch.ones(2))
"""


@pytest.mark.parametrize(("times", "ruling"), [(4, Ruling.REFUTED), (12, Ruling.CONFIRMED)])
def test_raised_limits(tmp_path: Path, times: int, ruling: Ruling) -> None:
    traced(tmp_path, AGAIN.replace("TIMES", str(times)), simulate=False)
    assert verdicts(tmp_path, "TPF713") == {"torch._dynamo.config.recompile_limit = 10**4": ruling}


BREAKS = """
import time
import torch._dynamo
from torch.utils import cpp_extension

setattr(cpp_extension, "load_" + "inline", lambda *given, **named: time)
kernels = cpp_extension.load_inline("kernels", cpp_sources="")
lstm, lengths, has_gradient = nn.LSTM(4, 4), torch.tensor([2, 3]), False


@torch.compile(backend="eager")
def differentiated(x):
    y = x.requires_grad_(True) * 2
    return y + 1


@torch.compile(backend="eager")
def recurrent(x):
    hidden, _ = lstm(x)
    return hidden + 1


@torch.compile(backend="eager")
def timed(x):
    y = x + time.time()
    return y + 1


@torch.compile(backend="eager")
def sized(x):
    steps = torch.arange(lengths.max())
    return steps + 1


@torch.compile(backend="eager")
def extended(x):
    y = x + kernels.perf_counter()
    return y + 1


SETTINGS
for function in (differentiated, recurrent, timed, sized, extended):
    for _ in range(2):
        function(torch.ones(3, 4, requires_grad=has_gradient))
"""
PERMITTED = """
has_gradient = True
for before, name in (("allow_", "rnn"), ("capture_", "scalar_outputs")):
    setattr(torch._dynamo.config, before + name, True)
for function in (time.time, time.perf_counter):
    torch.compiler.substitute_in_graph(function, skip_signature_check=True)(lambda: 0.0)
"""


@pytest.mark.parametrize(
    ("settings", "ruling"), [("", Ruling.CONFIRMED), (PERMITTED, Ruling.REFUTED)], ids=["by default", "permitted"]
)
def test_breaks_that_inputs_and_settings_prevent(tmp_path: Path, settings: str, ruling: Ruling) -> None:
    traced(tmp_path, BREAKS.replace("SETTINGS", settings), simulate=False)
    found = verdicts(tmp_path, "TPF375,TPF706,TPF707,TPF708,TPF709")
    # Whether the extension was compiled is another finding of the rule.
    assert found.pop('kernels = cpp_extension.load_inline("kernels", cpp_sources="")') is Ruling.UNDECIDED
    assert found == {
        "y = x.requires_grad_(True) * 2": ruling,
        "hidden, _ = lstm(x)": ruling,
        "y = x + time.time()": ruling,
        "steps = torch.arange(lengths.max())": ruling,
        "y = x + kernels.perf_counter()": ruling,
    }


COUNTED = """
class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += STEP
        return x + self.calls


STEP = AMOUNT
net = torch.compile(Counting(), backend="eager")
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(4):
    net(weight).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("amount", "ruling"), [("1", Ruling.CONFIRMED), ("0", Ruling.REFUTED)])
def test_counters(tmp_path: Path, amount: str, ruling: Ruling) -> None:
    traced(tmp_path, COUNTED.replace("AMOUNT", amount), simulate=False)
    assert verdicts(tmp_path, "TPF712") == {"self.calls += STEP": ruling}


def test_captures(tmp_path: Path) -> None:
    trace = traced(tmp_path, CAPTURED)
    assert observed(trace, "with torch.cuda.graph") == {"capture.done": 1, "capture.failed": 1}
    assert observed(trace, "raise RuntimeError") == {"capture.raised": 1}
