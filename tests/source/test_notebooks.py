"""Notebooks as text, and text as notebooks."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflint.source.magics import masked
from perflint.source.notebooks import Notebook, NotebookError
from perflint.source.reading import Unreadable, decode


def code(*lines: str, **more: Any) -> dict[str, Any]:
    source = [f"{line}\n" for line in lines[:-1]] + list(lines[-1:])
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source, **more}


def markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def document(*cells: dict[str, Any], indent: int | str | None = 1, language: str = "python", **options: Any) -> str:
    values = {
        "cells": list(cells),
        "metadata": {"kernelspec": {"name": "k"}, "language_info": {"name": language}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(values, indent=indent, ensure_ascii=options.pop("ensure_ascii", False), **options) + "\n"


CELLS = (
    markdown("# Title\n`code`"),
    code("%matplotlib inline", "!pip install torch", "import torch"),
    code(),
    {"cell_type": "raw", "metadata": {}, "source": "raw"},
    code("x = torch.ones(3)", "x.item()  # é \U0001f600"),
    code("%%bash", "ls | wc"),
    code("for i in range(3):", "    %time f(i)", "    y = x.item()"),
)
TEXT = """\
# magic: %matplotlib inline
# magic: !pip install torch
import torch
# %% cell 3
# %% cell 5
x = torch.ones(3)
x.item()  # é \U0001f600
# %% cell 6
# magic: %%bash
# magic: ls | wc
# %% cell 7
for i in range(3):
    pass  # magic: %time f(i)
    y = x.item()
"""
STYLES = [
    {"indent": 1},
    {"indent": 4},
    {"indent": "\t"},
    {"indent": None},
    {"indent": None, "separators": (",", ":")},
    {"indent": 2, "sort_keys": True},
    {"indent": 1, "ensure_ascii": True},
]


@pytest.mark.parametrize("style", STYLES, ids=str)
def test_text_and_back(style: dict[str, Any]) -> None:
    raw = document(*CELLS, **style)
    notebook = Notebook(raw)
    assert notebook.text == TEXT
    assert notebook.written(TEXT) == raw


@pytest.mark.parametrize("style", STYLES, ids=str)
def test_only_the_strings_of_changed_cells_change(style: dict[str, Any]) -> None:
    notebook = Notebook(document(*CELLS, **style))
    changed = TEXT.replace("import torch\n", "import torch\nimport math\n").replace(
        "    y = x.item()", "    y = x  # ü"
    )
    cells = list(CELLS)
    cells[1] = code("%matplotlib inline", "!pip install torch", "import torch", "import math")
    cells[6] = code("for i in range(3):", "    %time f(i)", "    y = x  # ü")
    written = notebook.written(changed)
    assert written == document(*cells, **style)
    assert Notebook(written).text == changed


def test_line_ends_and_the_end_of_the_file_stay() -> None:
    raw = document(*CELLS).replace("\n", "\r\n").rstrip() + "  "
    written = Notebook(raw).written(TEXT.replace("ones", "zeros"))
    assert written == raw.replace("ones", "zeros")
    data = b"\xef\xbb\xbf" + raw.encode()
    text = decode(data, "a.ipynb")
    assert text.encode(text.text) == data


def test_a_source_may_be_one_string() -> None:
    raw = document(code(source="import torch\nx = 1"), code(source="y = 2\n"))
    notebook = Notebook(raw)
    assert notebook.text == "import torch\nx = 1\n# %% cell 2\ny = 2\n"
    assert notebook.written(notebook.text) == raw
    written = notebook.written(notebook.text.replace("x = 1", "x = 3").replace("y = 2", "y = 4"))
    assert written == document(code(source="import torch\nx = 3"), code(source="y = 4\n"))


def test_an_empty_cell_may_get_code() -> None:
    raw = document(code(), code("x = 1", "y = 2"))
    notebook = Notebook(raw)
    assert notebook.text.startswith("# %% cell 2\n")
    assert notebook.written("import torch\n" + notebook.text) == document(code("import torch"), code("x = 1", "y = 2"))
    assert notebook.written("# %% cell 2\n") == raw.replace(
        json.dumps(["x = 1\n", "y = 2"], indent=1).replace("\n", "\n   "), "[]"
    )


def test_places() -> None:
    notebook = Notebook(document(*CELLS))
    lines = TEXT.splitlines()
    found = {lines[at - 1]: notebook.place(at) for at in range(1, len(lines) + 1)}
    numbers = {line: (notebook.cells[index].number, within) for line, (index, within) in found.items()}
    assert numbers["import torch"] == (2, 3)
    assert numbers["x = torch.ones(3)"] == (5, 1)
    assert numbers["    y = x.item()"] == (7, 3)
    document_lines = notebook.document.splitlines()
    for at, line in enumerate(lines, 1):
        if "magic" not in line and "%%" not in line:
            assert json.dumps(line, ensure_ascii=False)[:-1] in document_lines[notebook.document_line(at) - 1]


def test_marks_in_the_code_are_no_marks() -> None:
    cells = (code("# magic: %time", "%time f()"), code("# %% cell 3", "x = 1"))
    notebook = Notebook(document(*cells))
    assert notebook.text == "# magic: %time\n# ~magic: %time f()\n# ~%% cell 2\n# %% cell 3\nx = 1\n"
    changed = notebook.text.replace("x = 1", "x = 2")
    assert notebook.written(changed) == document(cells[0], code("# %% cell 3", "x = 2"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# %% cell 5\n", "", "cannot be divided"),
        ("# %% cell 5\n", "# %% cell 5\n# %% cell 5\n", "cannot be divided"),
        ("    pass  # magic: %time f(i)\n", "", "magic command of cell 7"),
        ("# magic: !pip install torch\n", "# magic: !pip\n", "magic command of cell 2"),
        ("# magic: %%bash\n", "x = 1\n# magic: %%bash\n", "before the magic command of cell 6"),
    ],
)
def test_texts_that_fit_no_cells(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(NotebookError, match=message):
        Notebook(document(*CELLS)).written(TEXT.replace(old, new))


def test_other_languages_have_no_code() -> None:
    assert Notebook(document(code("x <- 1"), language="R")).text == ""
    assert Notebook('{"cells": [], "nbformat": 4}').text == ""
    julia = document(code("f(x) = 2x")).replace('"language_info": {\n   "name": "python"\n  }', '"x": 1')
    assert Notebook(julia.replace('"name": "k"', '"language": "julia"')).text == ""


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "not JSON", 1),
        ('{\n"cells": [,]}', "not JSON", 2),
        ("[]", "no `nbformat`", None),
        ('{"nbformat": 3, "worksheets": []}', "version 3", None),
        ('{"nbformat": 4}', "no list of cells", None),
        ('{"nbformat": 4, "cells": {}}', "no list of cells", None),
        ('{"nbformat": 4, "cells": [1]}', "cell 1 is not an object", None),
        ('{"nbformat": 4, "cells": [{"cell_type": "code"}]}', "cell 1 has no source", None),
        ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}', "not a list of texts", None),
        ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": 1}]}', "neither a text nor", None),
        ("[" * 100_000, "nested too deeply", None),
        (f'{{"nbformat": {"9" * 5000}, "cells": []}}', "thousands of digits", None),
    ],
)
def test_broken_documents(text: str, message: str, line: int | None) -> None:
    with pytest.raises(Unreadable) as caught:
        decode(text.encode(), "a.ipynb")
    assert message in caught.value.problem.message and caught.value.problem.line == line
    with pytest.raises(Unreadable, match="not UTF-8"):
        decode(b"\xff", "a.ipynb")


MASKED = [
    ("%time f()", "# M%time f()"),
    ("!ls \\\n  -l\nx = 1", "# M!ls \\\n# M  -l\nx = 1"),
    ("x = 7 \\\n  % 2", None),
    ("f(x\n  % 2)", None),
    ("a = '''\n%d items\n''' % 3", None),
    ("a = \"'''\"\n%time f()", "a = \"'''\"\n# M%time f()"),
    ("a = '[('  # {\n!ls", "a = '[('  # {\n# M!ls"),
    ("a = 'it\\'s ('\n%pip install x", "a = 'it\\'s ('\n# M%pip install x"),
    ("files = !ls", "# Mfiles = !ls"),
    ("a, b = %time f()", "# Ma, b = %time f()"),
    ("x %= 3\ny = 5 % 3\nz = x != 2", None),
    ("torch.ones?", "# Mtorch.ones?"),
    ("?torch", "# M?torch"),
    ("x = torch.ones?", "# Mx = torch.ones?"),
    ("f(a)\nlayers[0]??  # what?", "f(a)\n# Mlayers[0]??  # what?"),
    ("a = 'why?'\nb = 1  # why?\nc = f('why?')  # is it?", None),
    ("x = [\n  1,  # more?\n]", None),
    ("pip install torch", "# Mpip install torch"),
    ("cd ../src\n", "# Mcd ../src\n"),
    ("ls -l", "# Mls -l"),
    ("time = 3", None),
    ("env['a']", None),
    ("time(x)", None),
    ("run * 2", None),
    ("timer_of = x", None),
    ("%%time\nx = 1", "# M%%time\nx = 1"),
    ("%%writefile a.py\nimport torch\n\n  x", "# M%%writefile a.py\n# Mimport torch\n\n# M  x"),
    ("if a:\n    !ls\nelse:\n\tfiles = !ls", "if a:\n    pass  # M!ls\nelse:\n\tpass  # Mfiles = !ls"),
    ("d = {\n'a': 1,\n}\n%who", "d = {\n'a': 1,\n}\n# M%who"),
]


@pytest.mark.parametrize(("source", "expected"), MASKED)
def test_magics(source: str, expected: str | None) -> None:
    found = masked(source, "M")
    assert found == (source if expected is None else expected)
    ast.parse(found)


LINES = st.sampled_from(
    ["x = 1", "%time f()", "    !ls", "", "s = '''", "'''", "f(", ")", "\\", "# c", "é = 2", "%%bash", "\t", "a?", '"']
)


@given(
    st.lists(st.tuples(st.lists(LINES, max_size=5), st.sampled_from(["code", "markdown"]), st.booleans()), max_size=4),
    st.sampled_from(STYLES),
)
def test_any_cells_come_back(cells: list[tuple[list[str], str, bool]], style: dict[str, Any]) -> None:
    made = []
    for lines, kind, is_text in cells:
        cell = code(*lines, cell_type=kind)
        made.append({**cell, "source": "".join(cell["source"])} if is_text else cell)
    raw = document(*made, **style)
    notebook = Notebook(raw)
    assert notebook.written(notebook.text) == raw
    # A change of each cell changes it alone, and leaves its magics as they are.
    parts = notebook._parts(notebook.text)
    assert len(parts) == len(notebook.cells) or not notebook.cells
    for index in range(len(notebook.text.splitlines())):
        assert 0 <= notebook.place(index + 1)[0] < len(notebook.cells)
