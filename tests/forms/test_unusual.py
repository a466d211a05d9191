"""No rule fails at unusual forms of the code that it knows."""

from __future__ import annotations

import ast

import pytest

from perflint.engine.file import check_source, unparsable
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.forms.program import MAIN, SETTINGS, Program
from tests.forms.unusual import MUTATIONS, change
from tests.rules.harness import FIXTURES

ALWAYS = 3
"""The first mutations run each time. All of them take minutes: `pytest --slow`."""


def fixtures() -> list[str]:
    """The texts of all fixtures and of the programs that run before and after fixes."""
    return [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("*/*.py")) if path.stem != "__init__"]


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(each, id=each.__name__, marks=[pytest.mark.slow] if index >= ALWAYS else [])
        for index, each in enumerate(MUTATIONS)
    ],
)
def test_no_rule_fails(mutation: type[ast.NodeTransformer]) -> None:
    rules = RuleSet(list(all_rules()))
    texts, examined = fixtures(), 0
    for text in texts:
        program = Program({MAIN: ast.parse(text)})
        change(program, mutation)
        source = Source("example.py", program.texts()[MAIN])
        if unparsable(source) is None:
            assert not check_source(source, Project([]), rules, SETTINGS).problems, source.text
            examined += 1
    assert examined >= len(texts) * 0.9
