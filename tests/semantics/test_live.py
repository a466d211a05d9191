"""Live code: definitions that a program, the settings or users of the packages of a project may reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.semantics.blocks import blocks_of
from perflint.semantics.live import Code, Live

MAIN = "if __name__ == '__main__':\n    main()\n"
FILLER = "def main():\n    a(); b(); c(); d(); e(); f()\n\n" + "".join(f"def {name}(): ...\n" for name in "abcdef")
"""Enough live code for a project whose programs were found."""


def dead(files: dict[str, str]) -> list[str]:
    """The definitions that are not live."""
    code = [Code(Path("/", name), blocks_of(text)) for name, text in files.items() if name.endswith(".py")]
    settings = [(Path("/", name), text) for name, text in files.items() if not name.endswith(".py")]
    live = Live(code, settings)
    return [block.name for file in code for block in file.blocks.blocks if not live.has(file.path, block.name)]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        # By calls, also through other functions, and not by those of dead code.
        ({"lib.py": "def one(): ...\ndef two(): ...\n", "run.py": "from lib import one\none()\n"}, ["two"]),
        ({"lib.py": "def one(): two()\ndef two(): ...\n", "run.py": "import lib\nlib.one()\n"}, []),
        ({"lib.py": "def one(): two()\ndef two(): ...\n", "run.py": "import lib\nx(lib)\n"}, ["one", "two"]),
        # Not by names in comments and docstrings, nor by names that are assigned; by those in strings.
        ({"lib.py": "def one(): ...\n", "run.py": "'''one'''\n# one()\nfrom lib import x\nx()\n"}, ["one"]),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\none = 3\nx(one=3)\n"}, ["one"]),
        # Nor by strings that stand for comments; by those in the line of other code.
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nx()\n'''\none\n'''\n"}, ["one"]),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\ndef f():\n    x()\n    'one'\nf()\n"}, ["one"]),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nx(); 'one'\n"}, []),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\n'''\nx'''; lib.one()\n"}, []),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nx('lib.one')\n"}, []),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nx('# of', one)\n"}, []),
        # By names that the file has from the module: not by the import itself, nor by the same name of another module.
        ({"lib.py": "def one(): ...\n", "run.py": "from lib import one\nx()\n"}, ["one"]),
        ({"lib.py": "def one(): ...\n", "run.py": "from lib import (\n    one,  # for x\n    two,\n)\ntwo()\n"}, ["one"]),
        ({"lib.py": "def one(): ...\n", "run.py": "from lib import one as first\nfirst()\n"}, []),
        ({"lib.py": "def one(): ...\n", "run.py": "def get():\n    from lib import one; return one()\nget()\n"}, []),
        ({"lib.py": "def one(): ...\n", "run.py": "from torch import one\none()\n"}, ["", "one"]),
        ({"lib.py": "def one(): ...\n", "run.py": "from lib import *\none()\n"}, []),
        ({"lib.py": "def one(): ...\n", "run.py": "import sys, \\\n    lib\nlib.one()\n"}, []),
        ({"p/lib.py": "def one(): ...\n", "run.py": "from p.lib import one\none()\n"}, []),
        ({"p/lib.py": "def one(): ...\n", "p/__init__.py": "from .lib import one\n", "run.py": "import p\np.one()\n"}, []),
        (
            {"p/lib.py": "def one(): ...\n", "p/__init__.py": "from .lib import one\n__all__ = ['one']\n", "run.py": "import p\nx()\n"},
            ["one"],
        ),
        ({"lib.py": "def one(): ...\n", "more.py": "import lib\n", "run.py": "import more\nmore.lib.one()\n"}, []),
        ({"lib.py": "def one(): ...\n", "run.py": "x('python -m lib', 'one')\n"}, []),
        # Not by the report of a tool.
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nx()\n", "a.json": '{"function": "one"}'}, []),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nx()\n", "a.json": '{"function": "one", "line": 1}'}, ["one"]),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nx()\n", "a.json": '{"one": {"startLine":1}}'}, ["one"]),
        # Modules that only tests import, or nothing.
        ({"lib.py": "def one(): ...\none\n", "tests/test_lib.py": "from lib import one\none()\n"}, ["", "", "one"]),
        ({"lib.py": "def one(): ...\n", "test_images.py": "from lib import one\none()\n"}, []),
        ({"lib.py": "def one(): ...\none\n"}, ["", "one"]),
        # Nor by code that never runs.
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nx()\nif False:\n    lib.one()\n"}, ["one"]),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nx()\nif False: lib.one()\n"}, []),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nx()\nif 1:\n    lib.one()\nelse:\n    y()\n"}, []),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\ndef f():\n    for i in range(3, 3):\n        lib.one()\nf()\n"}, ["one"]),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nfor i in range(3):\n    lib.one()\n"}, []),
        ({"lib.py": "def one(): ...\n", "run.py": "import lib\nfor i in range(3, -1, -1):\n    lib.one()\n"}, []),
        # Methods.
        ({"lib.py": "class A:\n    def f1(self): ...\n    def f2(self): ...\n", "run.py": "import lib\nlib.A().f1()"}, ["A.f2"]),
        ({"lib.py": "class A:\n    def __len__(self): ...\n", "run.py": "import lib\nlen(lib.A())"}, []),
        ({"lib.py": "class A(nn.Module):\n    def forward(self): ...\n    def loss(self): ...\n", "run.py": "import lib\nlib.A()"}, ["A.loss"]),
        ({"lib.py": "class A(pl.LightningModule):\n    def loss(self): ...\n", "run.py": "import lib\nlib.A()"}, []),
        ({"lib.py": "class B(Callback): ...\nclass A(B):\n    def loss(self): ...\n", "run.py": "import lib\nlib.A()"}, []),
        ({"lib.py": "class A:\n    def loss(self): ...\n", "run.py": "import lib\nlib.x.loss()"}, ["A", "A.loss"]),
        # Definitions that decorators give to other code.
        ({"lib.py": "@register('one')\nclass A: ...\n", "run.py": "import lib\nlib.x()\n"}, []),
        ({"lib.py": "@torch.no_grad()\ndef one(): ...\n", "run.py": "import lib\nlib.x()\n"}, ["one"]),
        # Names that the code computes.
        ({"models/a.py": "class A: ...\n", "models/__init__.py": "import_module(f'.{name}')\n"}, []),
        ({"models/a.py": "class A: ...\n", "run.py": "importlib.import_module('models.' + name)\n"}, []),
        ({"models/zoo.py": "class A: ...\n", "run.py": "importlib.import_module('torch')\n"}, ["", "A"]),
        ({"lib.py": "class A: ...\ndef get(name): return globals()[name]\n", "run.py": "import lib\nlib.get(x)\n"}, []),
        ({"lib.py": "class A: ...\n", "run.py": "from lib import *\neval(x)()\n"}, []),
        ({"lib.py": "class A: ...\nmodel.eval()\n", "run.py": "import lib\nlib.x()\n"}, ["A"]),
        ({"lib.py": "class A: ...\n", "run.py": "import lib\ngetattr(lib, name)()\n"}, []),
        ({"lib.py": "class A: ...\n", "run.py": "import lib as zoo\ngetattr(zoo, name)()\n"}, []),
        ({"lib.py": "class A: ...\n", "run.py": "import lib\ngetattr(args, name)\n"}, ["A"]),
        (
            {"lib.py": "class A:\n    def run(self): getattr(self, f'_{x}')()\n    def _one(self): ...\n", "run.py": "import lib\nlib.A().run()"},
            [],
        ),
        # Settings and notebooks.
        ({"lib.py": "class A: ...\n", "run.py": "import lib\nlib.x()\n", "conf/a.yaml": "_target_: lib.A\n"}, []),
        ({"lib.py": "class A: ...\n", "run.py": "import lib\nlib.x()\n", "conf/a.yaml": "_target_: lib.B\n"}, ["A"]),
        ({"lib.py": "class A: ...\n", "run.py": "import lib\nlib.x()\n", "a.ipynb": '{"source": ["lib.A()"]}'}, []),
        # A file that does not parse may use anything that it mentions.
        ({"lib.py": "class A: ...\n", "run.py": "import lib\nlib.A(\n"}, []),
        # Users of a package call its public methods, and what it imports into its `__init__.py`.
        (
            {
                "p/lib.py": "class A:\n    def f1(self): ...\n    def _f(self): ...\n",
                "p/__init__.py": "from .lib import A\n",
                "setup.py": "setup(classifiers=['Programming Language :: Python'])\n",
            },
            ["A._f"],
        ),
        (
            {
                "p/lib.py": "class A: ...\n",
                "p/__init__.py": "from .lib import A\n",
                "pyproject.toml": "[project]\nclassifiers = ['Development Status :: 4 - Beta']\n",
            },
            [],
        ),
        (
            {
                "p/lib.py": "class A: ...\n",
                "p/__init__.py": "from .lib import A\n",
                "setup.py": "setup()\n",
                "docs/conf.py": "extensions = ['sphinx.ext.autodoc']\n",
            },
            [""],
        ),
        # A program that is packaged so that its own imports work offers nothing.
        ({"p/lib.py": "class A: ...\n", "p/__init__.py": "from .lib import A\n", "setup.py": "setup()\n"}, ["", "", "A"]),
        (
            {
                "p/lib.py": "class A: ...\ndef f(): ...\n",
                "p/__init__.py": "from .lib import A, f\n",
                "pyproject.toml": "[project]\nname = 'p'\n",
                "run.py": "from p import f\nf()\n",
            },
            ["A"],
        ),
        ({"p/lib.py": "class A:\n    def f1(self): ...\n", "p/__init__.py": "from .lib import A\n"}, ["", "", "A", "A.f1"]),
    ],
)  # fmt: skip
def test_dead_code(files: dict[str, str], found: list[str]) -> None:
    assert sorted(dead({"app.py": FILLER + MAIN, **files})) == sorted(found)


def test_without_a_program_nothing_is_dead() -> None:
    assert dead({"lib.py": FILLER}) == []


def test_if_most_code_seems_dead_the_programs_were_not_found() -> None:
    unused = "".join(f"def unused{number}(): ...\n" for number in range(6))
    assert dead({"app.py": FILLER + MAIN, "lib.py": unused}) == ["", *(f"unused{number}" for number in range(6))]
    assert dead({"app.py": FILLER + MAIN, "lib.py": unused + "def more(): ...\ndef most(): ...\n"}) == []


def test_two_definitions_of_one_name() -> None:
    lib = "if x:\n    def one(): two()\nelse:\n    def one(): three()\ndef two(): ...\ndef three(): ...\n"
    assert dead({"app.py": FILLER + MAIN, "lib.py": lib, "run.py": "import lib\nlib.one()\n"}) == []
