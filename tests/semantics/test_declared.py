"""Functions that the settings declare to be hot or cold."""

from __future__ import annotations

import json
import time

import pytest

from perflint.findings import Heat
from perflint.semantics.declared import Declared
from tests.cli.command import Command

NAMES = [
    ("step", "app.train", "Trainer.step", True),
    ("Trainer.step", "app.train", "Trainer.step", True),
    ("app.train.Trainer.step", "app.train", "Trainer.step", True),
    ("train.Trainer.step", "app.train", "Trainer.step", True),
    ("ep", "app.train", "Trainer.step", False),
    ("Trainer", "app.train", "Trainer.step", False),
    ("Other.step", "app.train", "Trainer.step", False),
    ("Trainer.*", "app.train", "Trainer.step", True),
    ("run_*", "app.train", "run_batch", True),
    ("run_*", "app.train", "run_batch.inner", False),
    ("app.*.run", "app.train", "run", True),
    ("app.*.run", "app.deep.train", "run", False),
    ("main.inner", "m", "main.<locals>.inner", True),
    ("*", "m", "f", True),
]


@pytest.mark.parametrize(("name", "module", "function", "expected"), NAMES)
def test_names(name: str, module: str, function: str, expected: bool) -> None:
    assert (Declared(hot=(name,)).heat(module, function) is Heat.HOT) is expected
    assert (Declared(cold=(name,)).heat(module, function) is Heat.COLD) is expected


def test_hot_wins_and_nothing_declared_decides_nothing() -> None:
    assert Declared(("f",), ("f",)).heat("m", "f") is Heat.HOT
    assert Declared().heat("m", "f") is None


def test_stars_take_no_time() -> None:
    start = time.process_time()
    assert Declared(hot=("*a*a*a*b",)).heat("a." * 100, "a" * 100) is None
    assert time.process_time() - start < 2


READ = "    return x.cuda().sum().item()\n"
PLAIN = f"import torch\n\n\ndef note(x: torch.Tensor):\n{READ}"
STEP = f"import torch\n\n\nclass Trainer:\n    def train_step(self, x: torch.Tensor):\n    {READ}"


def heats(perflint: Command, *options: str) -> list[str]:
    """The heat of each wait in a.py, of any profile."""
    ran = perflint("check", "a.py", "--select=TPF101", "--profile=audit", "--output-format=json", *options)
    return [each["heat"] for each in json.loads(ran.out)["findings"]]


def test_settings_decide_how_often_a_function_runs(perflint: Command) -> None:
    perflint.write("a.py", PLAIN)
    assert heats(perflint) == ["warm"]
    assert heats(perflint, "--config", "hot-functions=note") == ["hot"]
    assert heats(perflint, "--config", "cold-functions=a.note") == ["cold"]
    assert heats(perflint, "--config", "hot-functions=b.note") == ["warm"]
    perflint.write("a.py", STEP)
    assert heats(perflint) == ["hot"]
    assert heats(perflint, "--config", "cold-functions=Trainer.*") == ["cold"]


def test_functions_that_a_declared_one_calls(perflint: Command) -> None:
    perflint.write("pyproject.toml", "")
    perflint.write("a.py", PLAIN)
    perflint.write("b.py", "from a import note\n\n\ndef every(batch):\n    return note(batch)\n")
    assert heats(perflint) == ["warm"]
    assert heats(perflint, "--config", "hot-functions=every") == ["hot"]
    assert heats(perflint, "--config", "cold-functions=every") == ["cold"]


def test_the_cache_keeps_declarations_apart(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFLINT_NO_CACHE", raising=False)
    monkeypatch.setenv("PERFLINT_CACHE_DIR", str(perflint.folder / "cache"))
    test_functions_that_a_declared_one_calls(perflint)
    test_functions_that_a_declared_one_calls(perflint)


def test_explain_names_the_setting(perflint: Command) -> None:
    perflint.write("a.py", PLAIN)
    ran = perflint("explain", "a.py:5", "--config", "hot-functions=note")
    assert "in `note`, which the settings list under `hot-functions`" in " ".join(ran.out.split())


@pytest.mark.parametrize("name", ["", "a b", ".a", "a.", "a..b", "a(", "*****"])
def test_names_that_are_none(perflint: Command, name: str) -> None:
    perflint.write("perflint.toml", f'hot-functions = ["{name}"]\n')
    ran = perflint("check")
    expected = "must be a list of names with dots between their parts"
    assert ran.code == 2 and f'{expected}, not "{name}"' in ran.err


WAIT = (
    "import torch\nfrom mylib import to_cpu\nimport mylib as m\n\n\n"
    "def train(model: torch.nn.Module, loader, optimizer):\n    for batch in loader:\n"
    "        loss = model(batch.cuda()).sum()\n        loss.backward()\n        optimizer.step()\n"
    "        print(to_cpu(loss), m.to_cpu(loss), m.other(loss))\n"
)


def waits(perflint: Command, *options: str) -> list[str]:
    """The places of TPF137 in a.py."""
    ran = perflint("check", "a.py", "--select=TPF137", "--output-format=concise", *options)
    return [line.split(" ")[0] for line in ran.out.splitlines()]


def test_calls_of_functions_that_wait(perflint: Command) -> None:
    perflint.write("a.py", WAIT)
    assert waits(perflint) == []
    for name in ("to_cpu", "mylib.to_cpu", "mylib.to_*"):
        assert waits(perflint, "--config", f"sync-functions={name}") == ["a.py:11:15:", "a.py:11:29:"]
    assert waits(perflint, "--config", "sync-functions=m.to_cpu") == []
    assert perflint("check", "a.py", "--select=TPF1", "--ignore=TPF137", "--config", "sync-functions=to_cpu").code == 0
    perflint.write("a.py", WAIT.replace("        print(", "    print("))
    ran = perflint("check", "a.py", "--select=TPF137", "--config", "sync-functions=to_cpu", "--output-format=json")
    assert {each["heat"] for each in json.loads(ran.out)["findings"]} <= {"warm", "cold"}


def test_explain_shows_declared_waits_and_thresholds(perflint: Command) -> None:
    perflint.write("a.py", WAIT)
    ran = perflint("explain", "a.py:11", "--config", "sync-functions=mylib.to_cpu")
    assert "TPF137" in ran.out
    ran = perflint("explain", "a.py:11", "--config", "sync-functions=mylib.to_cpu", "--min-severity=error")
    assert "the settings show no findings of its severity or confidence" in " ".join(ran.out.split())


def test_methods_of_the_project_that_wait(perflint: Command) -> None:
    perflint.write("meters.py", "class Meter:\n    def value(self):\n        return native()\n")
    text = WAIT.replace("from mylib import to_cpu", "from meters import Meter").replace(
        "to_cpu(loss)", "Meter().value()"
    )
    perflint.write("a.py", text)
    assert waits(perflint, "--config", "sync-functions=meters.Meter.value") == ["a.py:11:15:"]


def test_methods_that_classes_of_the_project_inherit(perflint: Command) -> None:
    text = (
        "import mylib\n\n\nclass Base(mylib.Model):\n    def save(self):\n        pass\n\n\n"
        "class Net(Base):\n    def predict(self, x):\n        return self.run(x), self.save(), other.run(x)\n\n"
        "    def run_twice(self, x):\n        return self.run(x), super().run(x)\n\n\n"
        "class Own(Base):\n    def run(self, x):\n        return x\n\n    def predict(self, x):\n        return self.run(x)\n\n\n"
        "def evaluate(x):\n    return Net().run(x), Own().run(x)\n"
    )
    perflint.write("a.py", text)
    found = ["a.py:11:16:", "a.py:14:16:", "a.py:14:29:", "a.py:26:12:"]
    assert waits(perflint, "--config", "sync-functions=mylib.Model.run") == found
    assert waits(perflint, "--config", "sync-functions=mylib.Model.save") == []
    assert waits(perflint, "--config", "sync-functions=mylib.Other.run") == []


def test_functions_that_give_gpu_tensors(perflint: Command) -> None:
    text = (
        "import torch\nimport mylib\n\n\ndef train(model: torch.nn.Module, loader, optimizer):\n    for batch in loader:\n"
        "        loss = model(batch).sum()\n        loss.backward()\n        optimizer.step()\n"
        "        print(mylib.norm().item())\n"
    )
    perflint.write("a.py", text)

    def confidences(*options: str) -> list[str]:
        ran = perflint("check", "a.py", "--select=TPF101", "--profile=audit", "--output-format=json", *options)
        return [each["confidence"] for each in json.loads(ran.out)["findings"]]

    before = confidences()
    assert "high" not in before
    assert confidences("--config", "gpu-functions=mylib.norm") == ["high"]
    assert confidences("--config", "gpu-functions=mylib.other") == before


def test_folders_of_imports(perflint: Command) -> None:
    perflint.write("pyproject.toml", "")
    perflint.write("deep/lib/pkg/util.py", f"import torch\n\n\ndef read(x: torch.Tensor):\n{READ}")
    perflint.write(
        "app/a.py",
        "from pkg.util import read\n\n\ndef train(model, loader, optimizer):\n    for batch in loader:\n"
        "        loss = model(batch.cuda()).sum()\n        loss.backward()\n        optimizer.step()\n        read(loss)\n",
    )

    def heat(*options: str) -> list[str]:
        ran = perflint("check", ".", "--select=TPF101", "--profile=audit", "--output-format=json", *options)
        return [each["heat"] for each in json.loads(ran.out)["findings"]]

    assert heat() == ["warm"]
    assert heat("--config", "src=deep/lib") == ["hot"]
    assert heat("--config", "src=deep") == ["warm"]
