"""No rule fails at unusual forms of the code that it knows.

Each form is tried with one of 30 fixtures, others for the next form. All of them take minutes:
`pytest --slow`.
"""

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


def fixtures() -> list[str]:
    """The texts of all fixtures and of the programs that run before and after fixes."""
    return [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("*/*.py")) if path.stem != "__init__"]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
@pytest.mark.parametrize("every", [30, pytest.param(1, marks=pytest.mark.slow)])
def test_no_rule_fails(mutation: type[ast.NodeTransformer], every: int) -> None:
    rules = RuleSet(list(all_rules()))
    texts, examined = fixtures()[MUTATIONS.index(mutation) % every :: every], 0
    for text in texts:
        program = Program({MAIN: ast.parse(text)})
        change(program, mutation)
        source = Source("example.py", program.texts()[MAIN])
        if unparsable(source) is None:
            assert not check_source(source, Project([]), rules, SETTINGS).problems, source.text
            examined += 1
    assert examined >= len(texts) * (0.9 if every == 1 else 0.5)
