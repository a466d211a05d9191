"""Switches of the process, debugging, and deprecated or missing APIs in real runs."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.findings import Ruling
from perflint.tracer.file import write_trace
from perflint.tracer.trace import Trace
from tests.tracer.witnesses.running import OUTPUT, observed, traced, verdicts

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
ON = """
import os
import time
import warnings
from torch.autograd import gradcheck

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
torch.backends.cudnn.enabled = False
torch.use_deterministic_algorithms(True)
torch.autograd.set_detect_anomaly(True)
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 2)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler(enabled=False)
warnings.simplefilter("ignore")
scripted = torch.jit.script(nn.Linear(2, 2))


for step in range(3):
    begin = time.perf_counter()
    y = net(torch.ones(2, 3, 4, 4, device="cuda"))
    torch.cuda.synchronize()
    took = time.perf_counter() - begin
    begin = time.perf_counter()
    y = net(torch.ones(2, 3, 4, 4, device="cuda"))
    other = time.perf_counter() - begin
    y.sum().backward()
    gradcheck(torch.sin, (torch.ones(1, dtype=torch.float64, requires_grad=True),))
    optimizer.step()
"""
OFF = """
import os

torch.backends.cudnn.enabled = False
torch.use_deterministic_algorithms(True)
torch.autograd.set_detect_anomaly(True)
torch.backends.cudnn.flags(enabled=True)
for name in ("enabled",):
    setattr(torch.backends.cudnn, name, True)
off = {"mode": False}
torch.use_deterministic_algorithms(**off)
torch.autograd.set_detect_anomaly(**off)
net = nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def there():
    context = torch.no_gradient
    return context


setattr(torch, "no_" + "gradient", torch.no_grad)
there()
for step in range(3):
    net(torch.ones(2, 4, device="cuda")).sum().backward()
    optimizer.step()
"""


def test_switches_that_are_on(tmp_path: Path) -> None:
    trace = traced(tmp_path, ON)
    process = observed(trace)
    assert process["cudnn.off"] == process["algorithms.deterministic"] == 3
    assert "backward.plain" not in observed(trace)
    assert observed(trace, "set_detect_anomaly") == {"anomaly.backward": 3}
    assert observed(trace, "gradcheck(") == {"gradients.checked": 3}
    assert verdicts(tmp_path, "TPF358,TPF606,TPF901,TPF902,TPF962") == {
        'os.environ["CUDA_LAUNCH_BLOCKING"] = "1"': Ruling.UNDECIDED,
        "torch.backends.cudnn.enabled = False": Ruling.CONFIRMED,
        "torch.use_deterministic_algorithms(True)": Ruling.CONFIRMED,
        "torch.autograd.set_detect_anomaly(True)": Ruling.CONFIRMED,
        "gradcheck(torch.sin, (torch.ones(1, dtype=torch.float64, requires_grad=True),))": Ruling.CONFIRMED,
        "scaler = torch.cuda.amp.GradScaler(enabled=False)": Ruling.CONFIRMED,
        "scripted = torch.jit.script(nn.Linear(2, 2))": Ruling.CONFIRMED,
        "other = time.perf_counter() - begin": Ruling.UNDECIDED,
    }


def test_switches_that_are_off_again(tmp_path: Path) -> None:
    trace = traced(tmp_path, OFF)
    assert observed(trace)["cudnn.on"] == observed(trace)["algorithms.any"] == 3
    assert observed(trace)["backward.plain"] == 3
    assert verdicts(tmp_path, "TPF358,TPF606,TPF378") == {
        "torch.backends.cudnn.enabled = False": Ruling.REFUTED,
        "torch.use_deterministic_algorithms(True)": Ruling.REFUTED,
        "torch.autograd.set_detect_anomaly(True)": Ruling.REFUTED,
        "context = torch.no_gradient": Ruling.REFUTED,
    }


DEPRECATED = """
from torch.utils.data import DataLoader

q = torch.ones(1, 1, 4, 8)
with torch.backends.cuda.sdp_kernel(enable_flash=False):
    F.scaled_dot_product_attention(q, q, q)
loader = DataLoader([1, 2], pin_memory_device="cuda")
frozen = torch.jit.freeze(torch.jit.script(nn.Linear(2, 2).eval()))
"""


def test_deprecated_names(tmp_path: Path) -> None:
    trace = traced(tmp_path, DEPRECATED, simulate=False)
    lines = DEPRECATED.splitlines()
    # Only the version differs in the trace of a run that is older than the deprecations.
    for version, ruling in ((trace.header.torch, Ruling.CONFIRMED), ("2.4.1+cpu", Ruling.REFUTED)):
        header = replace(trace.header, torch=version)
        write_trace(tmp_path / OUTPUT, Trace(header, trace.records))
        assert verdicts(tmp_path, "TPF377,TPF903,TPF904") == {lines[at]: ruling for at in (4, 6, 7)}
