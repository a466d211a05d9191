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
DRIVER = """
def refuse(*arguments):
    raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
"""
CAPTURED = """
import sys

sys.path.insert(0, "site-packages")
import driver


class Capture:
    is_on = False

    def __init__(self, graph=None):
        pass

    def __enter__(self):
        Capture.is_on = True

    def __exit__(self, *error):
        Capture.is_on = False

    def is_capturing(self=None):
        return Capture.is_on


torch.cuda.graph = torch.accelerator.current_stream = Capture
torch.cuda.is_current_stream_capturing = Capture.is_capturing
from perflint.tracer import session
from perflint.tracer.witnesses.compilers import Captures

for witness in session._current._witnesses._all:
    if isinstance(witness, Captures):
        witness.start()


def reads(x, graph):
    with torch.cuda.graph(graph):
        return x.sum().item()


def fails(x, graph):
    with torch.cuda.graph(graph):
        return x.max().item()


def steps(weight, graph):
    optimizer = torch.optim.Adam([weight], lr=0.1)
    with torch.cuda.graph(graph):
        optimizer.step()


def steps_on_gpu(weight, graph, options):
    adam = torch.optim.Adam([weight], lr=0.1)
    adam.param_groups[0].update(options)
    with torch.cuda.graph(graph):
        adam.step()


def run(function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        print(error)


x = torch.ones(3, device="cuda", requires_grad=True)
run(reads, x, None)
torch.Tensor.item = driver.refuse
run(fails, x, None)
run(steps, x, None)
run(steps_on_gpu, x, None, {"captur" + "able": True})
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
def differentiated(x: torch.Tensor):
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


@torch.compile(backend="eager")
def read(x):
    y = x * lengths.sum().item()
    return y + 1


@torch.compile(backend="eager")
def chosen(x: torch.Tensor):
    rows = lengths.nonzero()
    return rows + 1


SETTINGS
for function in (differentiated, recurrent, timed, sized, extended, read, chosen):
    for _ in range(2):
        function(torch.ones(3, 4, requires_grad=has_gradient))
"""
PERMITTED = """
has_gradient = True
for before, name in (("allow_", "rnn"), ("capture_", "scalar_outputs"), ("capture_", "dynamic_output_shape_ops")):
    setattr(torch._dynamo.config, before + name, True)
for function in (time.time, time.perf_counter):
    torch.compiler.substitute_in_graph(function, skip_signature_check=True)(lambda: 0.0)
"""


@pytest.mark.parametrize(
    ("settings", "ruling"), [("", Ruling.CONFIRMED), (PERMITTED, Ruling.REFUTED)], ids=["by default", "permitted"]
)
def test_breaks_that_inputs_and_settings_prevent(tmp_path: Path, settings: str, ruling: Ruling) -> None:
    traced(tmp_path, BREAKS.replace("SETTINGS", settings), simulate=False)
    found = verdicts(tmp_path, "TPF375,TPF701,TPF704,TPF706,TPF707,TPF708,TPF709")
    # Whether the extension was compiled is another finding of the rule.
    assert found.pop('kernels = cpp_extension.load_inline("kernels", cpp_sources="")') is Ruling.UNDECIDED
    assert found == {
        "y = x.requires_grad_(True) * 2": ruling,
        "hidden, _ = lstm(x)": ruling,
        "y = x + time.time()": ruling,
        "steps = torch.arange(lengths.max())": ruling,
        "y = x + kernels.perf_counter()": ruling,
        "y = x * lengths.sum().item()": ruling,
        "rows = lengths.nonzero()": ruling,
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
    """The simulation cannot capture: the program stands in for the class and for the error of the driver."""
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "driver.py").write_text(DRIVER)
    trace = traced(tmp_path, CAPTURED)
    assert observed(trace, "with torch.cuda.graph") == {"capture.done": 2, "capture.failed": 2}
    assert observed(trace, "return x.max().item()")["capture.raised"] == 1
    assert verdicts(tmp_path, "TPF801") == {
        "return x.sum().item()": Ruling.REFUTED,
        "return x.max().item()": Ruling.CONFIRMED,
    }
    assert verdicts(tmp_path, "TPF809") == {"optimizer.step()": Ruling.CONFIRMED, "adam.step()": Ruling.REFUTED}
