"""Which syncs are seen, and where: the mode's warnings, made by a library in place of torch."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from perflint.tracer import syncs
from perflint.tracer.events import CandidateLine, Sync
from perflint.tracer.trace import Trace
from tests.tracer.device import python, traced

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def places(trace: Trace) -> list[tuple[int, int, int, str, int]]:
    """Line, columns, function and hits of each sync, by line."""
    found = [
        (sync.place.line, sync.place.column, sync.place.end_column, sync.place.function, sync.hits.steps)
        for sync in trace.of(Sync)
    ]
    return sorted(found)


def test_the_innermost_frame_of_the_program(tmp_path: Path) -> None:
    program = "class A:\n    def f(self, n):\n        return [device.sync() for _ in range(n)], 'é', 1\nA().f(3)\n"
    trace, _ = traced(tmp_path, program)
    ((line, column, end, function, hits),) = places(trace)
    assert (line, column, end, hits) == (6, 17, 30, 3)
    assert function.startswith("A.f")
    (sync,) = trace.of(Sync)
    assert sync.place.file == "program.py"
    assert sync.place.text == "return [device.sync() for _ in range(n)], 'é', 1"
    assert sync.inner == "device.py:5"
    assert sync.stack[0] == "site-packages/device.py:5 sync" and sync.stack[-1] == "program.py:7 <module>"


def test_columns_are_in_characters(tmp_path: Path) -> None:
    trace, _ = traced(tmp_path, "x = 'éé', device.sync()\n")
    assert places(trace) == [(4, 11, 24, "<module>", 1)]


def test_a_program_cannot_silence_it(tmp_path: Path) -> None:
    silent = "import warnings\nwarnings.filterwarnings('ignore')\ndevice.sync()\nwarnings.simplefilter('ignore')\n"
    silent += "device.sync()\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    device.sync()\n"
    silent += "warnings.resetwarnings()\ndevice.sync()\nwarnings.simplefilter('error')\ndevice.sync()\n"
    silent += "with warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n"
    silent += "    device.sync()\n    warnings.warn('mine')\nprint([str(warning.message) for warning in seen])\n"
    trace, done = traced(tmp_path, silent)
    assert [row[0] for row in places(trace)] == [6, 8, 11, 13, 15, 18]
    assert "synchronizing" not in done.err
    assert done.out == "['mine']\n"


def test_the_programs_warnings_are_its_own(tmp_path: Path) -> None:
    program = "import warnings\ndef show(*a, **k): print('shown', a[0])\nwarnings.showwarning = show\n"
    trace, done = traced(tmp_path, program + "warnings.warn('beware')\ndevice.sync()\nprint(warnings.filters[-1][0])\n")
    plain = python(tmp_path, "program.py")
    assert done.out == "shown beware\nignore\n"
    assert len(places(trace)) == 1
    assert plain.out.startswith("shown beware\nshown called a sync")


def test_a_program_may_copy_the_filters(tmp_path: Path) -> None:
    program = (
        "import warnings\nfilters = list(warnings.filters)\nwith warnings.catch_warnings():\n"
        "    warnings.resetwarnings()\n    for action, message, category, module, line in filters:\n"
        "        text = '' if message is None else getattr(message, 'pattern', message)\n"
        "        assert isinstance(text, str), text\n"
        "        warnings.filterwarnings(action, text, category, lineno=line, append=True)\n    device.sync()\n"
        "    warnings.filterwarnings('always')\n    warnings.warn('mine')\n"
    )
    trace, done = traced(tmp_path, program)
    assert [row[0] for row in places(trace)] == [12]
    assert "mine" in done.err and "synchronizing" not in done.err


def test_threads_and_allowed_syncs(tmp_path: Path) -> None:
    program = (
        "import threading, perflint\ndef work():\n    device.sync()\n"
        "with perflint.allow_sync('it is logged'):\n    device.sync()\n"
        "    thread = threading.Thread(target=work, name='worker')\n    thread.start()\n    thread.join()\n"
        "@perflint.allow_sync('so')\ndef f():\n    device.sync()\nf()\n"
    )
    trace, _ = traced(tmp_path, program)
    seen = {(sync.place.line, sync.allowed, sync.thread) for sync in trace.of(Sync)}
    assert seen == {(6, "", "worker"), (8, "it is logged", "MainThread"), (14, "so", "MainThread")}
    assert [sync.place.line for sync in trace.unallowed_syncs] == [6]


def test_the_origin_of_a_sync_is_torchs(tmp_path: Path) -> None:
    """A class `Module` of an installed package is not torch's."""
    trace, _ = traced(tmp_path, "device.Module().to()\n")
    assert [sync.origin for sync in trace.of(Sync)] == [""]


def test_lines_that_ran(tmp_path: Path) -> None:
    trace, _ = traced(tmp_path, "def f(x):\n    return x\nif sys.argv[1:]:\n    f(1)\nf(\n    2\n)\n")
    if trace.header.lines_recorded:
        ran = {row.line for row in trace.of(CandidateLine) if row.in_steps and row.file == "program.py"}
        assert ran >= {1, 2, 3, 4, 5, 6, 8} and 7 not in ran


def test_an_empty_reason_is_refused() -> None:
    import perflint

    with pytest.raises(ValueError, match="needs a reason"), perflint.allow_sync(" "):
        pass


@pytest.fixture
def heard() -> Iterator[list[tuple[str, str, int]]]:
    """What a listener of this process hears: kind, function, thread."""
    found: list[tuple[str, str, int]] = []

    def note(kind: str, frame: FrameType | None) -> None:
        assert frame is not None
        found.append((kind, frame.f_code.co_name, threading.get_ident()))

    end = syncs.listen(note)
    yield found
    end()


def test_two_listeners_hear_the_same_and_leave_nothing(heard: list[tuple[str, str, int]]) -> None:
    with warnings.catch_warnings():
        before = list(warnings.filters)
        more: list[str] = []
        end = syncs.listen(lambda kind, frame: more.append(kind))
        warnings.warn(syncs.MESSAGE, stacklevel=1)
        end()
        warnings.warn(syncs.MESSAGE, stacklevel=1)
        assert more == ["implicit"]
        assert list(warnings.filters) == before
    name = "test_two_listeners_hear_the_same_and_leave_nothing"
    assert heard == [("implicit", name, threading.get_ident())] * 2


def test_cuda_is_not_initialised_and_an_explicit_sync_is_seen(heard: list[tuple[str, str, int]]) -> None:
    import torch

    assert not torch.cuda.is_initialized()
    if not torch.cuda.is_available():
        with pytest.raises((AssertionError, RuntimeError)):
            torch.cuda.synchronize()
        assert heard == []


def test_nothing_is_left_of_it() -> None:
    code = (
        "import warnings, torch\nfrom perflint.tracer import syncs, copies\n"
        "cuda = torch.cuda\n"
        "explicit = lambda: (cuda.synchronize, cuda.Event.synchronize, cuda.Stream.synchronize, cuda.empty_cache)\n"
        "watched = lambda: (warnings.simplefilter, warnings.filterwarnings, *explicit(), torch.Tensor.to)\n"
        "functions = watched()\n"
        "filters = list(warnings.filters)\n"
        "ends = [syncs.listen(print), copies.listen(print)]\n"
        "assert not any(now is before for now, before in zip(watched(), functions))\n"
        "assert cuda.memory.empty_cache is not functions[-2]\n"
        "cuda.empty_cache()\n"
        "for end in ends: end()\n"
        "assert 'to' not in torch.Tensor.__dict__\n"
        "assert watched() == functions\n"
        "assert warnings.filters == filters\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
    assert done.stdout == "", "without a GPU in use nothing is freed that it could use"


@pytest.mark.parametrize(
    "said",
    [
        "The operator 'aten::x' is not currently supported on the MPS backend and will fall back to run on the CPU.",
        "Aten Op fallback from XPU to CPU happends. This may have performance implications.",
    ],
)
def test_operators_that_fall_back_to_the_cpu(tmp_path: Path, said: str) -> None:
    program = f"import warnings\nwarnings.filterwarnings('ignore')\nfor _ in range(3):\n    warnings.warn({said!r})\n"
    program += (
        f"warnings.resetwarnings()\nfor _ in range(2):\n    warnings.warn({said!r})\nwarnings.simplefilter('error')\n"
    )
    program += f"try:\n    warnings.warn({said!r})\nexcept UserWarning as error:\n    print('raised', error)\n"
    trace, done = traced(tmp_path, program)
    assert [(sync.place.line, sync.kind, sync.hits.steps) for sync in trace.of(Sync)] == [
        (7, "fallback", 3),
        (10, "fallback", 2),
        (13, "fallback", 1),
    ]
    plain, warned = python(tmp_path, "program.py"), f"program.py:10: UserWarning: {said}"
    assert done.err.count(warned) == plain.err.count(warned) == 1
    assert done.out == plain.out == f"raised {said}\n"
    assert "an operator, which runs on the CPU: program.py:7, program.py:10, program.py:13.\n" in done.err
    assert "used no GPU" not in done.err


def test_torch_tells_of_each_fallback_where_there_may_be_any(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    for device in (None, torch.device("cuda"), torch.device("mps")):
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda device=device: device)
        end = syncs.listen(lambda kind, frame: None)
        assert torch.is_warn_always_enabled() is (device is not None and device.type == "mps")
        end()
        assert not torch.is_warn_always_enabled()
