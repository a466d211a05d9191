"""A pytest plugin for recordings: new tensors are on the simulated GPU, and the outcomes of tests are counted.

`record.py` loads it into the process that `perflint trace --simulate` records. Environment:

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

import pytest

import perflint.tracer.lines

# Python 3.11 has no sys.monitoring: there, lines are watched for a limited time. Tests may take longer.
perflint.tracer.lines.TRACED_SECONDS = float("inf")
perflint.tracer.lines.COUNTED_STEPS = 1_000_000

# The tracer watches lines anew when torch has been imported; until then there is nothing to watch.
sys.settrace(None)
import torch  # noqa: E402

torch.set_default_device("cuda")

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
    """Limit the time of a test."""
    before = signal.signal(signal.SIGPROF, _stop)
    # The exception may come in a callback that contains it, so it comes again.
    signal.setitimer(signal.ITIMER_PROF, float(os.environ["PERFLINT_TEST_SECONDS"]), 0.5)
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
    """Start no further test if the time of the file is over."""
    if time.monotonic() > _ends:
        item.session.shouldstop = "the time of the file is over"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the outcomes."""
    run = _outcomes.pop("run", 0)
    if session.testscollected > run:
        _outcomes["not run"] = session.testscollected - run
    Path(os.environ["PERFLINT_OUTCOMES"]).write_text(json.dumps(dict(_outcomes)), encoding="utf-8")
