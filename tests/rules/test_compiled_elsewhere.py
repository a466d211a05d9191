"""Graph breaks in functions that a file of the project compiles, in whatever file they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.files import check_files

AUDIT = Settings(profile=Profile.AUDIT)
READ = "import torch\n\ndef scaled(x):\n    scale = x.abs().max().item()\n    return x / scale\n"
NET = """import torch
from layers import scaled

class Net(torch.nn.Module):
    def forward(self, x):
        return scaled(x)
"""


def found(folder: Path, files: Mapping[str, str]) -> list[tuple[str, int, str, str]]:
    """The findings about graph breaks in some files: file, line, code and message."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    reports = check_files([str(folder / f"{name}.py") for name in files], active_rules(AUDIT), AUDIT)
    every = [(source, finding) for source, report in reports for finding in report.findings]
    return sorted(
        (Path(source.path).stem, finding.span.line, finding.code, finding.message)
        for source, finding in every
        if finding.code.startswith("TPF70")
    )


COMPILED = {
    "a decorator of a function that calls it": {
        "layers": READ,
        "train": "import torch\nfrom layers import scaled\n\n@torch.compile\ndef step(x: torch.Tensor):\n"
        "    return scaled(x)\n",
    },
    "an argument": {
        "layers": READ,
        "train": "import torch\nimport layers\n\nstep = torch.compile(layers.scaled)\n",
    },
    "a module of a third file": {
        "layers": READ,
        "net": NET,
        "train": "import torch\nfrom net import Net\n\nnet = torch.compile(Net().cuda())\nnet(torch.ones(3))\n",
    },
    "a method": {
        "layers": READ,
        "net": NET,
        "train": "from net import Net\n\nnet = Net().cuda()\nnet.compile()\n",
    },
}


@pytest.mark.parametrize("files", COMPILED.values(), ids=COMPILED.keys())
def test_breaks_in_other_files(files: dict[str, str], tmp_path: Path) -> None:
    (finding,) = found(tmp_path, files)
    assert finding[:3] == ("layers", 4, "TPF701")
    assert "(train.py:" in finding[3]


NOT_COMPILED = {
    "compiles something else": {
        "layers": READ + "\ndef other(x):\n    return x * 2\n",
        "train": "import torch\nfrom layers import other, scaled\n\n@torch.compile\ndef step(x):\n    return other(x)\n"
        "\nscaled(torch.ones(3))\n",
    },
    "is called outside of compiled code": {
        "layers": READ,
        "train": "import re\nimport torch\nfrom layers import scaled\n\nscaled(torch.ones(3))\nre.compile('x')\n",
    },
    "is kept from it": {
        "layers": READ.replace("def scaled", "@torch.compiler.disable\ndef scaled"),
        "train": "import torch\nfrom layers import scaled\n\n@torch.compile\ndef step(x: torch.Tensor):\n"
        "    return scaled(x)\n",
    },
    "numbers of tensors are captured": {
        "layers": READ,
        "train": "import torch\nfrom layers import scaled\n\ntorch._dynamo.config.capture_scalar_outputs = True\n"
        "\n@torch.compile\ndef step(x: torch.Tensor):\n    return scaled(x)\n",
    },
}


@pytest.mark.parametrize("files", NOT_COMPILED.values(), ids=NOT_COMPILED.keys())
def test_code_that_is_not_compiled(files: dict[str, str], tmp_path: Path) -> None:
    assert found(tmp_path, files) == []
