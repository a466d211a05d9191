"""A verification ends early on signals."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from perflint.verify.stopping import Stopped, stoppable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX")


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Not ignored, as they are in a background job of a shell without job control."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize(("number", "reason"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_the_first_signal_stops_and_the_second_is_ignored(number: signal.Signals, reason: str) -> None:
    before = signal.getsignal(number)
    tidied = False
    with pytest.raises(Stopped) as caught, stoppable():
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), number)
            tidied = True
    assert (caught.value.reason, caught.value.status, tidied) == (reason, 128 + number, True)
    assert signal.getsignal(number) is before


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_set_no_handlers() -> None:
    seen = []

    def work() -> None:
        with stoppable():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]
