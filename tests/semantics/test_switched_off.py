"""Branches for other values of parameters than those that the calls of the project give."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perflint.config.settings import Settings
from perflint.engine.projects import Projects
from perflint.findings import Heat
from perflint.semantics.heat.reasons import HeatReasons
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source

OPS = """
import torch

def reduce(x, {parameter}):
    if {test}:
        return x.sum().item()
    return x
"""
PLAIN = """
from ops import reduce

def train(model, loader, optimizer):
    for x, y in loader:
        loss = {call}
        loss.backward()
        optimizer.step()
"""


def heat(folder: Path, ops: str, others: dict[str, str]) -> Heat:
    """The heat of the read in `ops.py`, among other files."""
    for place, text in {"ops.py": ops, **others}.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    model = Model(Source(str(folder / "ops.py"), ops), Project(list(folder.rglob("*.py"))))
    (read,) = (call for call in model.nodes(ast.Call) if ast.unparse(call.func).endswith(".item"))
    return model.heat(read)


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in the folder of the project."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("parameter", "test", "call", "expected"),
    [
        ("_method='fast'", "_method == 'slow'", "reduce(model(x))", Heat.COLD),
        ("_method='fast'", "_method.startswith('slow')", "reduce(model(x))", Heat.COLD),
        ("_method='fast'", "_method in ('slow', 'exact')", "reduce(model(x))", Heat.COLD),
        ("_method='fast'", "_method != 'fast'", "reduce(model(x))", Heat.COLD),
        ("check=False", "check", "reduce(model(x))", Heat.COLD),
        ("check=False", "check and x.ndim", "reduce(model(x))", Heat.COLD),
        ("mask=None", "mask is not None", "reduce(model(x))", Heat.COLD),
        ("*, check=False", "check", "reduce(model(x))", Heat.COLD),
        # All calls pass one constant.
        ("check", "check", "reduce(model(x), False)", Heat.COLD),
        ("check=True", "check", "reduce(model(x), check=False)", Heat.COLD),
        ("check=True", "not check", "reduce(model(x), check=False)", Heat.HOT),
        ("check", "check", "reduce(model(x), False) + reduce(x, check=False)", Heat.COLD),
        ("check", "check", "reduce(model(x), False) + reduce(x, check=True)", Heat.HOT),
        ("check=False", "check", "reduce(model(x), False) + reduce(x, y)", Heat.HOT),
        ("every=10", "every == 1", "reduce(model(x), every=True)", Heat.HOT),
        ("every=10", "every > 50", "reduce(model(x), every=20)", Heat.COLD),
        # A call passes another value, or may.
        ("_method='fast'", "_method == 'slow'", "reduce(model(x), 'slow')", Heat.HOT),
        ("_method='fast'", "_method == 'slow'", "reduce(model(x), _method=y)", Heat.HOT),
        ("check=False", "check", "reduce(*y)", Heat.HOT),
        ("check=False", "check", "reduce(x, **y)", Heat.HOT),
        # The default is the branch that runs, or the test depends on more.
        ("_method='fast'", "_method == 'fast'", "reduce(model(x))", Heat.HOT),
        ("_method='fast'", "_method == 'slow' or x.ndim", "reduce(model(x))", Heat.HOT),
        ("_method='fast'", "_method == x.kind", "reduce(model(x))", Heat.HOT),
        ("_size=2", "_size == x.ndim", "reduce(model(x))", Heat.HOT),
        # Other code gets the function.
        ("check=False", "check", "y.apply(reduce, x)", Heat.HOT),
    ],
)
def test_branch_of_default(tmp_path: Path, parameter: str, test: str, call: str, expected: Heat) -> None:
    found = heat(tmp_path, OPS.format(parameter=parameter, test=test), {"train.py": PLAIN.format(call=call)})
    assert (found is Heat.COLD) is (expected is Heat.COLD)


def test_parameter_that_is_bound_again(tmp_path: Path) -> None:
    ops = OPS.format(parameter="_check=False", test="_check").replace("    if", "    _check = x.ndim\n    if")
    assert heat(tmp_path, ops, {"train.py": PLAIN.format(call="reduce(model(x))")}) is not Heat.COLD


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"other.py": "import ops\n\ndef pick(name):\n    return getattr(ops, name)\n"},
        {"pkg/__init__.py": "from ops import reduce\n"},
        {"other.py": "from ops import reduce as r\n\nr(1, True)\n"},
    ],
    ids=["no call", "by name", "exported", "other name"],
)
def test_other_callers(tmp_path: Path, others: dict[str, str]) -> None:
    ops = OPS.format(parameter="_check=False", test="_check")
    called = {"train.py": PLAIN.format(call="reduce(model(x))")} if others else {}
    assert heat(tmp_path, ops, called | others) is not Heat.COLD


def test_tests_do_not_count(tmp_path: Path) -> None:
    ops = OPS.format(parameter="_check=False", test="_check")
    others = {"train.py": PLAIN.format(call="reduce(model(x))"), "tests/test_ops.py": "reduce(1, True)\n"}
    assert heat(tmp_path, ops, others) is Heat.COLD


def test_functions_of_a_library_need_a_private_name(tmp_path: Path) -> None:
    library = {
        "pkg/__init__.py": "from pkg.loop import train\n",
        "pkg/loop.py": PLAIN.replace("ops", "pkg.ops").format(call="reduce(model(x))"),
    }
    for name, is_cold in (("check", False), ("_check", True)):
        ops = OPS.format(parameter=f"{name}=False", test=name)
        for place, text in {**library, "pkg/ops.py": ops}.items():
            (tmp_path / place).parent.mkdir(exist_ok=True)
            (tmp_path / place).write_text(text, encoding="utf-8")
        model = Model(Source(str(tmp_path / "pkg/ops.py"), ops), Project(list(tmp_path.rglob("*.py"))))
        (read,) = (call for call in model.nodes(ast.Call) if ast.unparse(call.func).endswith(".item"))
        assert (model.heat(read) is Heat.COLD) is is_cold


def test_methods_need_a_private_name(tmp_path: Path) -> None:
    text = """
class Loss:
    def {name}(self, x, check=False):
        if check:
            return x.sum().item()
        return x

    def step(self, x):
        return self.{name}(x)
"""
    assert heat(tmp_path, text.format(name="_reduce"), {}) is Heat.COLD
    assert heat(tmp_path, text.format(name="reduce"), {}) is not Heat.COLD
    assert heat(tmp_path, text.format(name="_reduce") + "\nLoss()._reduce(1, True)\n", {}) is not Heat.COLD
    by_name = "\n    def any(self, kind, x):\n        return getattr(self, f'_{kind}')(x, True)\n"
    assert heat(tmp_path, text.format(name="_reduce") + by_name, {}) is not Heat.COLD


def test_program_gives_its_own_functions_one_value(tmp_path: Path) -> None:
    text = OPS.format(parameter="check=True", test="check") + "\nif __name__ == '__main__':\n    reduce(1, check={0})\n"
    assert heat(tmp_path, text.format(False), {}) is Heat.COLD
    assert heat(tmp_path, text.format(True), {}) is not Heat.COLD
    assert heat(tmp_path, text.replace("if __name__ == '__main__':\n    ", "").format(False), {}) is not Heat.COLD
    other = {"train.py": PLAIN.format(call="reduce(model(x))")}
    assert heat(tmp_path, text.format(False), other) is not Heat.COLD


KEPT = """
import torch
from torch import nn

class Net(nn.Module{base}):
    def __init__(self, size, {parameter}):
        super().__init__()
        {stores}

    def forward(self, x):
        if {test}:
            return x.sum().item()
        return x
"""
MAKES = """
from ops import Net

def train(loader, optimizer):
    model = {call}
    for x, y in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
"""


def heat_in_project(folder: Path, ops: str, others: dict[str, str]) -> Heat:
    """The heat of the read in `ops.py`, in a project whose settings are known."""
    model = model_in_project(folder, {"ops.py": ops, **others})
    (read,) = (call for call in model.nodes(ast.Call) if ast.unparse(call.func).endswith(".item"))
    return model.heat(read)


def model_in_project(folder: Path, files: dict[str, str]) -> Model:
    """The model of `ops.py` in a project with other files."""
    for place, text in {"pyproject.toml": "", **files}.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Model(Source(str(folder / "ops.py"), files["ops.py"]), Projects(Settings()).of(folder / "ops.py"))


def kept(**given: str) -> str:
    """The model with a read behind an attribute."""
    usual = {"base": "", "parameter": "pulse=False", "stores": "self.pulse = pulse", "test": "self.pulse"}
    return KEPT.format(**{**usual, **given})


@pytest.mark.parametrize(
    ("given", "call", "expected"),
    [
        ({}, "Net(3)", Heat.COLD),
        ({"test": "not self.pulse"}, "Net(3)", Heat.HOT),
        ({"test": "self.pulse and x.ndim"}, "Net(3)", Heat.COLD),
        ({"test": "self.pulse or x.ndim"}, "Net(3)", Heat.HOT),
        ({"parameter": "pulse=0.1", "test": "self.pulse is None"}, "Net(3)", Heat.COLD),
        ({"parameter": "pulse='soft'", "test": "self.pulse == 'hard'"}, "Net(3)", Heat.COLD),
        ({"parameter": "pulse"}, "Net(3, False)", Heat.COLD),
        ({}, "Net(3, pulse=True)", Heat.HOT),
        ({}, "Net(3) or Net(4, True)", Heat.HOT),
        ({}, "Net(3, **options)", Heat.HOT),
        ({"stores": "super(Net, self).__init__()\n        self.pulse = pulse"}, "Net(3)", Heat.COLD),
        ({}, "make(Net)", Heat.HOT),
        ({}, "{'net': Net}['net'](3)", Heat.HOT),
        # The attribute may have other values.
        ({"stores": "self.pulse = pulse or size > 2"}, "Net(3)", Heat.HOT),
        ({"stores": "self.pulse = pulse\n        self.pulse = size > 2"}, "Net(3)", Heat.HOT),
        ({"stores": "pulse = size > 2\n        self.pulse = pulse"}, "Net(3)", Heat.HOT),
        ({"stores": "self.pulse = pulse\n        setattr(self, size, True)"}, "Net(3)", Heat.HOT),
        ({"stores": "self.pulse = pulse\n        self.__dict__.update(size)"}, "Net(3)", Heat.HOT),
        ({"stores": "self.pulse = pulse\n        print('{pulse}'.format(**self.__dict__))"}, "Net(3)", Heat.COLD),
        # A library may set the attributes of its own classes.
        ({"base": ", Trained"}, "Net(3)", Heat.HOT),
    ],
)
def test_branch_of_attribute(tmp_path: Path, given: dict[str, str], call: str, expected: Heat) -> None:
    found = heat_in_project(tmp_path, kept(**given), {"train.py": MAKES.format(call=call)})
    assert (found is Heat.COLD) is (expected is Heat.COLD)


@pytest.mark.parametrize(
    "others",
    [
        {"other.py": "import ops\n\ndef pick(model):\n    model.pulse = True\n"},
        {"other.py": "import ops\n\ndef pick(model):\n    setattr(model, 'pulse', True)\n"},
        {"other.py": "from ops import Net\n\nclass Pulsed(Net):\n    pass\n"},
        {"conf/net.yaml": "_target_: ops.Net\npulse: true\n"},
        {"other.py": "import ops\n\ndef pick(name):\n    return getattr(ops, name)\n"},
        {
            "pkg/__init__.py": "from ops import Net\n",
            "pyproject.toml": 'classifiers = ["Programming Language :: Python"]\n',
        },
    ],
    ids=["assigned", "by name", "derived", "settings", "class by name", "exported"],
)
def test_attributes_that_other_code_sets(tmp_path: Path, others: dict[str, str]) -> None:
    assert heat_in_project(tmp_path, kept(), {"train.py": MAKES.format(call="Net(3)")} | others) is not Heat.COLD


@pytest.mark.parametrize(
    "others",
    [
        {"pkg/__init__.py": "from ops import Net\n"},
        {"other.py": "from ops import Net\n\ndef count(net: Net, other: 'Net') -> list[Net]:\n    first: Net = net\n"},
    ],
    ids=["package of the project", "annotation"],
)
def test_names_that_call_nothing(tmp_path: Path, others: dict[str, str]) -> None:
    assert heat_in_project(tmp_path, kept(), {"train.py": MAKES.format(call="Net(3)")} | others) is Heat.COLD
    passed = {"another.py": "from ops import Net\n\nmake(Net)\n"}
    assert heat_in_project(tmp_path, kept(), {"train.py": MAKES.format(call="Net(3)")} | passed) is not Heat.COLD


def test_attributes_that_other_code_reads(tmp_path: Path) -> None:
    others = {
        "train.py": MAKES.format(call="Net(3)"),
        "other.py": "def pick(model):\n    return model.pulse\n",
        "conf/other.yaml": "_target_: torch.nn.Linear\n",
    }
    assert heat_in_project(tmp_path, kept(), others) is Heat.COLD


def test_reason(tmp_path: Path) -> None:
    model = model_in_project(tmp_path, {"ops.py": kept(), "train.py": MAKES.format(call="Net(3)")})
    (read,) = (call for call in model.nodes(ast.Call) if ast.unparse(call.func).endswith(".item"))
    said = " ".join(step.text for step in HeatReasons(model).of(read))
    assert "`if self.pulse`, which all calls of the project give one value" in said


CONFIGURED = """
from torch import nn

class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, x):
        if {test}:
            return x.sum().item()
        return x
"""
FIELDS = """
from dataclasses import dataclass, field

@dataclass
class Config:
    {field}
"""


@pytest.mark.parametrize(
    ("field", "test", "others", "expected"),
    [
        ("pulse: bool = False", "self.config.pulse", {}, Heat.COLD),
        ("pulse: bool = False", "self.config.pulse and self.training", {}, Heat.COLD),
        ("pulse: float = 0.0", "self.config.pulse > 0", {}, Heat.COLD),
        ("pulse: bool = field(default=False)", "self.config.pulse", {}, Heat.COLD),
        ("pulse = False", "self.config.pulse", {}, Heat.COLD),
        ("pulse: bool = False", "self.config.pulse", {"a.yaml": "net:\n  pulse: false\n"}, Heat.COLD),
        ("pulse: bool = False", "self.config.pulse", {"a.json": '{"pulse": false, "depth": 3}'}, Heat.COLD),
        ("pulse: bool = False", "self.config.pulse", {"a.py": "names = ['pulse', 'depth']\n"}, Heat.COLD),
        ("pulse: bool = True", "self.config.pulse", {}, Heat.HOT),
        ("pulse: bool = True", "not self.config.pulse", {}, Heat.HOT),
        ("pulse: str = 'soft'", "self.config.pulse == 'hard'", {}, Heat.HOT),
        ("pulse: str = None", "self.config.pulse is not None", {}, Heat.COLD),
        ("pulse: bool = False", "not self.config.pulse", {}, Heat.HOT),
        ("pulse: bool", "self.config.pulse", {}, Heat.HOT),
        ("depth: bool = False", "self.config.pulse", {}, Heat.HOT),
        ("pulse: bool = False", "self.config.pulse", {"a.yaml": "net:\n  pulse: true\n"}, Heat.HOT),
        ("pulse: bool = False", "self.config.pulse", {"a.yaml": "net:\n  pulse: ${pulsed}\n"}, Heat.HOT),
        ("pulse: bool = False", "self.config.pulse", {"run.sh": "python train.py --pulse\n"}, Heat.HOT),
        (
            "pulse: bool = False",
            "self.config.pulse",
            {"a.py": "from conf import Config\nConfig(pulse=True)\n"},
            Heat.HOT,
        ),
        ("pulse: bool = False", "self.config.pulse", {"a.py": "def f(config):\n    config.pulse = True\n"}, Heat.HOT),
        ("pulse: bool = False", "self.config.pulse", {"a.py": "given = {'pulse': True}\n"}, Heat.HOT),
        ("pulse: bool = False", "self.config.pulse", {"a.py": "class Other:\n    pulse = True\n"}, Heat.HOT),
        ("pulse: bool = False", "self.config.pulse", {"a.py": "def make(pulse):\n    return pulse\n"}, Heat.HOT),
        (
            "pulse: bool = False",
            "self.config.pulse",
            {"pyproject.toml": 'classifiers = ["Programming Language :: Python"]\n'},
            Heat.HOT,
        ),
    ],
)
def test_fields_of_settings(tmp_path: Path, field: str, test: str, others: dict[str, str], expected: Heat) -> None:
    files = {"conf.py": FIELDS.format(field=field), "train.py": MAKES.format(call="Net(make())")} | others
    assert (heat_in_project(tmp_path, CONFIGURED.format(test=test), files) is Heat.COLD) is (expected is Heat.COLD)


@pytest.mark.parametrize(
    ("option", "others", "expected"),
    [
        ("'--pulse', action='store_true'", {}, Heat.COLD),
        ("'--pulse', type=float, default=0", {}, Heat.COLD),
        ("'--pulse', type=float, default=1", {}, Heat.HOT),
        ("'--pulse', action='store_false'", {}, Heat.HOT),
        ("'--pulse', default='soft'", {}, Heat.HOT),
        ("'--pulse', type=float, default=kind", {}, Heat.HOT),
        ("'--pulse', action='store_true'", {"run.sh": "python train.py --pulse\n"}, Heat.HOT),
    ],
)
def test_options_of_programs(tmp_path: Path, option: str, others: dict[str, str], expected: Heat) -> None:
    program = f"import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument({option})\n"
    files = {"options.py": program, "train.py": MAKES.format(call="Net(make())")} | others
    found = heat_in_project(tmp_path, CONFIGURED.format(test="self.config.pulse"), files)
    assert (found is Heat.COLD) is (expected is Heat.COLD)


@pytest.mark.parametrize(
    ("option", "others", "expected"),
    [
        ("'--pulse', type=int, default=1", {}, Heat.HOT),
        ("'--pulse-every', type=int, default=1", {}, Heat.HOT),
        ("'--pulse', type=int, default=50", {}, Heat.COLD),
        ("'--pulse', type=int", {}, Heat.COLD),
        ("'--pulse', type=int, default=1", {"run.sh": "python train.py --pulse 50\n"}, Heat.COLD),
        ("'--pulse', type=int, default=1", {"a.py": "def f(config):\n    config.pulse = 50\n"}, Heat.COLD),
    ],
)
def test_intervals_of_programs(tmp_path: Path, option: str, others: dict[str, str], expected: Heat) -> None:
    program = f"import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument({option})\n"
    files = {"options.py": program, "train.py": MAKES.format(call="Net(make())")} | others
    name = "pulse_every" if "every" in option else "pulse"
    found = heat_in_project(tmp_path, CONFIGURED.format(test=f"self.step % self.config.{name} == 0"), files)
    assert found is expected
