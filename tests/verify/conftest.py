"""A program whose runs are forked, for all tests of a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from perflint.verify.execution import Program
from tests.verify.forks import Ran, close, program_in


@pytest.fixture(scope="session")
def runs_of_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Two imports of torch for many tests."""
    if not hasattr(os, "fork") or find_spec("torch") is None:
        pytest.skip("needs torch and POSIX")
    folder = tmp_path_factory.mktemp("forked")
    with pytest.MonkeyPatch.context() as patch:
        program = program_in(folder, "import torch\n", patch)
        first = program.run({})
        assert program._first is not None
        imported = program._first[1]
        again = program.run({})
    yield Ran(folder, program, first, imported, again)
    close(program)


@pytest.fixture
def forked(runs_of_one: Ran, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """A program whose runs are forked, before and after the test."""
    program = runs_of_one.program
    monkeypatch.chdir(program._workspace.root)
    assert program._forked is not None
    yield program
    assert program._forked is not None
