"""A function is called as soon as a program has imported a module, in whatever way it does."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from perflint.tracer import importing
from perflint.tracer.file import read_trace
from perflint.tracer.importing import when_imported
from tests.tracer.device import WITHOUT_COMPILER, python

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

NAME = "late_library"
BODY = f"import {NAME}.part\nfrom {NAME} import part as renamed\nend = True\n"


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether the body of the library had run to its end, for each call of the function that waits for it."""
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / "__init__.py").write_text(BODY)
    (folder / "part.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    calls: list[bool] = []
    when_imported(NAME, lambda: calls.append(hasattr(sys.modules[NAME], "end")))
    yield calls
    importing._waiting.pop(NAME, None)
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


def spec_of(finder: Any = importlib.util) -> ModuleSpec:
    found = finder.find_spec(NAME)
    assert found is not None
    return found  # type: ignore[no-any-return]


def run(spec: ModuleSpec) -> None:
    """Run a module as a program does that keeps its spec."""
    assert spec.loader is not None
    sys.modules[NAME] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def plainly() -> None:
    importlib.import_module(NAME)


def after_a_question() -> None:
    spec_of()
    plainly()


def after_many_questions() -> None:
    for _ in range(3):
        spec_of()
        importlib.util.find_spec(f"{NAME}.part")
    plainly()


def a_part_first() -> None:
    importlib.import_module(f"{NAME}.part")


def by_from() -> None:
    exec(f"from {NAME} import part", {})


def by_builtin() -> None:
    __import__(NAME)


def in_a_thread() -> None:
    threads = [threading.Thread(target=plainly) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def by_a_kept_spec() -> None:
    kept, _ = spec_of(), spec_of()
    run(kept)


def by_the_path_finder() -> None:
    run(spec_of(importlib.machinery.PathFinder))


def from_its_file() -> None:
    spec = importlib.util.spec_from_file_location(NAME, spec_of().origin)
    assert spec is not None
    run(spec)


def lazily() -> None:
    spec = spec_of()
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    run(spec)
    assert sys.modules[NAME].part.value == 1


def behind_another_finder() -> None:
    class Front:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
            return importlib.machinery.PathFinder.find_spec(name, path, target)

    sys.meta_path.insert(0, Front)  # type: ignore[arg-type]
    plainly()


def with_the_finders_put_back() -> None:
    sys.meta_path[:] = [finder for finder in sys.meta_path if isinstance(finder, type)]
    plainly()


def after_it_failed() -> None:
    path = Path(spec_of().origin or "")
    path.write_text("raise ImportError('not yet')\n")
    with pytest.raises(ImportError):
        plainly()
    path.write_text(f"# Of another length than the first.\n{BODY}")
    importlib.invalidate_caches()
    plainly()


def by_a_loader_that_failed() -> None:
    spec = spec_of()
    sys.modules[f"{NAME}.part"] = None  # type: ignore[assignment]
    with pytest.raises(ImportError):
        run(spec)
    del sys.modules[f"{NAME}.part"]
    run(spec)


def and_again() -> None:
    plainly()
    importlib.reload(sys.modules[NAME])


WAYS = [
    plainly, after_a_question, after_many_questions, a_part_first, by_from, by_builtin, in_a_thread, by_a_kept_spec,
    by_the_path_finder, from_its_file, lazily, behind_another_finder, with_the_finders_put_back, after_it_failed,
    by_a_loader_that_failed, and_again,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_is_called_once_and_at_the_end(called: list[bool], way: Any) -> None:
    way()
    assert called == [True]
    # Nothing of the watch is left at the module.
    assert vars(sys.modules[NAME].__spec__.loader).keys() == {"name", "path"}  # type: ignore[union-attr]


def test_two_may_wait_and_one_comes_late(called: list[bool]) -> None:
    order: list[int] = []
    when_imported(NAME, lambda: order.append(1))
    when_imported(NAME, lambda: order.append(2))
    plainly()
    when_imported(NAME, lambda: order.append(3))
    assert (called, order) == ([True], [1, 2, 3])


def test_a_question_alone_calls_nothing(called: list[bool]) -> None:
    spec_of()
    assert not called and NAME not in sys.modules


def test_a_module_outside_of_the_table_is_not_imported(called: list[bool]) -> None:
    spec = spec_of()
    assert spec.loader is not None
    (Path(spec.origin or "").parent / "__init__.py").write_text("end = True\n")
    importlib.invalidate_caches()
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not called
    plainly()
    assert called == [True]


TRAINING = """
model = torch.nn.Linear(4, 4).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = model(torch.ones(2, 4, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    loss.item()
"""
ASKS_FIRST = "import importlib.util\nassert importlib.util.find_spec('torch')\n" + WITHOUT_COMPILER
IN_A_THREAD = (
    """
import threading
def load():
    import torch
thread = threading.Thread(target=load)
thread.start()
thread.join()
"""
    + WITHOUT_COMPILER
)
OWN_LOADER = (
    """
import importlib.util, sys
class Loader:
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        with open(module.__spec__.origin) as file:
            exec(compile(file.read(), module.__spec__.origin, "exec"), vars(module))
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        spec.loader = Loader()
        return spec
sys.meta_path.insert(0, Finder())
"""
    + WITHOUT_COMPILER
    + TRAINING.replace('"cuda"', '"cpu"')
)


@needs_torch
@pytest.mark.parametrize("head", [ASKS_FIRST, IN_A_THREAD], ids=["asks first", "in a thread"])
def test_a_program_that_imports_torch_in_another_way_is_traced(tmp_path: Path, head: str) -> None:
    (tmp_path / "program.py").write_text(head + TRAINING)
    done = python(tmp_path, "-m", "perflint", "trace", "--simulate", "--warmup", "1", "program.py")
    assert done.code == 0 and "  loss.item()" in done.err


@needs_torch
def test_a_trace_that_could_see_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(OWN_LOADER)
    done = python(tmp_path, "-m", "perflint", "trace", "--simulate", "--warmup", "0", "program.py")
    assert done.code == 0 and "used no GPU" not in done.err
    assert "The tracer saw nothing but lines: the program imported torch by a loader of its own" in done.err
    trace = tmp_path / "perflint-trace.jsonl.gz"
    assert not read_trace(trace).header.watched
    command = ["check", "program.py", "--trace", str(trace), "--profile", "audit", "--no-cache"]
    checked = python(tmp_path, "-m", "perflint", *command, "--output-format", "json")
    assert "warning: the trace holds only the lines that ran" in checked.err
    rulings = [each["verdict"]["ruling"] for each in json.loads(checked.out)["findings"] if each["verdict"]]
    assert rulings and set(rulings) <= {"undecided", "not executed"}


@needs_torch
def test_a_warning_at_the_import_has_no_frame_of_the_tracer(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "__init__.py").write_text("raise ValueError('broken')\n")
    (tmp_path / "program.py").write_text(f"import {NAME}\n")
    command = [sys.executable, "-m", "perflint", "trace", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "ValueError: broken" in done.stderr and "importing.py" not in done.stderr


@needs_torch
def test_work_in_processes_that_a_launcher_starts_is_not_called_none(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("import time\nwhile time.process_time() < 2.5:\n    pass\n")
    (tmp_path / "launcher.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'work.py'])\n")
    done = python(tmp_path, "-m", "perflint", "trace", "launcher.py")
    assert done.code == 0 and "The program made no step itself, but started processes that worked for" in done.err
