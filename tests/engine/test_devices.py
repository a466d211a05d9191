"""The devices of the tensors that names are bound to."""

from __future__ import annotations

from perflint.engine.devices import devices
from perflint.semantics.project import Project
from perflint.source.text import Source

TEXT = """\
import torch

a = torch.ones(3)
b = torch.ones(3, device="cuda")
c = 3
d = a if input() else b
e = None if input() else b
f = unknown()


def g(x: torch.Tensor):
    y = x.cpu()
    return y
"""


def test_names_of_tensors() -> None:
    found = [(each.name, each.span.line, each.device) for each in devices(Source("a.py", TEXT), Project())]
    assert found == [("a", 3, "cpu"), ("b", 4, "cuda"), ("e", 7, "cuda"), ("y", 12, "cpu")]
