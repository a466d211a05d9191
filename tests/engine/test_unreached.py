"""Waits in functions that no code of the project is known to call are information, if no package offers them."""

from __future__ import annotations

from pathlib import Path

import pytest

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
        ({"model.py": uses("used(x)"), "test_model.py": uses("total(x)", "total")}, False),
        ({}, True),
        ({"test_model.py": uses("used(x)")}, True),
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
