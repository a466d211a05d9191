"""The line length that a project states for black or ruff."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.formatters import line_length
from perflint.config.pyproject import line_length as of_project

STATED = [
    ("pyproject.toml", "[tool.black]\nline-length = 119\n", 119),
    ("pyproject.toml", '[tool.black]\ntarget-version = ["py311"]\nline_length=100  # wide\n', 100),
    ("pyproject.toml", "[ tool.ruff ]\n  line-length = 80\n[tool.ruff.lint]\n", 80),
    ("ruff.toml", "line-length = 120\n[lint]\nselect = ['E']\n", 120),
    (".ruff.toml", "line-length = 79\n", 79),
    ("pyproject.toml", "[tool.isort]\nline_length = 79\n", None),
    ("pyproject.toml", "[tool.black]\n[tool.ruff.lint.pycodestyle]\nline-length = 79\n", None),
    ("pyproject.toml", "[tool.black]\nline-length = 1000000\n", None),
    ("pyproject.toml", "[tool.black]\nline-length = 'long'\n# line-length = 90\n", None),
    ("setup.cfg", "[flake8]\nmax-line-length = 100\n", None),
]


@pytest.mark.parametrize(("name", "text", "expected"), STATED)
def test_stated(tmp_path: Path, name: str, text: str, expected: int | None) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert line_length([str(tmp_path / "none"), str(tmp_path)]) == expected


def test_the_nearest_folder_of_the_project_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "project" / "package"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.black]\nline-length = 60\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "project")
    assert of_project([str(inner / "a.py")]) is None
    (tmp_path / "project" / "pyproject.toml").write_text("[tool.black]\nline-length = 70\n", encoding="utf-8")
    assert of_project([str(inner / "a.py")]) == 70
    (inner / "ruff.toml").write_text("line-length = 90\n", encoding="utf-8")
    assert of_project([str(inner / "a.py")]) == 90


def test_files_that_cannot_be_read_state_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").mkdir()
    (tmp_path / "ruff.toml").write_bytes(b"\xff\xfe line-length\n" + b"#" * (1 << 20))
    assert line_length([str(tmp_path)]) is None
