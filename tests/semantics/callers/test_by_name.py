"""Methods of objects of an unknown class, which the name and the arguments of a call tell."""

from __future__ import annotations

from pathlib import Path

from tests.semantics.callers.programs import programs
from tests.semantics.notation import Case, check

_LOADED = """
# file: tools.py
import importlib
def load(name, **given):
    module, _, name = name.rpartition(".")
    return getattr(importlib.import_module(module), name)(**given)
"""

TOLD = f"""{_LOADED}
# file: losses.py
class Loss:
    def accumulate(self, x, gain):
        raise NotImplementedError
class Plain(Loss):
    def accumulate(self, x, gain):
        return x.item()                     # hot
# file: main.py
import tools, sys
term = tools.load(sys.argv[1])
@step term.accumulate(x, gain=2)
===
{_LOADED}
# file: losses.py
class Loss:
    def accumulate(self, x, *, gain=1):
        return x.item()                     # hot
# file: special.py
from losses import Loss
class Special(Loss):
    def accumulate(self, x, *, gain=1):
        return x.item() + 1                 # hot
# file: main.py
import tools, sys
term = tools.load(sys.argv[1])
@step term.accumulate(x)
===
{_LOADED}
# file: losses.py
class Loss:
    def accumulate(self, x):
        raise NotImplementedError
# file: plain.py
from losses import Loss
class Plain(Loss):
    def accumulate(self, x):
        return x.item()                     # hot
# file: special.py
from losses import Loss
class Special(Loss):
    def accumulate(self, x):
        return x.item() + 1                 # hot
# file: main.py
import tools, sys
term = tools.load(sys.argv[1])
@step term.accumulate(x)
===
{_LOADED}
# file: losses.py
class Loss:
    def accumulate(self, x):
        x                                   # -> cuda float 0
# file: main.py
import tools, torch
term = tools.load("losses.Loss")
term.accumulate(torch.ones(2, device="cuda").sum())
"""

NOT_TOLD = f"""{_LOADED}
# file: losses.py
class Loss:
    def accumulate(self, x):
        return x.item()                     # warm
# file: meters.py
class Meter:
    def accumulate(self, x):
        return x
# file: main.py
import tools, sys
term = tools.load(sys.argv[1])
@step term.accumulate(x)
===
{_LOADED}
# file: losses.py
class Loss:
    def accumulate(self, x, gain):
        return x.item()                     # warm
# file: main.py
import tools, sys
term = tools.load(sys.argv[1])
@step term.accumulate(x)
===
{_LOADED}
# file: losses.py
class Loss:
    def accumulate(self, x):
        return x.item()                     # warm
# file: main.py
import tools, sys
term = tools.load(sys.argv[1])
@step term.accumulate(x, gain=2)
===
{_LOADED}
# file: losses.py
class Loss:
    def append(self, x):
        return x.item()                     # warm
# file: main.py
import tools, sys
term = tools.load(sys.argv[1])
@step term.append(x)
===
# file: losses.py
class Loss:
    def accumulate(self, x):
        return x.item()                     # warm
# file: main.py
import library
term = library.Loss()
@step term.accumulate(x)
===
{_LOADED}
# file: losses.py
class Loss:
    def accumulate(self, x):
        return x.item()                     # warm
# file: main.py
import tools, sys
term = tools.load(sys.argv[1])
term.accumulate(2)
"""


@programs(TOLD)
def test_told_by_the_name(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@programs(NOT_TOLD)
def test_not_told(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
