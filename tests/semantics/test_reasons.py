"""Why a value is what it is, and why a line runs as often as it does: one small file for each kind of reason.

`# ?` marks the line that is asked about, `# ? text` an expression in it; without a text it is the first
plain name that is read there. Steps are written "line: words", or the words alone where they are said
of the expression itself.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from perflint.semantics.binders import How
from perflint.semantics.dataflow.definitions import definitions
from perflint.semantics.explain.describe import describe
from perflint.semantics.explain.reasons import Reasons, Step
from perflint.semantics.heat.reasons import HeatReasons
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source

_MARKER = re.compile(r"\s*# \?(?: (?P<text>.*))?$", re.MULTILINE)


def shown(steps: list[Step]) -> list[str]:
    """Steps as the tables have them."""
    found = []
    for step in steps:
        place = "" if step.line is None else f"{step.line}: "
        found.append(f"{'' if step.path is None else f'{step.path.name}:'}{place}{step.text}")
    return found


def asked(code: str) -> tuple[Model, int, str | None]:
    """The model of a file, the marked line and what is asked there."""
    marker = _MARKER.search(code)
    assert marker is not None
    text = _MARKER.sub("", code)
    return Model(Source("snippet.py", text), Project()), code.count("\n", 0, marker.start()) + 1, marker["text"]


def expression(model: Model, line: int, text: str | None) -> ast.expr:
    """The expression of a text in a line; the first name that is read, where there is no text."""
    for node in model.everything():
        if isinstance(node, ast.expr) and node.lineno == line:
            is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            if ast.unparse(node) == text or (text is None and is_read):
                return node
    raise AssertionError(f"{text} is not on line {line}")


def reasons(code: str) -> list[str]:
    """The steps that explain what is marked."""
    model, line, text = asked(code)
    return shown(Reasons(model).of(expression(model, line, text)))


NAMES: dict[str, tuple[str, list[str]]] = {
    "assigned": (
        "import torch\nx = torch.zeros(3)\nx  # ?\n",
        ["2: `x = torch.zeros(3)`: the result of torch.zeros without `device=`, on the CPU"],
    ),
    "assigned again": (
        "import torch\nx = torch.zeros(3)\nx = x.cuda()\nx  # ?\n",
        ["3: `x = x.cuda()`: moved by `.cuda()`"],
    ),
    "the target of an assignment": ("import torch\nx = torch.zeros(3)  # ? x\n", []),
    "the targets of one that unpacks": (
        "import torch\nx, y = torch.rand(2).max(0)  # ? y\n",
        [
            "part of `torch.rand(2).max(0)`",
            "2: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "one of two branches": (
        "import torch\nif input():\n    x = torch.zeros(3)\nelse:\n    x = torch.ones(3)\nx  # ?\n",
        [
            "3: `x = torch.zeros(3)`: the result of torch.zeros without `device=`, on the CPU",
            "5: `x = torch.ones(3)`: the result of torch.ones without `device=`, on the CPU",
        ],
    ),
    "a branch that returns": (
        "import torch\ndef f(a):\n    x = 1\n    if a:\n        x = 'a'\n        return x\n    x  # ?\n",
        ["3: `x = 1`"],
    ),
    "before the next iteration of a loop": (
        "def f(a):\n    x = None\n    for b in a:\n        x  # ?\n        x = b\n",
        [
            "2: `x = None`",
            "5: `x = b`",
        ],
    ),
    "after break and continue": (
        "def f(a):\n    x = 0\n    while a:\n        if a > 1:\n            x = 1\n            break\n        x = 'a'\n"
        "        if a > 2:\n            x = []\n            continue\n        x = 0\n    x  # ?\n",
        ["2: `x = 0`", "5: `x = 1`", "9: `x = []`", "12: also bound on line 11"],
    ),
    "after an endless loop": (
        "def f(a):\n    while True:\n        if a:\n            x = 1\n            break\n"
        "        x = 'a'\n    x  # ?\n",
        ["4: `x = 1`"],
    ),
    "try and except": (
        "def f(a):\n    try:\n        x = int(a)\n    except ValueError as error:\n        x = error\n    x  # ?\n",
        ["3: `x = int(a)`: the result of int", "5: `x = error`"],
    ),
    "what was caught": (
        "try:\n    pass\nexcept ValueError as error:\n    error  # ?\n",
        ["3: `except ValueError as error`"],
    ),
    "unpacked": (
        "import torch\nx, y = torch.rand(2).max(0)\ny  # ?\n",
        [
            "2: `x, y = torch.rand(2).max(0)`: a part of it: the result of torch.Tensor.max, where `torch.rand(2)` is",
            "2: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "loop": (
        "import torch\nfor x in torch.rand(3):\n    x  # ?\n",
        [
            "2: `for x in torch.rand(3)`: an element of `torch.rand(3)`",
            "2: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "loop over batches": (
        "from torch.utils.data import DataLoader\nloader = DataLoader([])\n"
        "for i, (x, y) in enumerate(loader):\n    x  # ?\n",
        [
            "3: `for i, (x, y) in enumerate(loader)`: part of a batch, on the CPU until it is moved",
            "2: `loader = DataLoader([])`: an object made here",
        ],
    ),
    "comprehension": (
        "import torch\nxs = [torch.rand(1)]\ny = [x.sum() for x in xs]  # ? x\n",
        [
            "3: `[x.sum() for x in xs]`: an element of `xs`",
            "2: `xs = [torch.rand(1)]`",
            "2: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "with": (
        "with open('a') as file:\n    file  # ?\n",
        [
            "1: `with open('a') as file`: the value of entering `open('a')`",
            "1: the result of open, which is unknown",
        ],
    ),
    "walrus": ("if (n := len('abc')) > 1:\n    n  # ?\n", ["1: `if (n := len('abc')) > 1`: the result of len"]),
    "match": (
        "def f(a):\n    match a:\n        case [x, *rest]:\n            x  # ?\n",
        [
            "3: `case [x, *rest]`: part of `a`",
            "1: parameter `a`: no annotation, default, docstring, use or call in this file says what it is",
        ],
    ),
    "augmented": (
        "total = 0.0\nfor i in range(3):\n    total += i\ntotal  # ?\n",
        ["1: `total = 0.0`", "3: `total += i`"],
    ),
    "put in": (
        "import torch\nxs = []\nxs.append(torch.rand(1))\nxs  # ?\n",
        [
            "2: `xs = []`",
            "3: `xs.append(torch.rand(1))`: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "import": ("from math import pi\npi  # ?\n", ["1: `from math import pi`"]),
    "definition": ("def f(a):\n    pass\nf  # ?\n", ["1: `def f(a)`"]),
    "declared": ("from torch import Tensor\nx: Tensor\nx  # ?\n", ["2: `x: Tensor`"]),
    "builtin": ("len  # ?\n", ["a builtin of Python"]),
    "nothing": ("nowhere  # ?\n", ["nothing in this file binds it"]),
    "global": ("n = 3\ndef f():\n    return n  # ?\n", ["1: `n = 3`"]),
    "closure": ("def f():\n    n = 3\n    def g():\n        return n  # ?\n    return g\n", ["2: `n = 3`"]),
    "name of a class body": ("n = 3\nclass A:\n    n = 4\n    def f(self):\n        return n  # ?\n", ["1: `n = 3`"]),
    "in the body of a class": ("n = 3\nclass A:\n    m = n  # ?\n", ["1: `n = 3`"]),
    "in a default": ("def f():\n    n = 3\n    def g(m=n):  # ? n\n        return m\n", ["2: `n = 3`"]),
    "in an annotation": (
        "from torch import Tensor\ndef f(x: Tensor):  # ? Tensor\n    pass\n",
        ["1: `from torch import Tensor`"],
    ),
    "bound after the function that sees it": (
        "def f():\n    def g():\n        return n  # ?\n    n = 3\n    return g\n",
        ["4: `n = 3`"],
    ),
    "a function that sees itself": ("def f():\n    def g():\n        return g  # ?\n    return g\n", ["2: `def g()`"]),
    "bound later, at the top": ("def f():\n    return n  # ?\nn = 3\n", ["3: `n = 3`"]),
    "lambda's parameter": (
        "f = lambda x: x  # ? x\n",
        ["1: parameter `x`: no annotation, default, docstring, use or call in this file says what it is"],
    ),
    "deleted": ("x = 1\ndel x\nx  # ?\n", ["nothing in this file binds it"]),
    "a long way back": (
        "import torch\ndevice = torch.device('cuda')\na = torch.rand(3, device=device)\nb = a + 1\nb  # ?\n",
        [
            "4: `b = a + 1`: `+` with the tensor `a`",
            "3: `a = torch.rand(3, device=device)`: the result of torch.rand with `device=device`",
            "2: `device = torch.device('cuda')`: the result of torch.device",
        ],
    ),
    "round and round": (
        "import torch\nx = y = torch.rand(1)\nwhile True:\n    x = y\n    y = x\n    x  # ?\n",
        [
            "4: `x = y`",
            "2: `x = y = torch.rand(1)`: the result of torch.rand without `device=`, on the CPU",
            "5: `y = x`",
        ],
    ),
    "one that narrows": (
        "import torch\ndef f(x: torch.Tensor | None):\n    if x is None:\n        return\n    x  # ?\n",
        ["3: `x is None` does not hold here", "2: parameter `x`: annotated `torch.Tensor | None`"],
    ),
    "one that narrows, around": (
        "import torch\ndef f(x):\n    if isinstance(x, torch.Tensor):\n        x  # ?\n",
        [
            "3: `isinstance(x, torch.Tensor)` holds here",
            "2: parameter `x`: no annotation, default, docstring, use or call in this file says what it is",
        ],
    ),
    "one that narrows, asserted": (
        "import torch\ndef f(x):\n    assert torch.is_tensor(x)\n    x  # ?\n",
        [
            "3: `torch.is_tensor(x)` holds here",
            "2: parameter `x`: no annotation, default, docstring, use or call in this file says what it is",
        ],
    ),
}

PARAMETERS: dict[str, tuple[str, list[str]]] = {
    "annotation": (
        "import torch\ndef f(x: torch.Tensor):\n    x  # ?\n",
        ["2: parameter `x`: annotated `torch.Tensor`"],
    ),
    "annotation that says nothing": (
        "from typing import Any\ndef f(x: Any):\n    x  # ?\n",
        ["2: parameter `x`: annotated `Any`"],
    ),
    "forward": (
        "import torch\nclass N(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        x  # ?\n",
        ["3: parameter `x`: annotated `torch.Tensor`; what a module's `forward` gets is on its device"],
    ),
    "docstring": (
        'def f(x):\n    """Does.\n\n    Args:\n        x (Tensor): the input\n    """\n    x  # ?\n',
        ["1: parameter `x`: the docstring says `Tensor`"],
    ),
    "default": ("def f(n=3):\n    n  # ?\n", ["1: parameter `n`: `3` by default"]),
    "default of a keyword": ("def f(*, n='a'):\n    n  # ?\n", ["1: parameter `n`: `'a'` by default"]),
    "use": (
        "def f(x):\n    y = x.detach()\n    x  # ?\n",
        ["1: parameter `x`: used as tensors are, by `x.detach` on line 2"],
    ),
    "its name": ("def f(device):\n    device  # ?\n", ["1: parameter `device`: by its name, it is a device"]),
    "call": (
        "import torch\ndef f(x):\n    x  # ?\na = torch.rand(3)\nf(a)\n",
        [
            "5: parameter `x`: the call passes `a`",
            "4: `a = torch.rand(3)`: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "call with a keyword": (
        "import torch\ndef f(n, x=None):\n    x  # ?\nf(1, x=torch.rand(3))\n",
        [
            "4: parameter `x`: the call passes `torch.rand(3)`",
            "4: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "method called": (
        "import torch\nclass A:\n    def g(self, x):\n        x  # ?\n"
        "    def f(self):\n        self.g(torch.rand(3))\n",
        [
            "6: parameter `x`: the call passes `torch.rand(3)`",
            "6: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "self": ("class A:\n    def f(self):\n        self  # ?\n", ["2: parameter `self`: the object itself"]),
    "cls": (
        "class A:\n    @classmethod\n    def f(cls):\n        cls  # ?\n",
        ["3: parameter `cls`: the class itself"],
    ),
    "further ones": ("def f(**kwargs):\n    kwargs  # ?\n", ["1: parameter `kwargs`: all further arguments"]),
    "nothing": (
        "def f(x):\n    x  # ?\n",
        ["1: parameter `x`: no annotation, default, docstring, use or call in this file says what it is"],
    ),
}

ATTRIBUTES: dict[str, tuple[str, list[str]]] = {
    "set in the constructor": (
        "import torch\nclass A:\n    def __init__(self):\n        self.x = torch.rand(3)\n    def f(self):\n"
        "        self.x  # ? self.x\n",
        ["4: `self.x = torch.rand(3)`: the result of torch.rand without `device=`, on the CPU"],
    ),
    "set from a parameter": (
        "class A:\n    def __init__(self, n: int):\n        self.n = n\n    def f(self):\n        self.n  # ? self.n\n",
        ["3: `self.n = n`"],
    ),
    "set in several methods": (
        "class A:\n    def __init__(self):\n        self.x = None\n    def set(self):\n        self.x = 'a'\n"
        "    def f(self):\n        self.x  # ? self.x\n",
        ["3: `self.x = None`", "5: `self.x = 'a'`"],
    ),
    "set before, in the same method": (
        "class A:\n    def __init__(self):\n        self.x = None\n    def f(self):\n        self.x = 'a'\n"
        "        self.x  # ? self.x\n",
        ["5: `self.x = 'a'`"],
    ),
    "buffer": (
        "import torch\nclass A(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('m', torch.zeros(3))\n    def forward(self):\n        self.m  # ? self.m\n",
        [
            "5: `self.register_buffer('m', torch.zeros(3))`: the result of torch.zeros without `device=`, on the CPU",
        ],
    ),
    "parameter of a torch module": (
        "from torch import nn\nlayer = nn.Linear(3, 4)\nlayer.weight  # ? layer.weight\n",
        ["a parameter of torch.nn.Linear"],
    ),
    "argument of a torch module": (
        "from torch import nn\nlayer = nn.Linear(3, 4)\nlayer.in_features  # ? layer.in_features\n",
        ["2: an argument of torch.nn.Linear"],
    ),
    "method": (
        "class A:\n    def f(self):\n        return self.g  # ? self.g\n    def g(self):\n        pass\n",
        ["4: method `g` of A"],
    ),
    "property": (
        "class A:\n    @property\n    def n(self):\n        return 3\n"
        "    def f(self):\n        return self.n  # ? self.n\n",
        ["3: property `n` of A"],
    ),
    "class level": ("class A:\n    n = 3\n    def f(self):\n        self.n  # ? self.n\n", ["2: `n = 3`"]),
    "of a base class": (
        "class B:\n    n = 3\nclass A(B):\n    def f(self):\n        self.n  # ? self.n\n",
        ["2: `n = 3`"],
    ),
    "of a tensor": (
        "import torch\nx = torch.rand(3)\nx.T  # ? x.T\n",
        [
            "an attribute of the tensor `x`",
            "2: `x = torch.rand(3)`: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "of something unknown": (
        "def f(args):\n    args.n  # ? args.n\n",
        [
            "an attribute of `args`, which is unknown",
            "1: parameter `args`: no annotation, default, docstring, use or call in this file says what it is",
        ],
    ),
    "unknown": (
        "import torch\ndevice = torch.device('cuda')\ndevice.nothing  # ? device.nothing\n",
        [
            "perflint does not know `.nothing` of `device`",
            "2: `device = torch.device('cuda')`: the result of torch.device",
        ],
    ),
    "of a package": (
        "import yaml\nyaml.safe  # ? yaml.safe\n",
        ["from `yaml`, outside of the project"],
    ),
}

OPERATIONS: dict[str, tuple[str, list[str]]] = {
    "module": (
        "from torch import nn\ndef f(x):\n    layer = nn.Linear(3, 4)\n    layer(x)  # ? layer(x)\n",
        ["the result of the module `layer`", "3: `layer = nn.Linear(3, 4)`: an object made here"],
    ),
    "function of the project": (
        "import torch\ndef g() -> torch.Tensor:\n    return torch.rand(3)\ng()  # ? g()\n",
        ["the result of g (line 2), annotated `torch.Tensor`"],
    ),
    "unknown function": (
        "import yaml\nyaml.load()  # ? yaml.load()\n",
        ["the result of yaml.load, which is unknown"],
    ),
    "unknown callee": (
        "def f(g):\n    g()  # ? g()\n",
        [
            "a call of `g`, which is unknown",
            "1: parameter `g`: no annotation, default, docstring, use or call in this file says what it is",
        ],
    ),
    "method of something unknown": (
        "def f(g):\n    g.run()  # ? g.run()\n",
        [
            "a call of `.run` of something unknown",
            "1: parameter `g`: no annotation, default, docstring, use or call in this file says what it is",
        ],
    ),
    "constructor": ("from torch import nn\nnn.Linear(3, 4)  # ? nn.Linear(3, 4)\n", ["an object made here"]),
    "moved": (
        "import torch\nx = torch.rand(3)\nx.to('cuda')  # ? x.to('cuda')\n",
        ["moved by `.to('cuda')`"],
    ),
    "moved to where a name says": (
        "import torch\nd = torch.device('cuda')\nx = torch.rand(3)\nx.to(d)  # ? x.to(d)\n",
        ["moved by `.to(d)`", "2: `d = torch.device('cuda')`: the result of torch.device"],
    ),
    "cast": (
        "import torch\nx = torch.rand(3)\nx.to(torch.half)  # ? x.to(torch.half)\n",
        [
            "the result of `.to(torch.half)` on `x`",
            "2: `x = torch.rand(3)`: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "chained": (
        "import torch\nx = torch.rand(3)\ny = x.exp().sum().sqrt()\ny  # ?\n",
        [
            "3: `y = x.exp().sum().sqrt()`: the result of torch.Tensor.sqrt, where `x.exp().sum()` is",
            "3: the result of torch.Tensor.exp, where `x` is",
            "2: `x = torch.rand(3)`: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "comparison": (
        "import torch\nx = torch.rand(3)\nx > 0  # ? x > 0\n",
        [
            "a comparison with the tensor `x`",
            "2: `x = torch.rand(3)`: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "operator with something unknown": (
        "def f(a):\n    a + 1  # ? a + 1\n",
        [
            "`+` with `a`, which is unknown",
            "1: parameter `a`: no annotation, default, docstring, use or call in this file says what it is",
        ],
    ),
    "index": (
        "import torch\nx = torch.rand(3)\nx[0]  # ? x[0]\n",
        [
            "an index of the tensor `x`",
            "2: `x = torch.rand(3)`: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "element": ("xs = [1, 'a']\nxs[0]  # ? xs[0]\n", ["an element of `xs`"]),
    "one of two": (
        "import torch\nx = torch.rand(3)\nx if input() else None  # ? x if input() else None\n",
        [
            "one of `x` or `None`",
            "2: `x = torch.rand(3)`: the result of torch.rand without `device=`, on the CPU",
        ],
    ),
    "read": (
        "import torch\nx = torch.rand(3)\nx.sum().item()  # ? x.sum().item()\n",
        ["the result of torch.Tensor.item"],
    ),
}

CASES = {**NAMES, **PARAMETERS, **ATTRIBUTES, **OPERATIONS}


@pytest.mark.parametrize(("code", "expected"), CASES.values(), ids=CASES.keys())
def test_reasons(code: str, expected: list[str]) -> None:
    assert reasons(code) == expected


def test_reasons_in_other_files(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text(
        "import torch\nclass B:\n    def __init__(self):\n        self.x = torch.rand(3)\n"
    )
    text = "from base import B\nclass A(B):\n    def f(self):\n        self.x\n"
    (tmp_path / "own.py").write_text(text)
    model = Model(Source(str(tmp_path / "own.py"), text), Project([tmp_path / "own.py"]))
    node = expression(model, 4, "self.x")
    assert describe(model.value(node)) == "float tensor of rank 1, on the CPU (certain)"
    assert shown(Reasons(model).of(node)) == ["base.py:4: `self.x = torch.rand(3)`"]


def test_the_way_ends_where_something_is_told_anyway() -> None:
    model, line, _ = asked("import torch\nx = torch.rand(3)\ny = x + 1  # ?\n")
    whole, part = expression(model, line, "x + 1"), expression(model, line, "x")
    assert shown(Reasons(model).of(whole, {whole, part})) == ["`+` with the tensor `x`"]


LOADER = "from torch.utils.data import DataLoader\n"
HEAT: dict[str, tuple[str, list[str]]] = {
    "import": ("x = 1  # ?\n", ["top level of the module: it runs once, on import"]),
    "loop over batches": (
        f"{LOADER}def f(loader: DataLoader):\n    for x in loader:\n        print(x)  # ?\n",
        ["3: in the loop `for x in loader`, which iterates over the batches of a loader"],
    ),
    "loop that steps": (
        "def f(loss):\n    while True:\n        loss.backward()\n        print(1)  # ?\n",
        ["2: in the loop `while True`, which steps: `loss.backward()` on line 3"],
    ),
    "guard": (
        "import torch\nclass A(torch.nn.Module):\n    def forward(self, x):\n        if self.step % 100 == 0:\n"
        "            print(x)  # ?\n",
        ["4: behind `if self.step % 100 == 0`, which lets it run only now and then"],
    ),
    "guard by name": (
        "import torch\nclass A(torch.nn.Module):\n    def forward(self, x):\n        if x.size(0) > 1 and self.verbose:\n"
        "            print(x)  # ?\n",
        [
            "4: behind `if x.size(0) > 1 and self.verbose`, which lets it run only now and then: by its name, "
            "`verbose` is true only while a program is debugged"
        ],
    ),
    "guard by numbers": (
        "import torch\nclass A(torch.nn.Module):\n    def forward(self, x):\n        if torch.isnan(x).any():\n"
        "            print(x)  # ?\n",
        [
            "4: behind `if torch.isnan(x).any()`, which lets it run only now and then: by its name, "
            "`isnan` is true only if a number is not finite"
        ],
    ),
    "guard beside a name that decides nothing": (
        "import torch\nclass A(torch.nn.Module):\n    def forward(self, x):\n"
        "        if not self.verbose and self.step % 100 == 0:\n            print(x)  # ?\n",
        ["4: behind `if not self.verbose and self.step % 100 == 0`, which lets it run only now and then"],
    ),
    "early return by name": (
        "import torch\nclass A(torch.nn.Module):\n    def forward(self, x):\n        if not is_main_process():\n"
        "            return x\n        print(x)  # ?\n",
        [
            "4: after `if not is_main_process()`, which mostly leaves: by its name, `is_main_process` is true in one "
            "process of many"
        ],
    ),
    "forward": (
        "import torch\nclass A(torch.nn.Module):\n    def forward(self, x):\n        return x  # ?\n",
        ["3: in `A.forward`: by its name, it runs a model, forward or backward"],
    ),
    "called from forward": (
        "import torch\nclass A(torch.nn.Module):\n    def forward(self, x):\n        return self.g(x)\n"
        "    def g(self, x):\n        return x  # ?\n",
        [
            "5: in `A.g`, which is called: `self.g(x)` on line 4",
            "3: in `A.forward`: by its name, it runs a model, forward or backward",
        ],
    ),
    "called by a name only": (
        f"{LOADER}class A:\n    def g(self, x):\n        return x  # ?\n"
        "def f(loader: DataLoader, a):\n    for x in loader:\n        a.g(x)\n",
        [
            "3: in `A.g`, which may be called: `a.g(x)` on line 7",
            "6: in the loop `for x in loader`, which iterates over the batches of a loader",
        ],
    ),
    "set-up": (
        "class A:\n    def __init__(self):\n        self.x = 1  # ?\n",
        ["2: in `A.__init__`: by its name, it makes, shows, copies or compares an object"],
    ),
    "only called from set-up": (
        "class A:\n    def __init__(self):\n        self._g()\n    def _g(self):\n        self.x = 1  # ?\n",
        [
            "4: in `A._g`, which is only called from code that rarely runs",
            "2: in `A.__init__`: by its name, it makes, shows, copies or compares an object",
        ],
    ),
    "nobody calls": ("def f():\n    return 1  # ?\n", ["1: in `f`, which nothing in this file calls"]),
    "called once, and perhaps elsewhere": (
        "def f():\n    return 1  # ?\nf()\n",
        ["1: in `f`: `f()` on line 3 rarely runs, but other files may call it"],
    ),
    "raise": (
        "import torch\nclass A(torch.nn.Module):\n    def forward(self, x):\n        if x is None:\n"
        "            raise ValueError  # ?\n",
        ["5: it only raises an exception"],
    ),
    "reads a file": (
        "def f(path):\n    for line in open(path):\n        print(line)  # ?\n",
        ["1: in `f`, which reads a file and loops over its contents"],
    ),
    "test": (
        "import torch\ndef test():\n    x = torch.rand(3)\n    f(x)\ndef f(x):\n    return x.item()  # ?\n",
        ["5: in `f`, which only tests, benchmarks or demonstrations run"],
    ),
    "benchmark": (
        "import torch\ndef bench_f(x):\n    for _ in range(9):\n        print(x)  # ?\n",
        ["2: in `bench_f`, which only tests, benchmarks or demonstrations run: by its name, it measures time"],
    ),
    "except": (
        "import torch\nclass A(torch.nn.Module):\n    def forward(self, x):\n        try:\n            pass\n"
        "        except ValueError:\n            print(x)  # ?\n",
        ["6: in an `except` block"],
    ),
}


@pytest.mark.parametrize(("code", "expected"), HEAT.values(), ids=HEAT.keys())
def test_reasons_of_heat(code: str, expected: list[str]) -> None:
    model, line, _ = asked(code)
    statement = next(node for node in model.everything() if isinstance(node, ast.stmt) and node.lineno == line)
    assert shown(HeatReasons(model).of(statement)) == expected


EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_reasons_are_few_and_lie_in_the_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    model = Model(Source(str(path), text), Project([path]))
    found = Reasons(model)
    explained = [found.of(node) for node in model.everything() if isinstance(node, ast.expr)]
    assert sum(map(bool, explained)) > len(explained) / 3
    assert max(map(len, explained)) <= 4
    lines = {step.line for steps in explained for step in steps if step.line is not None and step.path is None}
    assert lines and lines <= set(range(1, text.count("\n") + 1))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_what_is_bound_is_what_is_read(path: Path) -> None:
    model = Model(Source(str(path), path.read_text(encoding="utf-8")), Project([path]))
    compared = 0
    for node in model.everything():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            bindings = definitions(model.symbols, node, node.id).bindings
            if len(bindings) == 1 and bindings[0].how in (How.ASSIGNED, How.LOOP):
                assert isinstance(bindings[0].node, ast.expr)
                assert model.value(node) == model.value(bindings[0].node), node.lineno
                compared += 1
    assert compared


ENTRIES = {
    "a call of a model": ("def f(model, x):\n    while True:\n        y = model(x)\n        print(1)  # ?\n", "model"),
    "a step of an optimizer": ("def f(opt):\n    while True:\n        opt.step()\n        print(1)  # ?\n", "opt"),
    "a loader": ("def f(loader):\n    for x in loader:\n        print(1)  # ?\n", "*loader"),
    "a loader around which something counts": (
        "def f(cfg):\n    for i, x in enumerate(cfg.loader):\n        print(1)  # ?\n",
        "*loader",
    ),
    "a function that gives a loader": (
        "from a import get_loader\ndef f():\n    batches = get_loader()\n    for x in batches:\n        print(1)  # ?\n",
        "/(get|build|make|create|construct|prepare|setup|init)_(\\w+_)?loader(_(train|val|valid|eval|test))?/",
    ),
    "a function": ("def training_step(x):\n    print(1)  # ?\n", "training_step"),
    "a guard": ("def f(x, verbose):\n    if verbose:\n        print(1)  # ?\n", "verbose"),
    "an optimizer of torch, of any name": (
        "import torch\ndef f(w):\n    o = torch.optim.SGD([w])\n    while True:\n        o.step()\n        print(1)  # ?\n",
        "",
    ),
    "a loader of torch, of any name": (
        "from torch.utils.data import DataLoader\ndef f(d):\n    for x in DataLoader(d):\n        print(1)  # ?\n",
        "",
    ),
}


@pytest.mark.parametrize(("code", "entry"), ENTRIES.values(), ids=ENTRIES.keys())
def test_heat_names_the_convention_that_it_rests_on(code: str, entry: str) -> None:
    model, line, _ = asked(code)
    statement = next(node for node in model.everything() if isinstance(node, ast.stmt) and node.lineno == line)
    found = [each.text for step in HeatReasons(model).of(statement) for each in step.entries]
    assert found == ([entry] if entry else [])
