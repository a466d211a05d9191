"""What a fix must not be called safe without: each text differs from a safe one by what takes the proof away."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.files import check_files
from perflint.findings import Safety
from tests.rules.harness import NEWEST, lint, source_cases

RULES = {case.rule.code: case.rule for case in source_cases()}

RESUME = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

def resume(path):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint = torch.load(path, map_location="cuda")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return model, optimizer
"""


def safeties(code: str, text: str) -> list[Safety | None]:
    """How safe the fixes of one rule are."""
    return [None if found.fix is None else found.fix.safety for found in lint(text, [RULES[code]], "audit")]


LOADS_OTHERWISE = [
    ("    def load_state_dict(self, state): self.layer.weight.data = state['layer.weight']\n"),
    ("    def set_extra_state(self, state): self.mean = state\n"),
    ("    def _load_from_state_dict(self, state, *rest): self.mean = state['mean']\n"),
]


def test_a_checkpoint_that_is_only_copied() -> None:
    assert safeties("TPF608", RESUME) == [Safety.SAFE]


@pytest.mark.parametrize("method", LOADS_OTHERWISE)
def test_a_class_that_loads_otherwise(method: str) -> None:
    text = RESUME.replace("\ndef resume", f"{method}\ndef resume")
    assert safeties("TPF608", text) == [Safety.UNSAFE]


@pytest.mark.parametrize("base", ["Base", "torch.nn.Module, Base"])
def test_a_class_whose_base_is_not_in_sight(base: str) -> None:
    text = "from elsewhere import Base\n" + RESUME.replace("torch.nn.Module", base)
    assert safeties("TPF608", text) == [Safety.UNSAFE]


def test_a_module_whose_method_is_replaced() -> None:
    text = RESUME.replace("    model.load", "    model.load_state_dict = print\n    model.load")
    assert safeties("TPF608", text) == [Safety.UNSAFE]


def test_a_part_that_is_not_in_sight() -> None:
    text = "import elsewhere\n" + RESUME.replace("torch.nn.Linear(3, 2)", "elsewhere.Layer(3)")
    assert safeties("TPF608", text) == [Safety.UNSAFE]


def test_a_checkpoint_of_the_module() -> None:
    text = RESUME.replace("def resume(path):", "if path := 'weights.pt':").replace("    return model, optimizer\n", "")
    assert safeties("TPF608", text) == [Safety.UNSAFE]


@pytest.mark.parametrize(
    ("made", "before", "after", "since"),
    [
        ("Linear(3, 2).cuda()", "", "", (2, 0)),
        ('Linear(3, 2).to("cuda:1")', "", "", (2, 0)),
        ("Linear(3, 2)", "    model.cuda()", "", (2, 0)),
        ("Linear(3, 2)", "    if device: model.cuda()", "", (2, 4)),
        ("Linear(3, 2)", "", "    model.cuda()", (2, 4)),
        ("Linear(3, 2)", "    model.to(device)", "", (2, 4)),
        ('Linear(3, 2).to("cpu")', "", "", (2, 4)),
    ],
)
def test_old_torch_fuses_only_parameters_on_the_device(
    made: str, before: str, after: str, since: tuple[int, int]
) -> None:
    lines = [
        "from torch.nn import Linear",
        "from torch.optim import AdamW",
        "def make(device):",
        f"    model = {made}",
        before,
        "    optimizer = AdamW(model.parameters(), foreach=False)",
        after,
        "    return model, optimizer",
    ]
    (found,) = lint("\n".join(lines), [RULES["TPF601"]], "audit")
    assert found.fix is not None and found.fix.since == since


@pytest.mark.parametrize(
    ("before", "read", "safety"),
    [
        ("pass", "x", Safety.SAFE),
        ("x[0] = 1", "x * 2", Safety.SAFE),
        ("y = x; y.unsqueeze_(1)", "x", None),
        ("for _, y in {1: x}.items(): y.unsqueeze_(1)", "x", None),
        ("def inner(y=x): y.unsqueeze_(1)", "x", Safety.UNSAFE),
        ("torch.neg(self.y, out=x)", "x", Safety.UNSAFE),
        ("self.layer.register_forward_hook(self.widen)", "x", Safety.UNSAFE),
        ("setattr(x, 'data', self.y)", "x", Safety.UNSAFE),
        ("y = [x]; z = y; z[0] = x[:, None]; x = y[0]", "x", None),
        ("y = [x[:, None], x]; y.reverse(); x = y[1]", "x", None),
        ("(lambda y=(x := x[:, None]): y)()", "x", None),
        ("(x := x[:, None]) if self else None", "x", None),
        ("x.data = x.data[:, None]", "x", Safety.UNSAFE),
        ("elsewhere.widen(x)", "x", Safety.UNSAFE),
        ("widen(x)", "x", Safety.UNSAFE),
        ("inner()", "x", None),
        ("self.x = x", "self.x", Safety.UNSAFE),
        ("pass", "everywhere", Safety.UNSAFE),
        ("pass", "x.data", Safety.UNSAFE),
        ("y = x.data", "y", Safety.UNSAFE),
    ],
)
def test_a_tensor_of_one_dimension(before: str, read: str, safety: Safety | None) -> None:
    shared = "    def inner():\n        nonlocal x\n        x = x[:, None]\n" * (before == "inner()")
    text = (
        "import torch, elsewhere\neverywhere = torch.zeros(3).cuda()\n"
        + "def widen(t): t.unsqueeze_(1)\n" * (before == "widen(x)")
        + f"def f(self):\n    x = torch.zeros(3).cuda()\n{shared}    {before}\n    return [t.item() for t in {read}]\n"
    )
    assert safeties("TPF103", text) == [safety]


@pytest.mark.parametrize(
    ("given", "safety"),
    [
        ("self.rows()", Safety.UNSAFE),
        ("self.rows().abs()", Safety.UNSAFE),
        ("self.kept[0]", Safety.UNSAFE),
        ("torch.zeros(self.size).cuda()", Safety.UNSAFE),
        ("torch.zeros(3).cuda().abs()", Safety.SAFE),
    ],
)
@pytest.mark.parametrize("name", ["x", ""])
def test_a_tensor_of_an_object_whose_class_other_files_may_derive(given: str, safety: Safety, name: str) -> None:
    text = (
        "import torch\nclass Rows:\n    def __init__(self):\n        self.size = 3\n        self.kept = [self.rows()]\n"
        "    def rows(self):\n        return torch.zeros(3).cuda()\n"
        f"    def f(self):\n        x = {given}\n        return [t.item() for t in {name or given}]\n"
    )
    assert safeties("TPF103", text) == [safety]


@pytest.mark.parametrize(("declared", "safety"), [("x", Safety.UNSAFE), ("y", Safety.SAFE)])
def test_a_shape_that_another_function_may_change(declared: str, safety: Safety) -> None:
    text = (
        "import torch\n\ndef f():\n    x, y = torch.arange(3, device='cuda'), 0\n"
        f"    def inner():\n        nonlocal {declared}\n        {declared} = torch.tensor(2)\n    inner()\n"
        "    rows = x.unsqueeze(0).repeat(4, 1)\n    return torch.cat([rows, rows])\n"
    )
    assert safeties("TPF212", text) == [safety]


@pytest.mark.parametrize(("declared", "is_offered"), [("number", False), ("other", True)])
def test_a_number_that_is_tested_and_that_another_function_may_change(declared: str, *, is_offered: bool) -> None:
    text = (
        "import torch\nfrom elsewhere import given\n\n"
        f"def change():\n    global {declared}\n    {declared} = [1]\n\n"
        "number = given()\n\ndef f(other):\n"
        "    if isinstance(number, float) and isinstance(other, float):\n        change()\n"
        f"        return torch.tensor({declared}, device='cuda')\n"
    )
    assert [each is not None and each is not Safety.DISPLAY for each in safeties("TPF116", text)] == [is_offered]


COUNTS = """
import torch

class Rows:
    @property
    def x(self) -> torch.Tensor:
        {body}
        return torch.zeros(3, 4, device="cuda")

    def pick(self, y: torch.Tensor):
        for _ in range(9):
            print({read})
"""


@pytest.mark.parametrize(
    ("code", "read"),
    [
        ("TPF118", "self.x[torch.arange(3), y]"),
        ("TPF204", "torch.zeros(3).to(self.x)"),
        ("TPF116", "torch.tensor(3.0).to(self.x)"),
    ],
)
@pytest.mark.parametrize(("body", "is_fixed"), [("pass", True), ("self.count += 1", False), ("log(self)", False)])
def test_a_property_is_read_as_often_as_before(code: str, read: str, body: str, *, is_fixed: bool) -> None:
    assert [each is not None for each in safeties(code, COUNTS.format(read=read, body=body))] == [is_fixed]


@pytest.mark.parametrize(("body", "is_fixed"), [("pass", True), ("self.count += 1", False), ("log(self)", False)])
def test_a_property_of_another_file_is_read_as_often_as_before(tmp_path: Path, body: str, *, is_fixed: bool) -> None:
    made = 'torch.zeros(3, 4, device="cuda")'
    base = COUNTS.partition("    def pick")[0].format(body=body).replace(f"return {made}", "return self.made")
    base += f"    made = {made}\n"
    rows = (
        "import torch\nfrom base import Rows\n\nclass Mine(Rows):\n"
        "    def f(self):\n        return torch.zeros(3).to(self.x)\n"
    )
    (tmp_path / "base.py").write_text(base, encoding="utf-8")
    (tmp_path / "rows.py").write_text(rows, encoding="utf-8")
    settings = Settings(profile=Profile.AUDIT, torch_version=NEWEST)
    ((_, report),) = check_files([str(tmp_path / "rows.py")], active_rules(settings), settings)
    fixes = [found.fix is not None for found in report.findings if found.code == "TPF204"]
    assert fixes == [is_fixed]
