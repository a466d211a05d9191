"""Code that nobody wrote: a check of it ends without a fault of perflint, and fixes leave Python.

`--slow --count N --first K` tries as many programs of each kind, others for another K. A number gives the same program
each time, but for another version of Python; the short form takes other numbers after each change of the product.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, seed, settings

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.file import broken_cells, check_source
from perflint.engine.fixing import fix_text
from perflint.findings import Report, Safety
from perflint.semantics.project import Project
from perflint.source.notebooks import NotebookError
from perflint.source.reading import Unreadable, decode
from perflint.source.text import Source, parse
from tests.engine.mutated import mutated
from tests.sample import version

AUDIT = replace(Settings(), profile=Profile.AUDIT)
RULES = active_rules(AUDIT)
MOST_SECONDS = 20.0


def check(path: str, text: str, project: Project) -> Report:
    return check_source(Source(path, text), project, RULES, AUDIT)


def faults(path: str, data: bytes) -> tuple[str, list[str]]:
    """What became of a file that is checked and fixed, in a word, and what must not be."""
    began = time.thread_time()
    try:
        text = decode(data, path)
        list(map(str, broken_cells(path, text.notebook)))
        outcome, problems = fix_text(path, text.text, Project(), check, Safety)
    except Unreadable:
        return "unreadable", []
    except Exception as error:
        return "crash", [f"{type(error).__name__}: {error}"]
    found = [problem.message for problem in problems if problem.internal or outcome is not None]
    if (seconds := time.thread_time() - began) > MOST_SECONDS:
        found.append(f"took {seconds:.0f} s")
    if outcome is None:
        return "invalid", found
    if not outcome.applied:
        return "left" if outcome.text == text.text else "changed", found + ["changed"] * (outcome.text != text.text)
    try:
        parse(outcome.text)
        again = decode(text.encode(outcome.text), path)
    except (NotebookError, UnicodeEncodeError):
        return "unwritable", found
    except (SyntaxError, Unreadable) as error:
        return "broken", [*found, f"broken by a fix: {error}"]
    return "fixed", found + ["written otherwise"] * (again.text != outcome.text)


@pytest.fixture
def count(request: pytest.FixtureRequest) -> int | None:
    """How many programs to try; None in the short form."""
    return int(request.config.getoption("--count")) if request.config.getoption("--slow") else None


@pytest.fixture
def first(request: pytest.FixtureRequest, count: int | None) -> int:
    """The number of the first program."""
    return int(request.config.getoption("--first")) if count else version() * 1000


def test_code_that_was_changed_at_random(count: int | None, first: int) -> None:
    results: Counter[str] = Counter()
    found: dict[str, tuple[int, bytes]] = {}
    for number in range(first, first + (count or 200)):
        path, data = mutated(number)
        result, wrong = faults(path, data)
        results[result] += 1
        for message in wrong:
            found.setdefault(message, (number, data))
    print(dict(results))
    assert not found


def test_code_of_a_grammar(count: int | None, first: int) -> None:
    # Each process of a run imports all tests.
    from hypothesmith import from_grammar

    results: Counter[str] = Counter()

    @seed(first)
    @settings(max_examples=count or 60, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(from_grammar(auto_target=False))
    def tried(text: str) -> None:
        result, wrong = faults("grammar.py", text.encode())
        results[result] += 1
        assert not wrong

    tried()
    print(dict(results))
