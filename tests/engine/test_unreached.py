"""Waits in functions that no code is known to call are information, and code that no program reaches is cold."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.findings import Heat
from perflint.rules.registry import RuleSet, all_rules
from perflint.source.text import Source
from tests.engine.test_wanted import shown

FUNCTIONS = """
import torch
from torch import nn


def used(x: torch.Tensor):
    return x


def total(x: torch.Tensor):
    return x.cuda().sum().item()


def totals(rows: list[torch.Tensor]):
    return rows


class Net(nn.Module):
    pass
"""
NET = "from torch import nn\nfrom {module} import {names}\n\n\nclass Model(nn.Module):\n    pass\n\n\n"
USES = NET + "def run(x):\n    return {call}\n"


def uses(call: str, names: str = "used", module: str = "helper") -> str:
    """A file with a model that calls something of a module."""
    return USES.format(call=call, names=names, module=module)


@pytest.mark.parametrize(
    ("others", "is_shown"),
    [
        ({"model.py": uses("used(x)")}, False),
        ({"model.py": uses("total(x)", "total")}, True),
        ({"model.py": uses("totals(x)", "totals as total")}, False),
        ({"model.py": uses("used(x)"), "test_model.py": "import pytest\n" + uses("total(x)", "total")}, False),
        ({}, True),
        ({"test_model.py": "import pytest\n" + uses("used(x)")}, True),
        ({"pkg/__init__.py": "from helper import used\n"}, True),
    ],
)
def test_functions(tmp_path: Path, others: dict[str, str], is_shown: bool) -> None:
    assert shown(tmp_path, FUNCTIONS, others) == is_shown


@pytest.mark.parametrize(
    ("package", "is_shown"), [("", False), ("__version__ = '1'\n", False), ("from .helper import total\n", True)]
)
def test_packages(tmp_path: Path, package: str, is_shown: bool) -> None:
    others = {"app/__init__.py": package, "app/model.py": uses("used(x)", module="app.helper")}
    assert shown(tmp_path, FUNCTIONS, others, "app/helper.py") == is_shown


METHODS = """
import torch
from torch import nn
{head}

def used(x: torch.Tensor):
    return x


class Sizes{base}:
    def total(self, x: torch.Tensor):
        return {read}
"""


@pytest.mark.parametrize(
    ("base", "read", "others", "is_shown"),
    [
        ("", "x.cuda().sum().item()", {"model.py": uses("used(x)")}, False),
        ("", "x.cuda().sum().item()", {"model.py": uses("x.total(x)")}, True),
        ("", "[each.cuda().sum().item() for each in x]", {"model.py": uses("used(x)")}, True),
        ("(nn.Module)", "x.cuda().sum().item()", {"model.py": uses("used(x)")}, True),
        (
            "(Base)",
            "x.cuda().sum().item()",
            {"model.py": uses("used(x)"), "base.py": "class Base:\n    def run(self, x):\n        self.total(x)\n"},
            True,
        ),
    ],
)
def test_methods(tmp_path: Path, base: str, read: str, others: dict[str, str], is_shown: bool) -> None:
    head = "from base import Base\n" if "Base" in base else ""
    assert shown(tmp_path, METHODS.format(base=base, read=read, head=head), others) == is_shown


DEAD = """
import torch


def used(x: torch.Tensor):
    return x


def decode_step(x: torch.Tensor):
    for _ in range(9):
        x = x.cuda() + 1
        print(x.sum().item())
"""
RUN = "from helper import used\n\n\ndef run(x):\n    return used(x){call}\n\n\nif __name__ == '__main__':\n    run(1)\n"


@pytest.mark.parametrize(
    ("call", "files", "is_live"),
    [
        ("", {}, False),
        (", helper.decode_step(x)", {}, True),
        ("", {"test_helper.py": "import pytest\nfrom helper import decode_step\n\ndecode_step(1)\n"}, False),
        ("", {"bench.py": "from helper import decode_step\n\ndecode_step(1)\n"}, True),
        ("", {"conf/run.yaml": "_target_: helper.decode_step\n"}, True),
        ("", {"package.json": '{"name": "helper"}'}, False),
    ],
)
def test_dead_code(tmp_path: Path, call: str, files: dict[str, str], is_live: bool) -> None:
    texts = {"pyproject.toml": "", "helper.py": DEAD, "run.py": RUN.format(call=call), **files}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    settings = Settings(profile=Profile.AUDIT)
    project = Projects(settings).of(tmp_path / "helper.py")
    report = check_source(Source(str(tmp_path / "helper.py"), DEAD), project, RuleSet(all_rules()), settings)
    reads = [finding for finding in report.findings if finding.span.line == 12]
    assert reads
    for finding in reads:
        assert ("no program" in (finding.why or "")) != is_live
        assert is_live or finding.heat is Heat.COLD
        assert is_live or "every step" not in finding.message


@pytest.mark.parametrize("packaging", ["", "classifiers = ['Development Status :: 4 - Beta']"])
def test_dead_code_of_a_package(tmp_path: Path, packaging: str) -> None:
    """What `__init__.py` imports is live for the users of a published package; what it does not mention is dead."""
    texts = {
        "pyproject.toml": f"[project]\n{packaging}\n",
        "kit/__init__.py": "from .helper import used\n",
        "kit/helper.py": DEAD,
        "run.py": RUN.format(call="").replace("from helper", "from kit.helper"),
    }
    (tmp_path / "kit").mkdir()
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    settings = Settings(profile=Profile.AUDIT)
    path = tmp_path / "kit" / "helper.py"
    report = check_source(Source(str(path), DEAD), Projects(settings).of(path), RuleSet(all_rules()), settings)
    assert [finding.heat for finding in report.findings if finding.span.line == 12] == [Heat.COLD]


REPLACED = """
import torch
{before}

{decorator}def training_step(x: torch.Tensor):
    print(x.cuda().sum().item())
{between}

{later}def {name}(x: torch.Tensor):
    return x


def run(x):
    return training_step(x)


if __name__ == "__main__":
    run(torch.ones(3))
"""


@pytest.mark.parametrize(
    ("given", "is_live"),
    [
        ({}, False),
        ({"between": "def other(x):\n    return training_step(x)\n"}, False),
        ({"between": "class Other:\n    def run(self, x):\n        return training_step(x)\n"}, False),
        ({"name": "train_batch"}, True),
        ({"between": "first = training_step\n"}, True),
        ({"between": "def other(x, step=training_step):\n    return step(x)\n"}, True),
        ({"between": "class Other:\n    step = training_step\n"}, True),
        ({"before": "from app import keep\n", "decorator": "@keep\n"}, True),
        ({"before": "from app import keep\n", "later": "@keep\n"}, True),
    ],
)
def test_replaced_functions(tmp_path: Path, given: dict[str, str], is_live: bool) -> None:
    parts = {"before": "", "decorator": "", "between": "", "later": "", "name": "training_step", **given}
    text = REPLACED.format(**parts)
    settings = Settings(profile=Profile.AUDIT)
    (tmp_path / "run.py").write_text(text)
    project = Projects(settings).of(tmp_path / "run.py")
    report = check_source(Source(str(tmp_path / "run.py"), text), project, RuleSet(all_rules()), settings)
    reads = [finding for finding in report.findings if finding.code == "TPF101"]
    assert reads
    assert all((finding.heat is Heat.COLD) != is_live for finding in reads)


LAYERS = """
from torch import nn


def used(x):
    return x


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return self.norm(self.conv(x))
"""


@pytest.mark.parametrize(
    ("names", "call", "is_live"),
    [("used", "", False), ("used, Block", "", False), ("used, Block", ", Block(3)", True)],
)
def test_layers_of_dead_models(tmp_path: Path, names: str, call: str, is_live: bool) -> None:
    """A bias before a norm costs nothing in a model that no program makes."""
    run = RUN.format(call=call).replace("import used", f"import {names}")
    for name, text in {"pyproject.toml": "", "helper.py": LAYERS, "run.py": run}.items():
        (tmp_path / name).write_text(text)
    settings = Settings(profile=Profile.AUDIT)
    project = Projects(settings).of(tmp_path / "helper.py")
    report = check_source(Source(str(tmp_path / "helper.py"), LAYERS), project, RuleSet(all_rules()), settings)
    biases = [finding for finding in report.findings if finding.code == "TPF301"]
    assert biases
    for finding in biases:
        assert finding.heat is (Heat.HOT if is_live else Heat.COLD)
        assert ("no program" in (finding.why or "")) != is_live


@pytest.mark.parametrize(
    ("path", "others", "is_cold"),
    [
        ("train.py", {}, False),
        ("legacy/train.py", {"net.py": "import torch\n"}, True),
        ("legacy/train.py", {"run.py": "from legacy.train import fit\n\nfit(1)\n"}, False),
    ],
)
def test_settings_in_files_that_no_longer_run(tmp_path: Path, path: str, others: dict[str, str], is_cold: bool) -> None:
    """A slow optimizer costs nothing in retired files, although the rule calls its steps hot."""
    text = "import torch\n\n\ndef fit(model):\n    model.cuda()\n    return torch.optim.Adam(model.parameters())\n"
    for name, content in {path: text, **others}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    settings = Settings(profile=Profile.AUDIT)
    project = Projects(settings).of(tmp_path / path)
    report = check_source(Source(str(tmp_path / path), text), project, RuleSet(all_rules()), settings)
    found = [finding for finding in report.findings if finding.code == "TPF601"]
    assert found
    for finding in found:
        assert (finding.heat is Heat.COLD) == is_cold
