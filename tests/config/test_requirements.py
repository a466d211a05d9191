"""Which torch a project allows, by its requirement files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from perflint.config.pyproject import find
from perflint.config.settings import Version, combine
from perflint.config.torch_bounds import lower_bound

BOUNDS: list[tuple[str, Version | None]] = [
    (">=1.8", (1, 8)),
    ("==1.6.0", (1, 6)),
    ("== 1.6.0+cu101", (1, 6)),
    ("===2.1", (2, 1)),
    ("~=2.3", (2, 3)),
    (">1.10,>=2.0", (2, 0)),
    (">=1.8,!=1.9.0,<3", (1, 8)),
    ("==1.*", (1, 0)),
    (">=2", (2, 0)),
    # Poetry.
    ("^1.8", (1, 8)),
    ("~1.13.1", (1, 13)),
    ("2.1.*", (2, 1)),
    ("^1.8 || ^2.0", (1, 8)),
    ("*", None),
    # conda.
    ("=1.7.0=py3.8_cuda10.2.89_cudnn7.6.5_0", (1, 7)),
    ("=1.7|=1.6", (1, 6)),
    (" 1.7.* cuda112py39", (1, 7)),
    # Upper bounds alone.
    ("<2.5", (2, 4)),
    ("<=1.13", (1, 13)),
    ("<2.0", (1, 13)),
    ("<2", (1, 13)),
    ("<2.6.1", (2, 6)),
    ("<3", None),
    ("!=1.9", None),
    ("", None),
    ("latest", None),
    (">=" + "9" * 5000, None),
]


@pytest.mark.parametrize(("bounds", "expected"), BOUNDS)
def test_bounds(bounds: str, expected: Version | None) -> None:
    assert lower_bound(bounds) == expected


FILES = [
    ("requirements.txt", "numpy\ntorch==1.6.0\n", (1, 6)),
    ("requirements.txt", "torch >= 1.8  # or 1.4\n", (1, 8)),
    ("requirements.txt", "# torch>=1.2\nTorch[opt]>=1.9 ; python_version > '3.8'\n", (1, 9)),
    ("requirements.txt", "torch==1.7.1 --hash=sha256:0123\n", (1, 7)),
    ("requirements.txt", "torchvision==0.7\ntorch-scatter==2.0\npytorch_lightning>=1.4\n", None),
    ("requirements.txt", "torch\n", None),
    ("requirements.txt", "torch @ https://example.org/torch-1.7.1-cp38.whl\n", (1, 7)),
    ("requirements.txt", "torch @ https://example.org/torch.whl\n", None),
    ("requirements-gpu.txt", "torch>=2.0\n", (2, 0)),
    ("requirements_dev.txt", "torch>=2.0\n", (2, 0)),
    ("requirements/base.txt", "torch>=1.12\n", (1, 12)),
    ("dev-requirements.in", "torch>=2.0\n", (2, 0)),
    ("constraints.txt", "torch<2.2\n", (2, 1)),
    ("notes.txt", "torch==1.6.0\n", None),
    ("train.py", "# pip install torch==1.6.0\n", None),
    ("environment.yml", "name: x\ndependencies:\n  - python=3.8\n  - pytorch=1.7.0\n", (1, 7)),
    ("environment.yaml", "dependencies:\n- pytorch::pytorch==1.11.0=py3.8_cuda11.3_cudnn8.2.0_0\n", (1, 11)),
    ("environment.yml", "dependencies:\n  - pytorch 1.10.*\n", (1, 10)),
    ("environment_gpu.yml", "dependencies:\n  - pip:\n    - 'torch>=2.1'\n", (2, 1)),
    ("environment.yml", "dependencies:\n  - pytorch-cuda=11.8\n  - pytorch-lightning=1.4\n  - pytorch\n", None),
    ("mae_env.yml", "name: mae\ndependencies:\n  - python=3.8\n  - pytorch=1.7.0=py3.8_cuda10.2_0\n", (1, 7)),
    ("conda/gpu.yaml", "dependencies:\n  - pip:\n    - torch==1.8.1\n", (1, 8)),
    ("configs/model.yaml", "dependencies: none\nname: torch\ndepth: 1.4\n", None),
    (".github/workflows/test.yml", "    steps:\n      - run: pip install torch==1.9.1+cpu -f x.html\n", (1, 9)),
    (".github/workflows/test.yml", "matrix:\n  torch-version: ['1.13', \"2.0\", 2.1]\n", (1, 13)),
    (".circleci/config.yml", "environment:\n  TORCH_VERSION: 1.10.0\n", (1, 10)),
    ("install.sh", "conda install -y pytorch==1.9.0 torchvision==0.10.0 cudatoolkit=11.1 -c pytorch\n", (1, 9)),
    ("scripts/setup_env.sh", 'TORCH=1.8.0\npip install "torch>=${TORCH}"\n', (1, 8)),
    ("run.sh", "# pip install torch==1.4\nexport CUDA_VISIBLE_DEVICES=0\npython train.py --torch 1\n", None),
    ("setup.sh", "pip install torch-scatter -f https://data.pyg.org/whl/torch-1.12.0+cu113.html\n", (1, 12)),
    ("Dockerfile", "FROM pytorch/pytorch:1.6.0-cuda10.1-cudnn7-devel\n", (1, 6)),
    ("Dockerfile", 'ARG PYTORCH="1.6.0"\nFROM pytorch/pytorch:${PYTORCH}-devel\n', (1, 6)),
    ("docker/gpu.Dockerfile", "FROM nvcr.io/nvidia/pytorch:22.08-py3\nRUN pip install 'torch>=1.11,<2'\n", (1, 11)),
    ("Dockerfile.cpu", "FROM nvcr.io/nvidia/pytorch:22.08-py3\n", None),
    ("Pipfile", '[packages]\ntorch = "==1.13.1"\n', (1, 13)),
    ("pixi.toml", '[dependencies]\npytorch = ">=2.0,<3"\n', (2, 0)),
    ("tox.ini", "deps =\n    torch19: torch==1.9.*\n", (1, 9)),
    ("README.md", "```\npip install torch==1.7.1+cu110 torchvision==0.8.2\n```\n", (1, 7)),
    ("README.md", "- Python 3.7\n- [PyTorch](https://pytorch.org/) >= 1.9.0\n", (1, 9)),
    ("README.md", "Requires **PyTorch** (≥ 1.8) and a GPU.\n", (1, 8)),
    ("README.md", "Then, install PyTorch 1.5+ and torchvision 0.6+:\n", (1, 5)),
    ("README.md", "Needs pytorch version 1.6 or later.\n", (1, 6)),
    ("README.md", "* Python 3.8\n* PyTorch 1.8.1\n", (1, 8)),
    ("README.rst", "- ``torch``: 1.10\n", (1, 10)),
    ("README.md", "| library | version |\n|---|---|\n| PyTorch | 1.12 |\n", (1, 12)),
    ("INSTALL.md", "    conda install pytorch=1.4 -c pytorch\n", (1, 4)),
    ("docs/INSTALL", "pip install 'torch~=2.1'\n", (2, 1)),
    ("README.md", "PyTorch 2.0 brought `torch.compile`. We train 1.5 times as fast.\n", None),
    ("README.md", "## PyTorch 1.4\n`torch.__version__ >= '1.4'`, pytorch-lightning==1.5, torch_geometric==1.7\n", None),
    ("README.md", "See https://pytorch.org/docs/1.7/ and torchvision 0.8+. 16 torch: 4 GPUs.\n", None),
    ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=1.4\n", (1, 4)),
    ("setup.cfg", "[options]\ninstall_requires = torch>=1.4\n", (1, 4)),
    ("setup.cfg", "[mypy-torch.*]\nignore_missing_imports = True\n", None),
    ("setup.py", "from setuptools import setup\nsetup(install_requires=['torch>=1.5', 'numpy'])\n", (1, 5)),
    ("setup.py", 'NEEDS = """\nnumpy\ntorch>=1.5\n"""\n', (1, 5)),
    ("setup.py", "# 'torch>=1.5'\nsetup(install_requires=['torch'])\n", None),
    ("setup.py", "setup(install_requires=['torch>=1.5'\n", None),
    ("setup.py", "raise SystemExit('must not run')\nsetup(install_requires=['torch>=1.5'])\n", (1, 5)),
]


@pytest.mark.parametrize(("name", "text", "expected"), FILES)
def test_files(tmp_path: Path, name: str, text: str, expected: Version | None) -> None:
    put(tmp_path / name, text)
    assert torch_of(tmp_path) == expected


TABLES = [
    ('[project.optional-dependencies]\ngpu = ["torch>=1.9"]', (1, 9)),
    ('[dependency-groups]\ndev = [{include-group = "x"}, "torch>=2.2"]', (2, 2)),
    ('[tool.poetry.dependencies]\ntorch = "^1.8"', (1, 8)),
    ('[tool.poetry.dependencies]\ntorch = {version = ">=2.1,<3", source = "pytorch"}', (2, 1)),
    ('[tool.poetry.dependencies]\ntorch = [{version = "1.13.*", platform = "linux"}, {version = "^2.0"}]', (1, 13)),
    ('[tool.poetry.dependencies]\ntorch = {url = "https://example.org/torch-1.7.whl"}', None),
    ('[tool.poetry.group.train.dependencies]\ntorch = "~2.3"', (2, 3)),
    ('[tool.poetry.dev-dependencies]\ntorch = "2.4.1"', (2, 4)),
    ('[tool.uv]\ndev-dependencies = ["torch>=2.5"]', (2, 5)),
    ('[tool.poetry]\ndependencies = "torch"\ngroup = ["torch"]\n[tool.uv]\ndev-dependencies = {torch = 1}', None),
]


@pytest.mark.parametrize(("text", "expected"), TABLES)
def test_tables(tmp_path: Path, text: str, expected: Version | None) -> None:
    put(tmp_path / "pyproject.toml", text)
    assert torch_of(tmp_path) == expected


def test_the_lowest_bound_of_a_folder_counts(tmp_path: Path) -> None:
    put(tmp_path / "pyproject.toml", '[project]\ndependencies = ["torch>=2.1"]\n')
    put(tmp_path / "requirements.txt", "torch==2.4.0\n")
    put(tmp_path / "setup.py", "setup(install_requires=['torch>=1.10'])\n")
    assert torch_of(tmp_path) == (1, 10)


def test_the_nearest_folder_counts(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    put(tmp_path / "requirements.txt", "torch>=1.8\n")
    put(tmp_path / "examples" / "requirements.txt", "torch>=2.3\n")
    (tmp_path / "examples" / "deep").mkdir()
    (tmp_path / "src").mkdir()
    assert torch_of(tmp_path / "examples" / "deep") == (2, 3)
    assert torch_of(tmp_path / "src") == torch_of(tmp_path) == (1, 8)


def test_files_outside_of_the_repository_say_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "requirements.txt", "torch>=1.8\n")
    project = tmp_path / "project" / "src"
    project.mkdir(parents=True)
    (tmp_path / "project" / ".git").write_text("gitdir: elsewhere\n")
    assert torch_of(project) is None
    (tmp_path / "project" / ".git").unlink()
    assert torch_of(project) is None
    # Without a repository, the working directory stands for its root.
    monkeypatch.chdir(tmp_path)
    assert torch_of(project) == (1, 8)


def test_folders_below_count_if_no_other_states_a_version(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    put(tmp_path / "README.md", "Install torch.\n")
    put(tmp_path / "gym" / "conda_env.yml", "dependencies:\n  - pip:\n    - torch==1.8.1\n")
    put(tmp_path / "atari" / "conda_env.yml", "dependencies:\n  - pytorch=1.2\n")
    put(tmp_path / "venv" / "requirements.txt", "torch==0.4\n")
    (tmp_path / "src").mkdir()
    assert torch_of(tmp_path) == torch_of(tmp_path / "src") == (1, 2)
    assert torch_of(tmp_path / "gym") == (1, 8)
    put(tmp_path / "README.md", "pip install torch==2.1\n")
    assert torch_of(tmp_path) == (2, 1)


def test_files_beside_a_file_outside_of_a_repository_say_nothing(tmp_path: Path) -> None:
    put(tmp_path / "other" / "requirements.txt", "torch>=1.8\n")
    put(tmp_path / "train.py", "import torch\n")
    assert torch_of(tmp_path / "train.py") is None
    assert torch_of(tmp_path) == (1, 8)


def test_a_large_tree_is_read_in_part(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for number in range(600):
        put(tmp_path / f"{number % 40}" / f"{number}" / "config.yaml", "torch: false\n" * 1000)
    before = time.process_time()
    assert torch_of(tmp_path) is None
    assert time.process_time() - before < 1


def test_includes_are_followed(tmp_path: Path) -> None:
    put(tmp_path / "requirements.txt", "-r deps/base.txt\n--requirement=deps/gone.txt\n-r https://example.org/r.txt\n")
    put(tmp_path / "deps" / "base.txt", "-c limits.txt\n-r base.txt\n-r ../requirements.txt\n")
    put(tmp_path / "deps" / "limits.txt", "torch>=1.11\n")
    assert torch_of(tmp_path) == (1, 11)


def test_a_chain_of_includes_ends(tmp_path: Path) -> None:
    put(tmp_path / "requirements.txt", "-r 0.txt\n")
    for number in range(2000):
        put(tmp_path / f"{number}.txt", f"-r {number + 1}.txt\n")
    put(tmp_path / "2000.txt", "torch>=1.11\n")
    assert torch_of(tmp_path) is None


def test_a_stated_version_beats_all_files(tmp_path: Path) -> None:
    put(tmp_path / "pyproject.toml", '[tool.perflint]\ntorch-version = "2.7"\n')
    put(tmp_path / "requirements.txt", "torch>=1.11\n")
    assert torch_of(tmp_path) == (2, 7)


def test_utf_16(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes("torch==1.9.0\r\n".encode("utf-16"))
    assert torch_of(tmp_path) == (1, 9)


HOSTILE = {
    "bytes": b"\xff\xfe\x00torch>=1.8\n\xff",
    "zeros": b"torch>=1.8\0" * 10_000,
    "large": b"torch>=1.8\n" * 200_000,
    "brackets": b"torch" + b"[" * 500_000,
    "spaces": b"torch" + b" " * 500_000 + b">",
    "digits": b"torch>=" + b"1" * 500_000,
    "alternatives": b"torch" + b"|" * 500_000,
    "nested": b"'torch>=1.8'" + b"(" * 100_000,
    "lines": b"torch torch torch version version pytorch [a](b) 1.\n" * 20_000,
    "minus": b"'torch>=1.8'" + b"-" * 200_000 + b"1",
}


@pytest.mark.parametrize("name", ["requirements.txt", "environment.yml", "setup.cfg", "setup.py", "README.md"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / name).write_bytes(HOSTILE[kind])
    before = time.process_time()
    torch_of(tmp_path)
    assert time.process_time() - before < 3


@pytest.mark.parametrize("name", ["requirements.txt", "environment.yml", "setup.cfg", "setup.py"])
def test_what_is_no_file_says_nothing(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    assert torch_of(tmp_path) is None
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    assert torch_of(tmp_path) is None
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    assert torch_of(tmp_path) is None


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def torch_of(folder: Path) -> Version | None:
    """The oldest torch that is taken for code in a folder."""
    return combine(*find([str(folder)]).places).torch_version
