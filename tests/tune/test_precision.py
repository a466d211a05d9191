"""TF32 for the products of float32 matrices."""

from __future__ import annotations

import pytest

from perflint.tune.evidence import Evidence
from perflint.tune.graphs.outlining import Seen
from perflint.tune.precision import in_tf32
from perflint.tune.refused import Refused

STEP = "optimizer.step()\n"


def written(
    text: str, others: dict[str, str] | None = None, busy: float | None = 5.0, oldest: tuple[int, int] | None = None
) -> str:
    evidence = Evidence(Seen({"a.py": {9}}, ()), (), 10.0, busy, oldest)
    return in_tf32({"a.py": text, **(others or {})}, evidence)["a.py"]


@pytest.mark.parametrize(
    ("imports", "torch"),
    [
        ("import torch\n", "torch"),
        ("import torch as th\nfrom torch import nn\n", "th"),
        ('"""A program."""\nfrom __future__ import annotations\nimport os, torch\nimport sys\n', "torch"),
        ("import torch\nfrom torch.nn import (\n    Linear,\n)\n", "torch"),
    ],
)
def test_it_stands_behind_the_imports(imports: str, torch: str) -> None:
    assert written(imports + STEP) == f'{imports}{torch}.set_float32_matmul_precision("high")\n{STEP}'


def test_it_runs() -> None:
    text = written("import torch\nbefore = torch.get_float32_matmul_precision()\n")
    seen: dict[str, object] = {}
    try:
        exec(compile(text, "a.py", "exec"), seen)
        assert seen["before"] == "high"
    finally:
        exec('import torch\ntorch.set_float32_matmul_precision("highest")')


@pytest.mark.parametrize("imports", ["from torch import nn\n", "import torch; x = 1\n", "x = 1\nimport torch\n"])
def test_no_place(imports: str) -> None:
    with pytest.raises(Refused, match="imports torch at its beginning"):
        written(imports + STEP)


@pytest.mark.parametrize(
    "choice",
    [
        'torch.set_float32_matmul_precision("medium")',
        "torch.backends.cuda.matmul.allow_tf32 = False",
        'torch.backends.cuda.matmul.fp32_precision = "ieee"',
    ],
)
def test_a_program_that_chooses_itself(choice: str) -> None:
    with pytest.raises(Refused, match=r"b\.py chooses the precision"):
        written("import torch\n" + STEP, {"b.py": choice})


def test_without_a_gpu() -> None:
    with pytest.raises(Refused, match="no GPU"):
        written("import torch\n" + STEP, busy=None)


def test_an_old_torch() -> None:
    with pytest.raises(Refused, match=r"older than 1\.12"):
        written("import torch\n" + STEP, oldest=(1, 11))
    assert written("import torch\n" + STEP, oldest=(1, 12)) != STEP
