"""Questions to one parsed file."""

from __future__ import annotations

import ast

from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source

CODE = """
@decorated
def outer():
    def inner(): return 1
    return inner

async def later(): pass

class Kind:
    def method(self): outer()
"""


def test_the_function_that_a_node_defines() -> None:
    source = Source("a.py", CODE)
    project = Project()
    project.adopt(source)
    module = Model(source, project).module
    found = [info.qualname for node in ast.walk(module.tree) if (info := module.defined_by(node)) is not None]
    assert sorted(found) == ["Kind.method", "later", "outer", "outer.inner"]
    assert module.defined_by(None) is None


def test_the_function_of_a_line() -> None:
    text = "x = 1\nclass A:\n    def f(self):\n        def g(): ...\n        return g\ndef h(): ...\ny = 2\n"
    module = Model(Source("snippet.py", text), Project()).module
    assert [module.function_at(line) for line in range(1, 8)] == [None, None, "A.f", "A.f.g", "A.f", "h", None]
