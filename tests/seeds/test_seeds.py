"""Code of public articles on PyTorch performance, and what a careful reviewer says of it.

The files in `articles/` hold the code blocks as published, with their indentation restored.
Nearly all of them run once, on small tensors: there is little to say, and saying more would be
the fault. `synchronising_habits.py` is an article's list of what to avoid.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source

FOLDER = Path(__file__).with_name("articles")
HABITS = "synchronising_habits.py"
FILES = sorted(path.name for path in FOLDER.glob("*.py") if path.name != HABITS)

DOES_NOT_RUN = {
    "compile_timm.py": [(5, "TPF503")],  # a model that runs in training mode gives wrong results
    "cudagraph_trees.py": [(23, "TPF378")],  # torch.compiler.optimize
    "graphed_callables.py": [(10, "TPF378"), (25, "TPF601")],  # .to(device) of a function; its optimizer steps often
}
"""What torch does not have is worth a warning however often it runs."""

PEDANTIC = {
    # Created on the host and copied, where the device could have filled it; once, so nothing to say by default.
    "compile_pointwise.py": [(8, "TPF204")],
    "graphed_callables.py": [(10, "TPF378"), (11, "TPF204"), (21, "TPF501"), (22, "TPF108"), (25, "TPF601")],
    # TorchScript is deprecated.
    "cudagraph_trees.py": [(20, "TPF901"), (23, "TPF378"), (31, "TPF108")],
}

LOOP = """\
import torch


def decode(cuda_tensor: torch.Tensor, steps: int):
    cuda_tensor = cuda_tensor.cuda()
    for _ in range(steps):
        tensor = torch.ones(8)
"""


def check(path: str, text: str, profile: Profile) -> list[tuple[int, str]]:
    report = check_source(Source(path, text), Project([]), RuleSet(all_rules()), Settings(profile=profile))
    assert not report.problems
    return [(finding.span.line, finding.code) for finding in report.findings]


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_worth_a_warning_in_code_that_runs_once(name: str) -> None:
    assert check(name, read(name), Profile.DEFAULT) == DOES_NOT_RUN.get(name, [])


@pytest.mark.parametrize("name", PEDANTIC)
def test_what_a_pedant_says(name: str) -> None:
    assert check(name, read(name), Profile.PEDANTIC) == PEDANTIC[name]


def test_the_habits_in_a_loop() -> None:
    text = LOOP + indent(read(HABITS), " " * 8)
    first = LOOP.count("\n") + 1
    said = {(line - first, code) for line, code in check(HABITS, text, Profile.DEFAULT)}
    assert said == {
        (0, "TPF108"),  # print(cuda_tensor)
        (1, "TPF101"),  # .item()
        (2, "TPF204"),  # tensor.cuda()
        (3, "TPF109"),  # .cpu()
        (4, "TPF110"),  # .nonzero()
        (5, "TPF105"),  # if (cuda_tensor != 0).all()
    }


def test_the_habits_on_the_host() -> None:
    setup = "import torch\n\ntensor = torch.ones(8)\ncuda_tensor = torch.ones(1)\n"
    text = setup + read(HABITS).replace("tensor.cuda()\n", "tensor\n", 1)
    assert check(HABITS, text, Profile.AUDIT) == []
