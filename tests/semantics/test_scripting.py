"""Which functions TorchScript may compile."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source


def scripted(text: str, folder: Path = Path()) -> list[str]:
    """The functions of a file that TorchScript may compile; the other files of its folder are checked with it."""
    source = Source(str(folder / "example.py"), dedent(text))
    project = Project([Path(source.path), *(path for path in folder.glob("*.py") if path.name != "example.py")])
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


HELPERS = "import torch\ndef f(x): return g(x)\ndef g(x): return x\ndef h(x): return x\n"


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ("import torch\nfrom example import f\nfast = torch.jit.script(f)\n", "f g"),
        ("import torch, example\nfast = torch.jit.script(example.h)\n", "h"),
        ("import torch\nfrom example import f, h\n@torch.jit.script\ndef outer(x): return f(x)\n", "f g h"),
        # Look-alikes.
        ("import torch\nfrom example import f\nfast = torch.jit.trace(f, torch.ones(1))\n", ""),
        ("import torch\nfrom elsewhere import f\nfast = torch.jit.script(f)\n", ""),
    ],
)
def test_what_other_files_may_compile(other: str, names: str, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(other, encoding="utf-8")
    assert scripted(HELPERS, tmp_path) == names.split()
