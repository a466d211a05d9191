"""Notebooks, checked and fixed."""

from __future__ import annotations

import json
import subprocess

import pytest
from jsonschema import validate

from perflint.output.notebooks import in_words
from perflint.source.notebooks import Notebook
from tests.cli.command import ROOT, Command
from tests.source.test_notebooks import code, document, markdown

pytestmark = pytest.mark.usefixtures("stated_torch")
CELLS = [
    markdown("# Training"),
    code("%pip install torch", "import torch", "from torch import nn"),
    code("model = nn.Linear(8, 8).cuda()", "opt = torch.optim.SGD(model.parameters(), lr=0.1)"),
    code("loader = torch.utils.data.DataLoader(data)"),
    code(
        "%%time",
        "total = 0.0",
        "for x, y in loader:",
        "    with torch.cuda.amp.autocast():",
        "        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())",
        "    loss.backward()",
        "    opt.step()",
        "    total += loss.item()  # é",
    ),
]
RAW = document(*CELLS)


def test_places_are_cells_and_lines(perflint: Command) -> None:
    perflint.write("nb.ipynb", RAW)
    ran = perflint("check", "nb.ipynb", "--select=TPF101,TPF902", "--output-format=concise")
    assert ran.code == 1
    assert [line.split(" [")[0] for line in ran.out.splitlines()] == [
        "nb.ipynb:cell 5:4:10: TPF902",
        "nb.ipynb:cell 5:8:14: TPF101",
    ]
    full = perflint("check", ".", "--select=TPF101").out
    assert "--> nb.ipynb:cell 5:8:14\n" in full and "8 |     total += loss.item()  # é" in full
    assert "`model(…)` in cell 5, line 5" in full and "the loop in cell 5, line 3" in full


def test_json_has_cells(perflint: Command) -> None:
    perflint.write("nb.ipynb", RAW)
    perflint.write("a.py", "import torch\ntorch.cuda.amp.autocast()\n")
    ran = perflint("check", "--output-format=json", "--select=TPF902,TPF201")
    found = json.loads(ran.out)
    validate(found, json.loads((ROOT / "docs" / "json-schema.json").read_text(encoding="utf-8")))
    assert [(each["path"], each["cell"], each["line"]) for each in found["findings"]] == [
        ("a.py", None, 2),
        ("nb.ipynb", 5, 4),
        ("nb.ipynb", 5, 5),
        ("nb.ipynb", 5, 5),
    ]
    edits = {(edit["cell"], edit["line"]) for each in found["findings"][2:] for edit in each["fix"]["edits"]}
    assert edits == {(4, 1), (5, 5)}


def test_formats_of_repositories_have_lines_of_the_document(perflint: Command) -> None:
    perflint.write("nb.ipynb", RAW)
    line = next(at for at, text in enumerate(RAW.splitlines(), 1) if "loss.item()" in text)
    ran = perflint("check", "nb.ipynb", "--select=TPF101", "--output-format=github")
    assert f"file=nb.ipynb,line={line},endLine={line}," in ran.out and "::cell 5, line 8: `loss.item()`" in ran.out
    ran = perflint("check", "nb.ipynb", "--select=TPF101", "--output-format=sarif")
    (result,) = json.loads(ran.out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == line


def test_merged_reports_are_those_of_one_run(perflint: Command) -> None:
    lines = "".join(CELLS[4]["source"]).replace("# é", "# perflint: ignore[TPF101] logged").splitlines()
    perflint.write("a.ipynb", document(*CELLS[:4], code(*lines)))
    perflint.write("b.ipynb", RAW)
    for name in ("a", "b"):
        perflint("check", f"{name}.ipynb", "--output-format=json", "--output-file", f"{name}.json")
    for form in ("json", "github", "sarif", "concise", "full"):
        whole = perflint("check", "a.ipynb", "b.ipynb", "--output-format", form).out
        assert perflint("merge", "a.json", "b.json", "--output-format", form).out == whole


def test_fix_writes_only_the_changed_cells_and_is_stable(perflint: Command) -> None:
    perflint.write("nb.ipynb", RAW)
    perflint.write("requirements.txt", "torch>=2.4\n")
    ran = perflint("fix", "nb.ipynb", "--select=TPF101,TPF902")
    assert ran.code == 1 and "+    with torch.amp.autocast(" in ran.out
    assert perflint("fix", "nb.ipynb", "--select=TPF101,TPF902", "--apply", "--unsafe-fixes").code == 0
    fixed = (perflint.folder / "nb.ipynb").read_text(encoding="utf-8")
    amp = 'torch.amp.autocast("cuda", dtype=torch.float16)'
    old = "".join(CELLS[4]["source"]).replace("torch.cuda.amp.autocast()", amp)
    new = old.replace("loss.item()", "loss.detach().double()")
    cell = code(*new.splitlines(), "total = float(total)")
    assert fixed == document(*CELLS[:4], cell)
    assert perflint("fix", "nb.ipynb", "--select=TPF101,TPF902", "--apply", "--unsafe-fixes").code == 0
    assert (perflint.folder / "nb.ipynb").read_text(encoding="utf-8") == fixed


@pytest.mark.parametrize("is_in_cell", [True, False])
def test_a_cell_that_runs_again(perflint: Command, is_in_cell: bool) -> None:
    start = ("losses = []",)
    loop = (
        "for x, y in loader:",
        "    loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())",
        "    loss.backward()",
        "    opt.step()",
        "    losses.append(loss.item())",
    )
    cells = [code(*start, *loop)] if is_in_cell else [code(*start), code(*loop)]
    perflint.write("nb.ipynb", document(*CELLS[1:4], *cells))
    ran = perflint("fix", "nb.ipynb", "--select=TPF101", "--risky-fixes")
    assert ("+losses = torch.stack(losses)" in ran.out) is is_in_cell
    shown = perflint("check", "nb.ipynb", "--select=TPF101").out
    assert ("the cell may run again with the value of another cell" in shown) is not is_in_cell


def test_standard_input(perflint: Command) -> None:
    ran = perflint(
        "check", "-", "--stdin-filename", "nb.ipynb", "--select=TPF902", "--output-format=concise", stdin=RAW.encode()
    )
    assert "nb.ipynb:cell 5:4:10" in ran.out


def test_errors_name_cells(perflint: Command) -> None:
    perflint.write("nb.ipynb", document(code("x = 1"), markdown("m"), code("y = 2", "for")))
    for verb in ("check", "fix"):
        ran = perflint(verb, "nb.ipynb")
        assert ran.code == 2 and "error: nb.ipynb:cell 3:2:4: syntax error" in ran.err
    perflint.write("nb.ipynb", "{")
    ran = perflint("check", "nb.ipynb")
    assert ran.code == 2 and "error: nb.ipynb:1: not a notebook: not JSON" in ran.err


def test_other_cells_are_checked_and_fixed_beside_a_broken_one(perflint: Command) -> None:
    perflint.write("nb.ipynb", document(*CELLS[:4], code("def f(:", "", "  x = 'open"), CELLS[4], code("y = (")))
    ran = perflint("check", "nb.ipynb", "--select=TPF902", "--output-format=concise")
    assert ran.code == 2
    assert "nb.ipynb:cell 6:4:10: TPF902" in ran.out
    assert "error: nb.ipynb:cell 5:3:7: syntax error" in ran.err
    assert "error: nb.ipynb:cell 7:1:5: syntax error" in ran.err
    assert "the other cells are checked" in ran.err
    before = (perflint.folder / "nb.ipynb").read_text("utf-8")
    ran = perflint("fix", "--apply", "nb.ipynb", "--select=TPF902", "--unsafe-fixes")
    assert ran.code == 2 and "error: nb.ipynb:cell 5:3:7: syntax error" in ran.err
    after = (perflint.folder / "nb.ipynb").read_text("utf-8")
    assert before != after and "def f(:" in after and "  x = 'open" in after and '"y = ("' in after


@pytest.mark.parametrize("lines", ["x = '\ud800'", "x = '\0'", "x = " + "-" * 9999 + "1", "%%bash\n!\ud800"])
def test_a_cell_that_python_gives_up_on_is_broken(perflint: Command, lines: str) -> None:
    text = document(code(lines), code("import torch", "x = torch.zeros(3).to('cuda')"))
    perflint.write("nb.ipynb", json.dumps(json.loads(text)))
    for verb, options in (("check", ["--output-format=concise"]), ("fix", ["--apply"])):
        ran = perflint(verb, "nb.ipynb", "--profile=audit", *options)
        assert ran.code == 2 and "error: nb.ipynb:cell 1:1" in ran.err
        assert "nb.ipynb:cell 2:2:5: TPF204" in ran.out or verb == "fix"
    cells = json.loads((perflint.folder / "nb.ipynb").read_text("utf-8"))["cells"]
    fixed = "import torch\nx = torch.zeros(3, device='cuda')"
    assert ["".join(cell["source"]) for cell in cells] == [lines, fixed]


def test_spaces_of_unicode_in_a_cell_of_another_language(perflint: Command) -> None:
    other = code("%%html", "\u00a0", "\u3000", "\x1c", "<p>")
    perflint.write("nb.ipynb", document(other, code("import torch", "x = torch.zeros(3).to('cuda')")))
    ran = perflint("check", "nb.ipynb", "--profile=audit", "--output-format=concise")
    assert ran.code == 1 and "nb.ipynb:cell 2:2:5: TPF204" in ran.out


def test_comments_silence(perflint: Command) -> None:
    lines = "".join(CELLS[4]["source"]).replace("# é", "# perflint: ignore[TPF101] logged").splitlines()
    perflint.write("nb.ipynb", document(*CELLS[:4], code(*lines)))
    assert perflint("check", "nb.ipynb", "--select=TPF101").code == 0
    perflint.write("nb.ipynb", RAW)
    ran = perflint("check", "nb.ipynb", "--select=TPF902", "--add-ignore", "--reason", "old torch")
    assert ran.code == 0
    assert "autocast():  # perflint: ignore[TPF902] old torch\\n" in (perflint.folder / "nb.ipynb").read_text("utf-8")
    assert perflint("check", "nb.ipynb", "--select=TPF902").code == 0
    ran = perflint("check", "nb.ipynb", "--select=TPF902", "--output-format=sarif")
    (silenced,) = json.loads(ran.out)["runs"][0]["results"]
    line = next(at for at, text in enumerate(RAW.splitlines(), 1) if "cuda.amp.autocast" in text)
    assert silenced["locations"][0]["physicalLocation"]["region"]["startLine"] == line


def test_findings_on_changed_lines(perflint: Command) -> None:
    perflint.write("nb.ipynb", RAW)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(perflint.folder)]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *command], check=True)
    assert perflint("check", "nb.ipynb", "--since", "HEAD").code == 0
    perflint.write("nb.ipynb", RAW.replace("loss.item()", "2 * loss.item()"))
    ran = perflint("check", "nb.ipynb", "--since", "HEAD", "--output-format=concise")
    assert [line.split(" ")[2] for line in ran.out.splitlines()] == ["TPF101"]


def test_a_cached_report_is_the_same(perflint: Command) -> None:
    perflint.write("nb.ipynb", RAW)
    options = ("check", ".", "--output-format=concise", "--cache-dir", str(perflint.folder / "cache"))
    assert perflint(*options).out == perflint(*options).out != ""


def test_numbers_of_lines_in_texts() -> None:
    notebook = Notebook(RAW)
    text = "`line 11` (line 11), lines 2, 11 and 12, line 7 of package.module"
    assert in_words(text, notebook) == (
        "`line 11` (cell 5, line 2), cell 2, line 2 and cell 5, line 2 and cell 5, line 3, line 7 of package.module"
    )


def test_verbs_that_run_programs_leave_notebooks_alone(perflint: Command) -> None:
    perflint.write("nb.ipynb", RAW)
    ran = perflint("verify", "nb.ipynb", "--", "true")
    assert ran.code == 2 and "this command does not read notebooks" in ran.err


@pytest.mark.parametrize("place", ["nb.ipynb:cell 5:8", "nb.ipynb:5:8"])
def test_explain_names_cells(perflint: Command, place: str) -> None:
    perflint.write("nb.ipynb", RAW)
    ran = perflint("explain", place)
    assert ran.code == 0, ran.err
    assert "--> nb.ipynb:cell 5:8\n" in ran.out and "8 |     total += loss.item()  # é" in ran.out
    assert "cell 5, line 5: " in ran.out and "cell 5, line 3: in the loop" in ran.out
    assert "TPF101 scalar-read-in-loop: shown" in ran.out
    assert "line 19" not in ran.out


def test_explain_of_a_column_and_as_json(perflint: Command) -> None:
    perflint.write("nb.ipynb", RAW)
    found = json.loads(perflint("explain", "nb.ipynb:5:8:14", "--output-format=json").out)
    assert (found["cell"], found["line"], found["column"]) == (5, 8, 14)
    assert {each["line"] for expression in found["expressions"] for each in expression["places"]} == {8}
    assert any((step["cell"], step["line"]) == (5, 3) for step in found["heat"]["why"])
    decision = next(each for each in found["rules"] if each["code"] == "TPF101")
    assert (decision["line"], decision["finding"]["cell"], decision["finding"]["line"]) == (8, 5, 8)


@pytest.mark.parametrize(
    ("place", "message", "help"),
    [
        ("nb.ipynb:8", "names no line", "perflint explain nb.ipynb:CELL:LINE"),
        ("nb.ipynb:1:1", "nb.ipynb has no cell 1 with code", "cells with code: 2, 3, 4, 5"),
        ("nb.ipynb:3:4", "cell 3 of nb.ipynb has no line 4", "its last line is 2"),
        ("nb.ipynb:0:4", "cells, lines and columns count from 1", ""),
    ],
)
def test_explain_of_places_that_do_not_exist(perflint: Command, place: str, message: str, help: str) -> None:
    perflint.write("nb.ipynb", RAW)
    ran = perflint("explain", place)
    assert ran.code == 2 and message in ran.err and help in ran.err
