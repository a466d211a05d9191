"""The picture of growth is the one that the figures give, and shows each of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "speed"))

import plot

ROWS = [{"lines": 1_000, "CPU seconds": 1, "peak MiB": 10}, {"lines": 100_000, "CPU seconds": 100, "peak MiB": 100}]


def circles(picture: str) -> list[tuple[float, float]]:
    found = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}circle")
    return [(float(circle.attrib["cx"]), float(circle.attrib["cy"])) for circle in found]


def test_the_picture_is_up_to_date() -> None:
    rows = json.loads(plot.FIGURES.read_text())
    picture = plot.picture(rows)
    assert plot.OUTPUT.read_text() == picture, "python benchmarks/speed/plot.py"
    assert len(circles(picture)) == len(rows) * len(plot.PANELS)


def test_a_point_lies_at_its_figure() -> None:
    left, top, side = plot.LEFT, plot.TOP, plot.SIDE
    first, second, third, fourth = circles(plot.picture(ROWS))
    assert first == (left, top + side * 3 / 4) and second == (left + side / 2, top + side / 4)
    assert third == (left + side + plot.GAP, top + side)
    assert fourth[1] == round(top + side * 2 / 3, 1)
