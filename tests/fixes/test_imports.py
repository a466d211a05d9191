"""Where names come from, and where new imports go."""

from __future__ import annotations

import ast

import pytest

from perflint.fixes.imports import Spelling, import_edits, spell
from perflint.fixes.rewrite import rewrite
from perflint.semantics.scanning import scan
from perflint.semantics.symbols import Symbols
from perflint.source.text import Source


def spelled(text: str, name: str = "torch.amp.autocast") -> Spelling | None:
    """How `name` is written where `HERE` stands."""
    source = Source("example.py", text)
    here = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and n.id == "HERE")
    return spell(Symbols(source.tree, scan(source.tree)), name, here)


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("import torch\nHERE\n", "torch.amp.autocast"),
        ("import torch.nn\nHERE\n", "torch.amp.autocast"),
        ("import torch as th\nHERE\n", "th.amp.autocast"),
        ("import torch.amp as A\nHERE\n", "A.autocast"),
        ("from torch import amp\nHERE\n", "amp.autocast"),
        ("from torch.amp import autocast as ac\nHERE\n", "ac"),
        ("import torch\nfrom torch.amp import autocast\nHERE\n", "autocast"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\nHERE\n", "torch.amp.autocast"),
        ("def f():\n    import torch as th\n    HERE\n", "th.amp.autocast"),
        ("import torch\ndef f(torch): pass\ndef g():\n    HERE\n", "torch.amp.autocast"),
    ],
)
def test_spelled_as_the_file_does(text: str, spelling: str) -> None:
    assert spelled(text) == Spelling(spelling)


@pytest.mark.parametrize(
    "text",
    [
        "from torch import nn\nHERE\n",
        "HERE\n",
        "def f():\n    import torch\ndef g():\n    HERE\n",
        "def f():\n    HERE\n    import torch as th\n",
        "if TYPE_CHECKING:\n    import torch as th\nHERE\n",
        "from torch.amp import autocast\nautocast = wrap(autocast)\nHERE\n",
    ],
)
def test_otherwise_the_package_is_imported(text: str) -> None:
    assert spelled(text) == Spelling("torch.amp.autocast", ("import torch",))


@pytest.mark.parametrize(
    "text",
    [
        "torch = fake()\nHERE\n",
        "import torch\nfor torch in y: pass\nHERE\n",
        "import torch\ndef f(torch):\n    HERE\n",
        "import numpy as torch\nHERE\n",
        "from . import torch\nHERE\n",
        "import torch\nimport numpy as torch\nHERE\n",
        "import torch\ndef torch(): pass\nHERE\n",
    ],
)
def test_a_name_with_two_meanings_is_not_used(text: str) -> None:
    assert spelled(text) is None


def added(text: str, *statements: str) -> str:
    source = Source("example.py", text)
    fixed = rewrite(source, import_edits(source, statements)).text
    ast.parse(fixed)
    again = Source("example.py", fixed)
    assert import_edits(again, statements) == []
    return fixed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "import torch\n"),
        ("x = 1\n", "import torch\n\nx = 1\n"),
        ("# licence\n\n@d\ndef f(): pass\n", "# licence\n\nimport torch\n\n@d\ndef f(): pass\n"),
        ('"""Doc."""\n\nx = 1\n', '"""Doc."""\n\nimport torch\n\nx = 1\n'),
        ('"""Doc."""', '"""Doc."""\n\nimport torch'),
        (
            "from __future__ import annotations\n\nx = 1\n",
            "from __future__ import annotations\n\nimport torch\n\nx = 1\n",
        ),
        ("import os\n\nx = 1\n", "import os\nimport torch\n\nx = 1\n"),
        ("import os", "import os\nimport torch"),
        (
            "import os\nfrom torch import nn\nimport zlib\n",
            "import os\nimport torch\nfrom torch import nn\nimport zlib\n",
        ),
        ("from os import (\r\n    path,\r\n)\r\n", "from os import (\r\n    path,\r\n)\r\nimport torch\r\n"),
        ("import torch as th\n", "import torch\nimport torch as th\n"),
        ("def f():\n    import torch\n", "import torch\n\ndef f():\n    import torch\n"),
    ],
)
def test_place_of_an_import(before: str, after: str) -> None:
    assert added(before, "import torch") == after


@pytest.mark.parametrize(
    "text",
    ["import torch\n", "import os, torch\n", "import torch.nn\n", "try:\n    import torch\nexcept ImportError: pass\n"],
)
def test_what_is_there_is_not_added(text: str) -> None:
    assert added(text, "import torch") == text


def test_each_import_once_and_in_order() -> None:
    text = "import os\n\nx = 1\n"
    statements = ("import torch", "from torch import nn", "import torch")
    assert added(text, *statements) == "import os\nfrom torch import nn\nimport torch\n\nx = 1\n"


def test_from_imports_are_told_apart() -> None:
    assert (
        added("from torch import nn as N\n", "from torch import nn")
        == "from torch import nn\nfrom torch import nn as N\n"
    )
    assert added("from torch import nn\n", "from torch import nn") == "from torch import nn\n"
    # Other packages, and other ways to import.
    text = "import torch.nn as other\nfrom torch.cuda import nn\nfrom .torch import nn\n"
    assert added(text, "from torch import nn", "import torch.nn as N") == (
        "from torch import nn\nimport torch.nn as N\n" + text
    )
    assert added("import torch.nn as N\n", "import torch.nn as N") == "import torch.nn as N\n"
