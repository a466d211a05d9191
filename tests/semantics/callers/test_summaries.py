"""Calls across files: how often they make a line run, and the values that they pass."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perflint.findings import Heat
from perflint.semantics.callers.kept import summaries
from perflint.semantics.callers.summary import Summary
from perflint.semantics.model import LAST, Model, summary_of
from perflint.semantics.project import Project
from perflint.semantics.values import Device, Tensor
from perflint.source.text import Source

HELPER = """\
import torch

def read(x):
    return x.sum().item()
"""
METER = """\
import torch

class Meter:
    def update(self, **kwargs):
        for name, value in kwargs.items():
            if isinstance(value, torch.Tensor):
                value = value.item()
"""
MADE_AND_READ = """\
import torch

def made():
    return torch.ones(8, device="cuda")

def read(x):
    return x.sum().item()
"""
STEPS = """\
from {module} import {name}

def train(model, loader, optimizer):
    for x, y in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        {call}
"""


def model_of(folder: Path, name: str, files: dict[str, str]) -> Model:
    for each, text in files.items():
        path = folder / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Model(Source(str(folder / name), files[name]), Project(folder / each for each in files))


def read_of(model: Model) -> ast.Call:
    """The `.item()` of a file."""
    (read,) = (call for call in model.nodes(ast.Call) if ast.unparse(call).endswith(".item()"))
    return read


def device_read(model: Model) -> Device:
    """The device of the tensor that the `.item()` of a file reads."""
    read = read_of(model).func
    assert isinstance(read, ast.Attribute)
    tensor = model.value(read.value).tensor
    assert tensor is not None
    return tensor.device


def steps(module: str, name: str, call: str) -> str:
    return STEPS.format(module=module, name=name, call=call)


@dataclass
class Heats:
    """The heat of the `.item()` in `nets/ops.py`, by what the other files hold."""

    name: str
    heat: str
    files: dict[str, str]
    ops: str = HELPER


ONCE = "from nets.ops import read\nimport torch\nread(torch.zeros(3))\n"
UNKNOWN = "from nets.ops import read\ndef use(x):\n    return read(x)\n"
CASES = [
    Heats("a step", "hot", {"train.py": steps("nets.ops", "read", "read(loss)")}),
    Heats("a step by another name", "hot", {"train.py": steps("nets", "ops", "ops.read(loss)")}),
    Heats("a step and a top level", "hot", {"train.py": steps("nets.ops", "read", "read(loss)"), "once.py": ONCE}),
    Heats("behind a guard", "cold", {"train.py": steps("nets.ops", "read", "if step % 100 == 0: read(loss)")}),
    Heats("the top level alone", "cold", {"once.py": ONCE}),
    Heats("a function without callers", "warm", {"use.py": UNKNOWN}),
    Heats("a function that is called once", "cold", {"use.py": UNKNOWN + "use(1)\n"}),
    Heats("a function that a step calls", "hot", {"use.py": UNKNOWN, "train.py": steps("use", "use", "use(loss)")}),
    Heats(
        "a chain of three files",
        "hot",
        {
            "use.py": UNKNOWN,
            "more.py": "from use import use\ndef more(x):\n    return use(x)\n",
            "train.py": steps("more", "more", "more(loss)"),
        },
    ),
    Heats(
        "files that call each other",
        "warm",
        {
            "use.py": UNKNOWN + "from other import other\ndef f(x): other(x)\n",
            "other.py": "from use import use\ndef other(x): use(x)\n",
        },
    ),
    Heats(
        "tests do not count",
        "warm",
        {"tests/test_ops.py": "from nets.ops import read\ndef test_it():\n    read(1)\n", "use.py": UNKNOWN},
    ),
    Heats(
        "what a package exports is used by others, too",
        "warm",
        {"nets/__init__.py": "from .ops import read\n", "once.py": ONCE},
    ),
    Heats("given away at the top level", "warm", {"once.py": "from nets.ops import read\nregister(read)\n"}),
    Heats("given away in a step", "hot", {"train.py": steps("nets.ops", "read", "apply(read, loss)")}),
    Heats(
        "a file that mentions the name otherwise", "warm", {"once.py": ONCE, "other.py": "def f(x):\n    x.read()\n"}
    ),
    Heats(
        "another function of that name",
        "warm",
        {"use.py": UNKNOWN, "train.py": "def read(x): pass\n" + steps("nets", "ops", "read(loss)")},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_heat(case: Heats, tmp_path: Path) -> None:
    model = model_of(tmp_path, "nets/ops.py", {"nets/__init__.py": "", **case.files, "nets/ops.py": case.ops})
    assert model.heat(read_of(model)).value == case.heat


METHODS = """\
class Base:
    def run(self, x):
        return self.finish(x)

    def finish(self, x):
        return x

def train(model, loader, optimizer):
    work = Base()
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        work.run(loss)
"""
OVERRIDING = """\
from nets.base import Base
class Own(Base):
    def finish(self, x):
        return x.sum().item()
"""


def test_a_method_that_overrides_one_runs_as_often(tmp_path: Path) -> None:
    files = {"nets/__init__.py": "", "nets/base.py": METHODS, "nets/ops.py": OVERRIDING}
    model = model_of(tmp_path, "nets/ops.py", files)
    assert model.heat(read_of(model)).value == "hot"
    files["nets/base.py"] = METHODS.replace("work.run(loss)", "pass")
    model = model_of(tmp_path, "nets/ops.py", files)
    assert model.heat(read_of(model)).value == "warm"


@dataclass
class Passes:
    """The tensor that `.item()` reads in `ops.py`: its device and evidence, or "" for anything but a tensor."""

    name: str
    shown: str
    call: str
    ops: str = HELPER
    files: dict[str, str] = field(default_factory=dict)


ARGUMENTS = [
    Passes("a loss", "model USE", "read(loss)"),
    Passes("a tensor of the GPU", "cuda ANNOTATION", "read(torch.zeros(3, device='cuda'))"),
    Passes("a tensor of the CPU", "cpu ANNOTATION", "read(torch.zeros(3))"),
    Passes("a NumPy array", "", "read(numpy.zeros(3))"),
    Passes("something unknown", "caller USE", "read(unknown())", HELPER.replace("x.sum()", "x.detach()")),
    Passes("by keyword", "cuda ANNOTATION", "read(x=torch.zeros(3, device='cuda'))"),
    Passes("partial", "cuda ANNOTATION", "functools.partial(read, torch.zeros(3, device='cuda'))()"),
]


@pytest.mark.parametrize("case", ARGUMENTS, ids=lambda case: case.name)
def test_arguments(case: Passes, tmp_path: Path) -> None:
    train = "import functools, numpy, torch\n" + steps("nets.ops", "read", case.call)
    files = {"nets/__init__.py": "", "train.py": train, "nets/ops.py": case.ops, **case.files}
    model = model_of(tmp_path, "nets/ops.py", files)
    read = read_of(model).func
    assert isinstance(read, ast.Attribute)
    value = model.value(read.value).tensor
    assert ("" if value is None else f"{value.device.value} {value.evidence.name}") == case.shown


@pytest.mark.parametrize(
    ("call", "device"),
    [("meter.update(loss=loss)", "model"), ("meter.update(loss=1.0)", None), ("meter.update(**values)", None)],
)
def test_keyword_arguments(call: str, device: str | None, tmp_path: Path) -> None:
    train = "meter = None\n" + steps("nets.meter", "Meter", f"meter = Meter(); {call}")
    files = {"nets/__init__.py": "", "nets/meter.py": METER, "train.py": train}
    model = model_of(tmp_path, "nets/meter.py", files)
    value = model.parameters(model.function(read_of(model)))[1]["kwargs"]  # type: ignore[arg-type]
    found = [each for each in value.element.members if isinstance(each, Tensor)]  # type: ignore[attr-defined]
    assert [each.device.value for each in found] == ([device] if device else [])


def test_the_calls_are_shown(tmp_path: Path) -> None:
    files = {"nets/__init__.py": "", "nets/ops.py": HELPER, "use.py": UNKNOWN}
    files["train.py"] = steps("use", "use", "use(loss)")
    model = model_of(tmp_path, "nets/ops.py", files)
    (info,) = model.module.structure.functions.values()
    chain = model.chain(info)
    assert chain is not None
    assert chain.places(tmp_path / "nets" / "ops.py") == ["use.py:3", "train.py:8"]
    assert {path.name for path in model.view.record.code} >= {"use.py", "train.py"}


def test_an_overlay_has_summaries_of_its_own(tmp_path: Path) -> None:
    files = {"nets/__init__.py": "", "nets/ops.py": HELPER, "train.py": steps("nets.ops", "read", "read(loss)")}
    model = model_of(tmp_path, "nets/ops.py", files)
    assert model.heat(read_of(model)).value == "hot"
    project = model.view.project.overlay({tmp_path / "train.py": "from nets.ops import read\ndef f(x): read(x)\n"})
    changed = Model(Source(str(tmp_path / "nets/ops.py"), HELPER), project)
    assert changed.heat(read_of(changed)).value == "warm"
    undone = Model(
        Source(str(tmp_path / "nets/ops.py"), HELPER), project.overlay({tmp_path / "train.py": files["train.py"]})
    )
    assert undone.heat(read_of(undone)).value == "hot"


SET_UP = """\
import torch
from main import settings

def load(x):
    return x.sum().item()

def prepare():
    load(torch.ones(8, device=settings()))
"""


@pytest.mark.parametrize(
    "edited",
    [
        "import os\n" + SET_UP,
        SET_UP.replace("def load", "\n\nFIRST = 1\n\n\ndef load"),
        SET_UP.replace("from main import settings\n", "import main; settings = main.settings  # in one line\n"),
        SET_UP.replace("import torch\n", "import torch as torch")
        if False
        else SET_UP.replace("\ndef load", "def load"),
        SET_UP + "\n\ndef new(x):\n    return x + 1\n",
        SET_UP.replace("x.sum().item()", "(\n        x.sum().item()\n    )"),
    ],
)
def test_a_draft_has_the_calls_of_the_edited_file_from_before(tmp_path: Path, edited: str) -> None:
    files = {"ops.py": SET_UP, "main.py": "import ops\n\ndef settings():\n    return 'cuda'\n\nops.prepare()\n"}
    base = model_of(tmp_path, "ops.py", files)
    assert base.heat(read_of(base)) is Heat.COLD
    path = tmp_path / "ops.py"
    project = base.view.project.overlay({path: edited})

    def fail(project: Project, path: Path, round: int) -> Summary | None:
        raise AssertionError(path)

    source = Source(str(path), edited)
    with summaries(project).draft() as drafted:
        draft = Model(source, project)
        assert draft.heat(read_of(draft)) is Heat.COLD
        found = summaries(project).of(project, path, LAST, fail)
        lines = [call.line for calls in found.calls.values() for call in calls]
    assert path in drafted
    now = Model(source, project)
    assert now.heat(read_of(now)) is Heat.COLD
    assert lines == [call.line for calls in summary_of(project, path).calls.values() for call in calls]


def test_an_error_ends_a_draft(tmp_path: Path) -> None:
    files = {"ops.py": MADE_AND_READ, "train.py": "from ops import made, read\n\nread(made())\n"}
    base = model_of(tmp_path, "ops.py", files)
    assert device_read(base) is Device.CUDA
    edited = MADE_AND_READ.replace("cuda", "cpu")
    project = base.view.project.overlay({tmp_path / "ops.py": edited})
    source = Source(str(tmp_path / "ops.py"), edited)
    with summaries(project).draft() as drafted:
        assert device_read(Model(source, project)) is Device.CUDA
    assert drafted == {tmp_path / "train.py"}
    with pytest.raises(ValueError, match="a fault"), summaries(project).draft():
        raise ValueError("a fault")
    assert device_read(Model(source, project)) is Device.CPU
