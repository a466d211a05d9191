"""Patterns of .gitignore, held against git itself."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflint.config.patterns import Patterns, literal, pattern_fault

TABLE = [
    ("build", "build", True),
    ("build", "a/b/build", True),
    ("build", "a/builds", None),
    ("/build", "build", True),
    ("/build", "a/build", None),
    ("a/build", "a/build", True),
    ("a/build", "x/a/build", None),
    ("*.py", "a/b.py", True),
    ("a/*.py", "a/b/c.py", None),
    ("a/**/c.py", "a/c.py", True),
    ("a/**/c.py", "a/x/y/c.py", True),
    ("**/c.py", "c.py", True),
    ("**/c.py", "a/c.py", True),
    ("a/**", "a/b/c", True),
    ("a/**", "a", None),
    ("a**b", "axxb", True),
    ("a?b", "axb", True),
    ("a?b", "a/b", None),
    ("[a-c].py", "b.py", True),
    ("[!a-c].py", "b.py", None),
    ("[^a-c].py", "d.py", True),
    ("[]x].py", "].py", True),
    ("[[:digit:]].py", "7.py", True),
    ("a[.py", "a[.py", None),
    ("[]", "]", None),
    ("a\\", "a\\", None),
    ("[a-]", "-", True),
    ("[z-a]", "m", None),
    ("a[b/c]d", "abd", True),
    ("a[!b]c", "a/c", None),
    ("***/c.py", "a/b/c.py", True),
    ("#note", "#note", None),
    (r"\#note", "#note", True),
    (r"\!note", "!note", True),
    ("!note", "note", False),
    ("spaces   ", "spaces", True),
    ("spaces\\ ", "spaces ", True),
    ("", "x", None),
    ("/", "x", None),
    ("a.c", "abc", None),
    ("ü*", "über.py", True),
]
UNMEANT = ("./a", "../a", "!./a", "a/../b", "..", "./", r"a\b.py", r"C:\lib", r"\\\a", "x/.")
NO_PATTERNS = ("[", "a[.py", "[]", "![", "a/[b/", "[[:digit:]", "a\\", "[a\\")


@pytest.mark.parametrize(("pattern", "path", "expected"), TABLE)
def test_verdict(pattern: str, path: str, expected: bool | None) -> None:
    assert Patterns([pattern]).verdict(path) is expected


def test_the_last_match_decides() -> None:
    patterns = Patterns(["*.py", "!keep.py", "keep.py.bak"])
    assert patterns.verdict("x.py") is True
    assert patterns.verdict("a/keep.py") is False


def test_folders_only() -> None:
    patterns = Patterns(["out/"])
    assert patterns.verdict("out", folder=True) is True
    assert patterns.verdict("out") is None
    assert patterns.covers("out/a.py")
    assert not patterns.covers("a/out")


def test_covers_looks_at_the_folders_above() -> None:
    assert Patterns(["a/b"]).covers("a/b/c/d.py")
    assert not Patterns(["a/b"]).covers("a/c/b.py")


def test_truth_is_having_patterns() -> None:
    assert Patterns(["a"])
    assert not Patterns(["", "# only a comment"])


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    yield folder


_lines = st.lists(
    st.text(alphabet="ab*?/!.[]-\\ #", min_size=1, max_size=7).filter(lambda line: not line.endswith("\\")),
    min_size=1,
    max_size=3,
)
_paths = st.lists(
    st.lists(st.text(alphabet="ab.-", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join),
    min_size=12,
    max_size=12,
    unique=True,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=_lines, paths=_paths)
def test_as_git_does(repository: Path, lines: list[str], paths: list[str]) -> None:
    paths = [path for path in paths if not {".", "..", ".git"} & set(path.split("/"))]
    (repository / ".gitignore").write_text("".join(f"{line}\n" for line in lines))
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=repository,
        input="".join(f"{path}\0" for path in paths).encode(),
        capture_output=True,
        check=False,
    )
    assert asked.returncode in (0, 1), asked.stderr
    ignored = set(asked.stdout.decode().split("\0")) - {""}
    patterns = Patterns(lines)
    assert {path for path in paths if patterns.covers(path)} == ignored


def _bombs() -> Iterator[tuple[str, str]]:
    """Patterns that match almost, in very many ways, and paths for them."""
    for stars in (8, 200):
        yield "*a" * stars + "b", "a" * 240
        yield "*?" * stars + "b", "a" * 240
        yield "*[a-c]" * stars + "b", "a" * 240
        yield "x/" + "*a" * stars + "b/*", "x/" + "a" * 240 + "/y"
        yield "**/" * stars + "b", "a/" * 120 + "a"
        yield "**/*/" * stars + "b", "a/" * 120 + "a"
        yield "**/a/" * stars + "b", "a/" * 120 + "a"
        yield "**/a*a/*/" * stars + "b", "aaa/" * 120 + "a"
        yield "a/**/" * stars + "**", "a/" * (stars - 1) + "b"


@pytest.mark.parametrize(("pattern", "path"), list(_bombs()))
@pytest.mark.parametrize("ending", ["", "!", "/"])
def test_no_pattern_takes_long(pattern: str, path: str, ending: str) -> None:
    line = f"!{pattern}" if ending == "!" else pattern + ending
    start = time.process_time()
    assert Patterns([line]).verdict(path, folder=True) is None
    assert time.process_time() - start < 2


def test_spaces_at_the_end_take_no_long_either() -> None:
    start = time.process_time()
    assert Patterns(["a" + " " * 1_000_000]).verdict("a")
    assert Patterns(["a\\" + " " * 1_000_000]).verdict("a ")
    assert time.process_time() - start < 2


@given(st.text(st.sampled_from("a!#[]*?\\ ^-."), min_size=1, max_size=6))
def test_a_literal_matches_its_path_alone(name: str) -> None:
    path = f"x{name}x"
    for each in (path, f"!{name}x", f"#{name}x", f"a/{path}"):
        pattern = Patterns([literal(each)])
        assert pattern.covers(each) and not pattern.covers(each.replace("x", "y"))


def test_only_lines_that_are_no_patterns_have_a_fault() -> None:
    assert all(pattern_fault(line) for line in (*NO_PATTERNS, *UNMEANT))
    assert not [line for line in (".a", "..a", "a.", "a./b", "*.", r"a\[b", r"\\a", r"a\ ") if pattern_fault(line)]
    assert not [line for line, _, _ in TABLE if line not in NO_PATTERNS and pattern_fault(line)]
