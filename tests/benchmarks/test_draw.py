"""Drawing findings to judge."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy"))

from draw import Finding, by_rule, collect, draw, is_default, more, shown

CODE = """\
import torch

def train(loader, model, optimizer):
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


def finding(line: int, *, default: bool, rule: str = "TPF101") -> Finding:
    words = {"severity": "warning", "confidence": "high" if default else "low", "heat": "hot"}
    return {"rule": rule, "package": "lib==1", "path": "lib/a.py", "line": line, "message": "", "root": "", **words}


def test_half_is_drawn_from_what_the_default_profile_shows() -> None:
    found = [finding(line, default=line % 10 == 0) for line in range(1000)]
    drawn = draw(found, 25)
    assert sum(map(is_default, drawn)) == 13 and len({each["line"] for each in drawn}) == 25
    assert draw(found, 25) == drawn


def test_where_one_half_is_too_small_the_other_gives_more() -> None:
    found = [finding(line, default=line < 3) for line in range(100)]
    assert [sum(map(is_default, draw(found, 25))), len(draw(found, 25))] == [3, 25]
    found = [finding(line, default=line >= 3) for line in range(100)]
    assert [sum(map(is_default, draw(found, 25))), len(draw(found, 25))] == [22, 25]
    assert len(draw(found[:7], 25)) == 7


def test_more_is_drawn_from_what_the_default_profile_shows() -> None:
    found = [finding(line, default=line % 10 == 0) for line in range(1000)]
    assert [is_default(each) for each in more(found, 7)] == [True] * 7 and len(more(found[:3], 7)) == 1


def test_a_line_is_drawn_from_once_for_each_rule() -> None:
    found = [finding(2, default=True), finding(1, default=True), finding(1, default=True)]
    found.append(finding(1, default=True, rule="TPF105"))
    assert [(rule, [each["line"] for each in of]) for rule, of in by_rule(found, ("TPF101",))] == [("TPF101", [1, 2])]


def test_a_package_is_checked_and_its_code_shown(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "lib" / "a.py").write_text(CODE, encoding="utf-8")
    found = list(collect("lib==1", str(tmp_path / "lib")))
    assert ("TPF101", "lib==1", "lib/a.py", 8) in [
        tuple(each[k] for k in ("rule", "package", "path", "line")) for each in found
    ]
    [read] = [each for each in found if each["rule"] == "TPF101"]
    assert shown(read, 1).splitlines()[-2:] == [
        "      7         optimizer.step()",
        ">     8         print(loss.item())",
    ]
