"""[tool.perflint]: found, read, and its faults named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perflint.config.errors import ConfigurationError
from perflint.config.pyproject import find
from perflint.config.settings import (
    DEFAULT_EXCLUDES,
    Options,
    OutputFormat,
    Profile,
    Selection,
    Settings,
    combine,
    parse_version,
)

EVERYTHING = """
[tool.perflint]
select = ["TPF1", "scalar-read-in-loop"]
ignore = ["TPF102"]
extend-select = ["TPF501"]
profile = "pedantic"
torch-version = "2.4"
exclude = ["old"]
extend-exclude = ["gen/*.py"]
output-format = "concise"

[tool.perflint.per-file-ignores]
"tests/*" = ["TPF1"]
"bench.py" = ["ALL"]
"""


def torch_of(folder: Path) -> tuple[int, int] | None:
    """The oldest torch that the settings of a folder allow."""
    return combine(*find([str(folder)]).places).torch_version


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "pyproject.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_every_key(tmp_path: Path) -> None:
    file = write(tmp_path, EVERYTHING)
    found = find([str(tmp_path)])
    assert found.root == str(tmp_path)
    assert found.options == Options(
        selection=Selection(("TPF1", "scalar-read-in-loop"), ("TPF102",), ("TPF501",), origin=str(file)),
        profile=Profile.PEDANTIC,
        torch_version=(2, 4),
        exclude=("old",),
        extend_exclude=("gen/*.py",),
        per_file_ignores=(("tests/*", ("TPF1",)), ("bench.py", ("ALL",))),
        output_format=OutputFormat.CONCISE,
    )


def test_an_empty_table_says_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, "[tool.perflint]\n")
    assert find([str(tmp_path)]).options == Options(selection=Selection(origin=str(file)))


def test_the_nearest_file_with_the_table_counts(tmp_path: Path) -> None:
    write(tmp_path, '[tool.perflint]\nprofile = "audit"\n')
    write(tmp_path / "a", "[tool.black]\nline-length = 100\n")
    write(tmp_path / "a" / "b", '[tool.perflint]\nprofile = "pedantic"\n')
    module = tmp_path / "a" / "b" / "c" / "module.py"
    module.parent.mkdir()
    module.write_text("")
    assert find([str(module)]).options.profile is Profile.PEDANTIC
    assert find([str(module), str(tmp_path / "a")]).options.profile is Profile.AUDIT
    assert find([str(tmp_path / "a" / "missing.py")]).options.profile is Profile.AUDIT


def test_paths_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, '[tool.perflint]\nprofile = "audit"\n')
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    for paths in ([], ["."], ["module.py"], ["../other.py", "x"]):
        assert find(paths).options.profile is Profile.AUDIT


def test_without_a_file_the_working_directory_is_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = find(["."])
    assert found.root is None
    assert combine(found.options, Options(), root=found.root).root == str(tmp_path)


FAULTS = [
    ("selct = []", "unknown key `selct`", "did you mean `select`?"),
    ("per_file_ignores = {}", "unknown key `per_file_ignores`", "did you mean `per-file-ignores`?"),
    ("zzz = 1", "unknown key `zzz`", "known keys: extend, select, "),
    ('select = "TPF1"', '`select` in [tool.perflint] must be a list of strings, not "TPF1"', None),
    ("ignore = [1]", "`ignore` in [tool.perflint] must be a list of strings, not a list with other things", None),
    ("profile = true", 'must be one of "default", "pedantic", "audit", not true', None),
    ('profile = "pedant"', 'not "pedant"', "did you mean `pedantic`?"),
    ("torch-version = 2.6", 'must be a version in quotes, such as "2.6", not the number 2.6', None),
    ('torch-version = "new"', "`new` is not a torch version", "write it as 2.6"),
    ("exclude = {a = 1}", "must be a list of strings, not a table", None),
    ("per-file-ignores = []", "must be a table from path patterns to lists of rules, not a list", None),
    ('per-file-ignores = {a = "TPF1"}', 'must be a list of strings, not "TPF1"', None),
    ("time-limit = 0", "must be a whole number of seconds, from 1, not the number 0", None),
    ("time-limit = true", "must be a whole number of seconds, from 1, not true", None),
    ('output-format = "xml"', 'must be one of "full", "concise", "grouped", "json"', None),
    ("torch-version = 2024-01-01", "not a date", None),
    ('exclude = ["a", "["]', "`exclude` in [tool.perflint]: `[` is not a pattern of paths: a `[` without `]`", None),
    ('extend-exclude = ["a/[b"]', "`extend-exclude` in [tool.perflint]: `a/[b` is not a pattern of paths", "pattern"),
    ("exclude = ['./a']", "`./a` is not a pattern of paths: paths are relative to the folder", None),
    ("exclude = ['sub\\a.py']", "is not a pattern of paths: folders are separated by `/`", None),
    ("exclude = ['a\\']", "is not a pattern of paths: a `\\` at its end escapes nothing", "patterns are those of"),
    ('per-file-ignores = {"!a[!" = ["ALL"]}', "`per-file-ignores` in [tool.perflint]: `!a[!` is not", "patterns are"),
]


@pytest.mark.parametrize(("line", "message", "help"), FAULTS)
def test_faults_name_file_and_key(tmp_path: Path, line: str, message: str, help: str | None) -> None:
    file = write(tmp_path, f"[tool.perflint]\n{line}\n")
    with pytest.raises(ConfigurationError) as raised:
        find([str(tmp_path)])
    assert str(file) in raised.value.message
    assert message in raised.value.message
    if help is not None:
        assert raised.value.help is not None and raised.value.help.startswith(help)


def test_the_table_must_be_one(tmp_path: Path) -> None:
    write(tmp_path, "[tool]\nperflint = 3\n")
    with pytest.raises(ConfigurationError, match=r"must be a table, not the number 3"):
        find([str(tmp_path)])


def test_bad_toml_is_an_error_only_where_it_may_concern_perflint(tmp_path: Path) -> None:
    write(tmp_path, "[tool.perflint\n")
    with pytest.raises(ConfigurationError, match="not valid TOML"):
        find([str(tmp_path)])
    write(tmp_path, "[tool.black\n")
    assert find([str(tmp_path)]).options == Options()


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"[tool.perflint]\n# \xff\n")
    with pytest.raises(ConfigurationError, match="not valid TOML"):
        find([str(tmp_path)])


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        find([str(tmp_path)])


REQUIREMENTS = [
    ('["torch>=2.1"]', (2, 1)),
    ('["numpy", "torch >= 2.1.2, <3"]', (2, 1)),
    ('["torch==2.6.*"]', (2, 6)),
    ('["torch~=2.3"]', (2, 3)),
    ('["torch[opt] (>=1.13)"]', (1, 13)),
    ("[\"torch>=2.2; sys_platform == 'linux'\"]", (2, 2)),
    ('["torch>1.10,>=2.0"]', (2, 0)),
    ('["torch"]', None),
    ('["torch<2.5"]', (2, 4)),
    ('["torch>=2"]', (2, 0)),
    ('["torchvision>=0.20"]', None),
    ('["torch @ https://example.org/torch-2.1.whl"]', (2, 1)),
    ('"torch>=2.1"', None),
    ("[3]", None),
]


@pytest.mark.parametrize(("dependencies", "expected"), REQUIREMENTS)
def test_the_torch_version_comes_from_the_requirements(
    tmp_path: Path, dependencies: str, expected: tuple[int, int] | None
) -> None:
    write(tmp_path, f'[project]\nname = "x"\ndependencies = {dependencies}\n[tool.perflint]\n')
    assert torch_of(tmp_path) == expected


def test_a_stated_torch_version_beats_the_requirements(tmp_path: Path) -> None:
    write(tmp_path, '[project]\ndependencies = ["torch>=2.1"]\n[tool.perflint]\ntorch-version = "2.7"\n')
    assert torch_of(tmp_path) == (2, 7)


def test_requirements_count_without_the_table(tmp_path: Path) -> None:
    write(tmp_path, '[project]\ndependencies = ["torch>=2.1"]\n')
    assert torch_of(tmp_path) == (2, 1)


def test_the_command_line_beats_the_file() -> None:
    file = Options(
        profile=Profile.AUDIT,
        torch_version=(2, 1),
        exclude=("a",),
        extend_exclude=("b",),
        output_format=OutputFormat.JSON,
    )
    line = Options(
        profile=Profile.DEFAULT, torch_version=(2, 9), extend_exclude=("c",), output_format=OutputFormat.FULL
    )
    settings = combine(file, line, root="/root")
    assert (settings.profile, settings.torch_version) == (Profile.DEFAULT, (2, 9))
    assert settings.exclude == ("a", "b", "c")
    assert settings.output_format is OutputFormat.FULL
    assert combine(file, Options(exclude=("x",)), root="/root").exclude == ("x", "b")


def test_defaults() -> None:
    settings = combine(Options(), Options(), root="/root")
    assert settings.profile is Profile.DEFAULT
    assert settings.torch_version is None
    assert settings.exclude == DEFAULT_EXCLUDES
    assert settings.output_format is OutputFormat.FULL


IGNORES = [
    ("tests/*", "tests/a.py", True),
    ("tests/*", "tests/deep/a.py", True),
    ("tests/*", "src/tests/a.py", False),
    ("tests", "src/tests/a.py", True),
    ("test_*.py", "src/test_a.py", True),
    ("src/a.py", "src/a.py", True),
    ("src/a.py", "src/b.py", False),
    ("**/conftest.py", "x/y/conftest.py", True),
    ("*", "../outside.py", False),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), IGNORES)
def test_per_file_ignores(tmp_path: Path, pattern: str, path: str, expected: bool) -> None:
    settings = Settings(per_file_ignores=((pattern, ("TPF1",)),), root=str(tmp_path))
    assert settings.ignored_selectors(str(tmp_path / path)) == (("TPF1",) if expected else ())


@pytest.mark.parametrize(
    ("text", "expected"), [("2.6", (2, 6)), ("2.6.1", (2, 6)), ("2.10.0+cu130", (2, 10)), ("2.9.0a0", (2, 9))]
)
def test_versions(text: str, expected: tuple[int, int]) -> None:
    assert parse_version(text, "here") == expected


@pytest.mark.parametrize("text", ["", "2", "two", "2.x", "2.6.1.1.1", "v2.6"])
def test_no_versions(text: str) -> None:
    with pytest.raises(ConfigurationError, match="here"):
        parse_version(text, "here")


HOSTILE = [
    ("[tool.perflint]\nselect = " + "[" * 5000 + "]" * 5000, "nested too deep"),
    ("[tool.other]\nx = " + "[" * 5000 + "]" * 5000 + "\n[tool.perflint]\n", "nested too deep"),
    ("[tool.perflint]\nx" + ".x" * 50_000 + " = 1", "more than 300 parts"),
    ("[tool.perflint]\nx = {" + '"y" . ' * 50_000 + "x = 1}", "more than 300 parts"),
    (f"[tool.perflint]\ntorch-version = {'9' * 5000}", "not valid TOML"),
    (f"[tool.perflint]\ntorch-version = 0x{'f' * 5000}", "not a large number"),
    (f"[tool.perflint]\ntorch-version = '{'9' * 5000}.0'", "is not a torch version"),
    ("# perflint" + " " * (1 << 20), "larger than 1 MB"),
]


@pytest.mark.parametrize(("text", "message"), HOSTILE, ids=[message for _, message in HOSTILE])
def test_settings_made_to_break_their_reader(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, text)
    with pytest.raises(ConfigurationError, match=message):
        find([str(tmp_path)])


@pytest.mark.parametrize("bound", ["9" * 10_000, "2." + "9" * 10_000, " " * 10_000 + ")) 2", "(" * 10_000])
def test_a_requirement_made_to_break_its_reader(tmp_path: Path, bound: str) -> None:
    write(tmp_path, f'[project]\ndependencies = ["torch>={bound}", "torch{bound}"]\n')
    assert torch_of(tmp_path) in (None, (2, 0))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_in_place_of_the_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    with pytest.raises(ConfigurationError, match="not a regular file"):
        find([str(tmp_path)])
