"""Faults of perflint are problems; what the user does is none."""

from __future__ import annotations

import pytest

from perflint.engine.crashes import contained
from perflint.findings import Problem


def problems(error: BaseException) -> list[Problem]:
    found: list[Problem] = []
    with contained(found, "a.py", lambda: ("the test", 3, "help")):
        raise error
    return found


def test_an_exception_is_a_problem_of_one_line() -> None:
    (found,) = problems(KeyError("one\ntwo"))
    assert (found.path, found.line, found.help, found.internal) == ("a.py", 3, "help", True)
    assert found.message.startswith("the test crashed: KeyError: 'one\\ntwo' (test_crashes.py:")
    assert problems(ValueError("one\ntwo"))[0].message.startswith("the test crashed: ValueError: one (")
    assert problems(ValueError())[0].message.startswith("the test crashed: ValueError (")


def test_the_traceback_is_printed_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problems(ValueError("one"))
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("PERFLINT_TRACEBACK", "1")
    problems(ValueError("one"))
    assert capsys.readouterr().err.endswith("ValueError: one\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, BrokenPipeError])
def test_what_is_no_fault_goes_on(error: type[BaseException]) -> None:
    with pytest.raises(error):
        problems(error())


def test_an_interrupt_may_come_as_the_cause_or_context_of_another_error() -> None:
    caused = RuntimeError("x")
    caused.__cause__ = ValueError("y")
    caused.__cause__.__context__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        problems(caused)


def test_errors_in_a_circle() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert len(problems(one)) == 1
