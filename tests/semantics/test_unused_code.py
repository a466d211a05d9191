"""Code that a project keeps and does not run: retired folders, flags for debugging, branches for no elements."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perflint.findings import Heat
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.semantics.notation import Case, check, table

TRAINING = """
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        loss.item()
"""


@pytest.mark.parametrize(
    ("name", "others", "expected"),
    [
        ("legacy/probes/fit.py", {}, Heat.COLD),
        ("archive/fit.py", {"train.py": "import other\n"}, Heat.COLD),
        ("legacy/fit.py", {"legacy/run.py": "from legacy.fit import train\n"}, Heat.COLD),
        ("legacy/fit.py", {"tests/test_fit.py": "from legacy.fit import train\n"}, Heat.COLD),
        ("legacy/fit.py", {"train.py": "from legacy.fit import train\n"}, Heat.HOT),
        ("legacy/fit.py", {"train.py": "from legacy import fit\n"}, Heat.HOT),
        (
            "legacy/fit.py",
            {"legacy/run.py": "from legacy.fit import train\n", "go.py": "import legacy.run\n"},
            Heat.HOT,
        ),
        ("pkg/legacy/fit.py", {"pkg/__init__.py": "from .legacy.fit import train\n"}, Heat.HOT),
        ("experiments/fit.py", {}, Heat.HOT),
        ("legacy_models/fit.py", {}, Heat.HOT),
        ("legacy.py", {}, Heat.HOT),
    ],
)
def test_retired_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, others: dict[str, str], expected: Heat
) -> None:
    for place, text in {name: TRAINING, **others}.items():
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if place.startswith("pkg/"):
            (path.parent / "__init__.py").touch()
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    model = Model(Source(str(tmp_path / name), TRAINING), Project(list(tmp_path.rglob("*.py"))))
    (read,) = (call for call in model.nodes(ast.Call) if ast.unparse(call) == "loss.item()")
    assert model.heat(read) is expected


FLAGS = """
class Decoder(nn.Module):
    def forward(self, x: Tensor):
        if self.debug_nan:
            x.sum()                                # cold
        if self.nan_debug and x.mean() > 1:
            x.max()                                # cold
        if self.debugger_speed:
            x.min()                                # hot
        return x.sum()                             # hot
"""


@table(FLAGS)
def test_flags_for_debugging(case: Case) -> None:
    check(case)


OPTIONS = """
class Encoder(nn.Module):
    def forward(self, x: Tensor, kind: str, kinds: list):
        if kind == "none":
            x.sum()                                # cold
        if kind.lower() in ("none", "off"):
            x.sum()                                # cold
        if kind in ["none", "l1"]:
            x.sum()                                # hot
        if kind != "none":
            x.max()                                # hot
        else:
            x.max()                                # cold
        if kind in kinds:
            x.max()                                # hot
        if kind == "relu":
            x.max()                                # hot
        return x.sum()                             # hot
"""


@table(OPTIONS)
def test_options_that_switch_work_off(case: Case) -> None:
    check(case)


LENGTHS = """
class Encoder(nn.Module):
    def forward(self, x: Tensor, mask: Tensor):
        if not self.training and x.shape[1] > self.max_seq_len:
            x = x + table(x.shape[1]).to(x.device)  # cold
        else:
            x.sum()                                 # hot
        if x.size(1) <= self.config.max_position_embeddings:
            x.max()                                 # hot
        else:
            x.max()                                 # cold
        if len(x) > self.max_batch_size:
            x.min()                                 # hot
        if x.shape[1] > self.seq_len:
            x.min()                                 # hot
        if x.sum() > self.max_len:
            x.min()                                 # hot
        return x.mean()                             # hot
"""


@table(LENGTHS)
def test_inputs_longer_than_the_longest(case: Case) -> None:
    check(case)


NOTHING = """
def compute_loss(x: Tensor, boxes, targets, args):
    num_boxes = boxes.shape[0]
    if not num_boxes:
        x.sum()     # cold
        num_boxes = 1
    count = len(targets)
    if count == 0:
        x.sum()     # cold
    else:
        x.sum()     # hot
    if len(boxes) > 0:
        x.sum()     # hot
    else:
        x.sum()     # cold
    if len(targets["labels"]) == 0:
        x.sum()     # cold
    if len(args.gpus) == 0:
        x.sum()     # hot
    kept = self.state[x]
    if not len(kept):
        x.sum()     # hot
    if len(x.shape) == 0:
        x.sum()     # hot
    depth = args.depth
    if not depth:
        x.sum()     # hot
    if x.shape[0] == 1:
        x.sum()     # hot
    if num_boxes:
        x.sum()     # hot
    left = len(targets)
    while x.mean() > left:
        if not left:
            x.sum() # hot
        left -= 1
    count_or_two = len(targets)
    count_or_two = 2
    if not count_or_two:
        x.sum()     # hot
    if not (x > 0).any():
        x.sum()     # hot
for batch in loader:
    compute_loss(batch, boxes, targets, args).backward()
    optimizer.step()
"""


@table(NOTHING)
def test_branches_for_no_elements(case: Case) -> None:
    check(case)


TESTS_IN_TESTS = """
def run_all():
    def _test_block():
        y = net(torch.randn(2, 3, device="cuda"))
        y.sum().item()                              # cold
    def _test_time(x, y):
        y.sum().item()                              # warm
    def contest():
        y = net(torch.randn(2, 3, device="cuda"))
        y.sum().item()                              # warm
    _test_block()
"""


@table(TESTS_IN_TESTS)
def test_tests_in_functions(case: Case) -> None:
    check(case)


SCENES = """
class Density:
    def _densify_and_prune(self, grads: Tensor):
        grads.sum().item()       # cold
    def training_setup(self, grads: Tensor):
        grads.sum().item()       # cold
    def densities(self, grads: Tensor):
        grads.sum().item()       # warm
    def densify_each(self, grads: Tensor):
        grads.sum().item()       # hot
def train(model: nn.Module, loader, optimizer, density):
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
        density.densify_each(x)
"""


@table(SCENES)
def test_scenes_change_rarely(case: Case) -> None:
    check(case)
