"""Which functions TorchScript may compile."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source


def scripted(text: str) -> list[str]:
    """The functions of a file that TorchScript may compile."""
    source = Source("example.py", dedent(text))
    project = Project([Path(source.path)])
    project.adopt(source)
    model = Model(source, project)
    return [node.name for node in model.nodes(ast.FunctionDef) if model.is_scripted(node.lineno)]


NETWORK = """
    import torch
    from torch import nn

    class Inner(nn.Module):
        def forward(self, x):
            return helper(x)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x)

    class Other(nn.Module):
        def forward(self, x):
            return x

    def helper(x):
        return x

    def free(x):
        return x
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import torch\n@torch.jit.script\ndef f(x): return g(x)\ndef g(x): return x\ndef h(x): return x\n", "f g"),
        ("import torch\ndef f(x): return x\ndef h(x): return x\ng = torch.jit.script(f)\n", "f"),
        ("from torch import jit\ndef f(x): return x\ndef h(x): return x\ng = jit.script(f)\n", "f"),
        ("from torch.jit import script as s\ndef f(x): return x\ndef h(x): return x\ng = s(f)\n", "f"),
        ("import torch.jit as tj\ndef f(x): return x\ndef h(x): return x\ng = tj.script_if_tracing(f)\n", "f"),
        ("from fast import jit_fuser\n@jit_fuser\ndef f(x): return x\ndef h(x): return x\n", "f"),
        ("import torch\ncompiled = torch.jit.script\ndef f(x): return x\ndef h(x): return x\n", "f h"),
        ("import torch\ndef f(x): return x\ndef h(m): return torch.jit.script(m)\n", "f h"),
        ("import torch\ndef f(x):\n    if torch.jit.is_scripting(): return x\ndef h(x): return x\n", "f h"),
        ("from torch.jit import Final\ndef f(x): return x\n", "f"),
        ("import torch\nclass A(torch.jit.ScriptModule):\n    def f(self, x): return x\ndef h(x): return x\n", "f"),
        (dedent(NETWORK) + "torch.jit.script(Outer())\n", "forward __init__ forward helper"),
        (dedent(NETWORK) + "def make():\n    net = Other()\n    return torch.jit.script(net)\n", "forward"),
        # Look-alikes.
        ("import torch\ndef f(x): return x\ng = torch.jit.trace(f, torch.ones(1))\n", ""),
        ("import torch\ndef f(x): return torch.jit.is_tracing()\n", ""),
        ("import torch\nscript = open('x').read()\ndef f(x): return script\n", ""),
        ("import torch\nmodel = torch.jit.load('x')\ndef f(x): return model(x)\n", ""),
        ("import torch\ndef f(runner): return runner.script('x')\n", ""),
    ],
)
def test_what_torchscript_may_compile(text: str, names: str) -> None:
    assert scripted(text) == names.split()
