"""A pytest plugin for recordings: the tensors of tests are on the simulated GPU, and the outcomes are counted.

`record.py` loads it into the process that `perflint trace --simulate` records. Tests make their tensors on the GPU, as
a user of the package would who works on one, also by `torch.Tensor(values)`. The package itself makes tensors where
its code says. Its modules and other objects move to the GPU when they are constructed (`constructed.py`), since tests
do not move them. Environment:

PERFLINT_OWN
    the folder of the package, or its module
PERFLINT_OUTCOMES
    the file that gets the outcomes, as JSON
PERFLINT_FILE_SECONDS
    after that time no further test of the file starts; the rest counts as `not run`
PERFLINT_TEST_SECONDS
    a test that takes more time of the processor fails
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from recording import is_test

import perflint
import perflint.tracer.lines

# Python 3.11 has no sys.monitoring: there, lines are watched for a limited time. Tests may take longer.
perflint.tracer.lines.SIMULATED_SECONDS = float("inf")
perflint.tracer.lines.COUNTED_STEPS = 1_000_000

# The tracer watches lines anew when torch has been imported; until then there is nothing to watch.
sys.settrace(None)
import torch  # noqa: E402

# Optimizers import it when they are first used; a test that ended meanwhile would leave half of it.
import torch._dynamo  # noqa: E402
from constructed import wrap_all  # noqa: E402
from torch.utils._device import DeviceContext  # noqa: E402

from perflint.tracer.simulation.marks import At, put  # noqa: E402

_watching = sys.gettrace()
"""The tracer's function that sees lines, before Python 3.12."""
_OWN = os.environ["PERFLINT_OWN"]
_TESTS = f"{Path.cwd()}{os.sep}"
"""The source distribution: a file in it that is not of the package belongs to the tests."""
_PATHS_OF_OTHERS = (f"{Path(torch.__file__).parent}{os.sep}", f"{Path(perflint.__file__).parent}{os.sep}", __file__)


def _is_own(name: str) -> bool:
    """True if a file is one of the package, not of its tests."""
    return name.startswith(_OWN) and not is_test(name[len(_OWN) :])


def makes_on_gpu() -> bool:
    """True if a test makes a tensor now, itself or by another library, and not the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_PATHS_OF_OTHERS):
            if _is_own(name):
                return False
            if name.startswith(_TESTS):
                return True
        frame = frame.f_back
    return True


class _Chosen(DeviceContext):
    """The default device of the code that makes a tensor now."""

    @property
    def device(self) -> Any:
        return torch.device("cuda") if makes_on_gpu() else None

    @device.setter
    def device(self, value: object) -> None:
        """Ignore the device of the constructor."""


_Chosen("cuda").__enter__()
_make = torch.Tensor.__new__


def _made(cls: type, *args: Any, **named: Any) -> Any:
    """A new tensor of the constructor that ignores the default device."""
    if cls is torch.Tensor:
        made = _make(cls, *args, **named)
    else:
        # torch refuses to make a subclass in one step while a dispatch mode is active.
        with torch._C.DisableTorchFunctionSubclass():
            made = _make(torch.Tensor, *args, **named).as_subclass(cls)
    if cls is torch.Tensor and not (args and isinstance(args[0], torch.Tensor)) and makes_on_gpu():
        put(made, At.GPU)
    return made


torch.Tensor.__new__ = _made  # type: ignore[method-assign,assignment]

if importlib.util.find_spec("hypothesis"):
    from hypothesis import settings

    settings.register_profile("simulated", max_examples=5, deadline=None, derandomize=True, database=None)
    settings.load_profile("simulated")

_outcomes: Counter[str] = Counter()
_ends = time.monotonic() + float(os.environ["PERFLINT_FILE_SECONDS"])


class TooLongError(BaseException):
    """A test ran longer than it may. No Exception, so that neither tests nor Hypothesis catch it."""


def _stop(signum: int, frame: FrameType | None) -> None:
    raise TooLongError


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Limit the time of a test, and watch its lines."""
    if sys.gettrace() is None:
        # A test before may have ended it; the interpreter drops a trace function in which an exception was raised.
        sys.settrace(_watching)
    before = signal.signal(signal.SIGPROF, _stop)
    # The exception may come in a callback that contains it, so it comes again.
    signal.setitimer(signal.ITIMER_PROF, float(os.environ["PERFLINT_TEST_SECONDS"]), 2.0)
    try:
        return (yield)
    except TooLongError:
        _outcomes["too long"] += 1
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count an outcome: of the test, or of a fixture that failed."""
    if report.when == "call":
        _outcomes[report.outcome] += 1
    elif report.when == "setup" and report.skipped:
        _outcomes["skipped"] += 1
    elif report.failed:
        _outcomes["error"] += 1


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Count a file that cannot be collected."""
    if report.failed:
        _outcomes["not collected"] += 1


def pytest_runtest_logfinish() -> None:
    """Count a test that has run."""
    _outcomes["run"] += 1


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Start no further test if the time of the file is over; classes may have been imported since the last one."""
    wrap_all(_is_own)
    if time.monotonic() > _ends:
        item.session.shouldstop = "the time of the file is over"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the outcomes."""
    run = _outcomes.pop("run", 0)
    if session.testscollected > run:
        _outcomes["not run"] = session.testscollected - run
    Path(os.environ["PERFLINT_OUTCOMES"]).write_text(json.dumps(dict(_outcomes)), encoding="utf-8")
