"""Draws how time and memory grow with the size of a project, from the figures that `growth.py --json` writes.

    python benchmarks/speed/plot.py [FIGURES] [--output docs/images/growth.svg]

Both axes are logarithmic, so that linear growth is a straight line with the slope of the dashed one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from math import log10
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIGURES = Path(__file__).with_name("growth.json")
OUTPUT = ROOT / "docs" / "images" / "growth.svg"

PANELS = {"CPU seconds": (0.1, 1_000), "peak MiB": (10, 10_000)}
"""The figures that are drawn, and the ends of their axes."""
LINES = (1_000, 10_000_000)
SIDE = 240
"""Width and height of a panel."""
LEFT, TOP, GAP = 64, 36, 96
STYLE = (
    "text{font:12px sans-serif;fill:#57606a}.title{font-weight:bold;fill:#24292f}.grid{stroke:#d0d7de}"
    ".linear{stroke:#8c959f;stroke-dasharray:4 4}.line{stroke:#0969da;fill:none;stroke-width:2}circle{fill:#0969da}"
    "@media (prefers-color-scheme:dark){text{fill:#9198a1}.title{fill:#f0f6fc}.grid{stroke:#3d444d}"
    ".linear{stroke:#656c76}.line{stroke:#4493f8}circle{fill:#4493f8}}"
)

Rows = Sequence[Mapping[str, float]]


def main() -> None:
    """Read the figures and write the picture."""
    parser = argparse.ArgumentParser(description="draw how time and memory grow with a project")
    parser.add_argument("figures", nargs="?", type=Path, default=FIGURES, metavar="FIGURES")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE")
    options = parser.parse_args()
    rows = json.loads(options.figures.read_text(encoding="utf-8"))
    options.output.write_text(picture(rows), encoding="utf-8")


def picture(rows: Rows) -> str:
    """The picture as SVG."""
    width = LEFT + len(PANELS) * SIDE + (len(PANELS) - 1) * GAP + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + SIDE + 48}" role="img">',
        f"<title>{description(rows)}</title>",
        f"<style>{STYLE}</style>",
    ]
    for number, name in enumerate(PANELS):
        parts += panel(rows, name, LEFT + number * (SIDE + GAP))
    return "\n".join([*parts, "</svg>\n"])


def description(rows: Rows) -> str:
    """The picture in words."""
    first, last = rows[0], rows[-1]
    grown = ", ".join(f"{name} from {first[name]:g} to {last[name]:g}" for name in PANELS)
    return f"From {first['lines']:,} to {last['lines']:,} lines: {grown}"


def panel(rows: Rows, name: str, left: int) -> Iterator[str]:
    """One figure over the lines of the project."""
    low, high = PANELS[name]
    bottom = TOP + SIDE

    def x(lines: float) -> float:
        return round(left + SIDE * share(lines, *LINES), 1)

    def y(value: float) -> float:
        return round(bottom - SIDE * share(value, low, high), 1)

    yield f'<text class="title" x="{left}" y="{TOP - 14}">{name}</text>'
    for value in powers(low, high):
        yield f'<path class="grid" d="M{left} {y(value)}H{left + SIDE}"/>'
        yield f'<text x="{left - 8}" y="{y(value) + 4}" text-anchor="end">{value:,g}</text>'
    for value in powers(*LINES):
        yield f'<path class="grid" d="M{x(value)} {TOP}V{bottom}"/>'
        yield f'<text x="{x(value)}" y="{bottom + 18}" text-anchor="middle">{short(value)}</text>'
    yield f'<text x="{left + SIDE / 2:g}" y="{bottom + 38}" text-anchor="middle">lines of the project</text>'
    # Linear growth, through the third point.
    through = rows[min(2, len(rows) - 1)]
    ends = [(lines, through[name] * lines / through["lines"]) for lines in LINES]
    yield f'<path class="linear" d="{path([(x(lines), y(value)) for lines, value in clipped(ends, low, high)])}"/>'
    points = [(x(row["lines"]), y(row[name])) for row in rows]
    yield f'<path class="line" d="{path(points)}"/>'
    for across, down in points:
        yield f'<circle cx="{across}" cy="{down}" r="3.5"/>'


def share(value: float, low: float, high: float) -> float:
    """The part of a logarithmic axis that lies below a value."""
    return log10(value / low) / log10(high / low)


def powers(low: float, high: float) -> Iterator[float]:
    """The powers of ten from one value to another."""
    value = low
    while value <= high * 1.001:
        yield value
        value = round(value * 10, 6)


def clipped(ends: Sequence[tuple[float, float]], low: float, high: float) -> list[tuple[float, float]]:
    """The ends of a line through the origin, moved along it into the panel."""
    slope = ends[0][1] / ends[0][0]
    values = [min(max(value, low), high) for _, value in ends]
    return [(value / slope, value) for value in values]


def path(points: Sequence[tuple[float, float]]) -> str:
    """A line through points."""
    return "M" + "L".join(f"{across} {down}" for across, down in points)


def short(lines: float) -> str:
    """A number of lines as the axis shows it: 10 k."""
    return f"{lines / 1e6:g} M" if lines >= 1e6 else f"{lines / 1e3:g} k"


if __name__ == "__main__":
    main()
