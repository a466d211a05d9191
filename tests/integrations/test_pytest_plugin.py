"""The mark `no_gpu_sync`, in runs of pytest of their own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tracer.device import DEVICE, Done, python

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

TESTS = """
import sys, warnings
import pytest, perflint
sys.path.append("site-packages")
import device

@pytest.mark.no_gpu_sync
def test_waits():
    device.sync()

@pytest.mark.no_gpu_sync
def test_is_allowed():
    with perflint.allow_sync("the loss is logged"):
        device.sync()

@pytest.mark.no_gpu_sync
def test_fails_by_itself():
    device.sync()
    assert False, "of its own"

@pytest.mark.no_gpu_sync
def test_hides_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        device.sync()

@pytest.fixture
def prepared():
    with warnings.catch_warnings(record=True):
        device.sync()

@pytest.mark.no_gpu_sync
def test_is_clean(prepared):
    warnings.warn("mine")

def test_is_not_marked():
    with pytest.warns(UserWarning, match="synchronizing"):
        device.sync()
"""


def run(folder: Path, *options: str, **environment: str) -> Done:
    (folder / "site-packages").mkdir()
    (folder / "site-packages" / "device.py").write_text(DEVICE)
    (folder / "test_a.py").write_text(TESTS)
    plugin = ["-p", "perflint.integrations.pytest_plugin", "-p", "no:cacheprovider"]
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return python(folder, "-m", "pytest", "-q", "--strict-markers", *plugin, *options, **alone | environment)


@needs_torch
def test_marked_tests_that_synchronise_fail(tmp_path: Path) -> None:
    done = run(tmp_path)
    failed = {line.split("::")[1].split(" ")[0] for line in done.out.splitlines() if line.startswith("FAILED")}
    assert failed == {"test_waits", "test_fails_by_itself", "test_hides_warnings"}, done.out
    assert "3 failed, 3 passed" in done.out
    assert "the test made the CPU wait for the GPU:\n  test_a.py:9: device.sync()\n" in done.out
    assert "of its own" in done.out and "UserWarning: mine" in done.out


def test_without_torch_the_mark_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import sys, importlib.abc\n"
        "class No(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': raise ModuleNotFoundError(name)\n"
        "import importlib.util\n"
        "from perflint.integrations import pytest_plugin\n"
        "pytest_plugin.find_spec = lambda name: None\n"
        "sys.meta_path.insert(0, No())\n"
    )
    done = run(tmp_path, "-k", "waits or clean")
    assert "2 passed" in done.out, done.out


def test_the_plugin_is_light(tmp_path: Path) -> None:
    code = (
        "import sys, perflint.integrations.pytest_plugin\n"
        "print([name for name in sys.modules if name.startswith(('perflint.tracer', 'torch', 'numpy', 'libcst'))])"
    )
    assert python(tmp_path, "-c", code).out == "[]\n"
