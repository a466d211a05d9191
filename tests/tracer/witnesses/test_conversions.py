from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tracer.witnesses.running import observed, traced

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
PROGRAM = """
model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x = torch.ones(2, 4)
    there = x.cuda()
    stays = there.to("cuda")
    half = there.half()
    model(there).sum().backward()
    optimizer.step()
"""


def test_conversions(tmp_path: Path) -> None:
    trace = traced(tmp_path, PROGRAM)
    assert observed(trace, "there = ") == {"to.other-device": 3, "arrived.other-dtype": 3}
    assert observed(trace, "stays = ") == {"to.same-tensor": 3}
    assert observed(trace, "half = ") == {"to.same-device": 3}
    assert trace.header.line_steps == 3
