"""The measured costs of patterns, in `worth.toml`, of which only the rows that a rule needs are parsed."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import cache
from pathlib import Path
from typing import Any

from perflint.findings import Severity
from perflint.frozen import dataclass

_SOUNDS_LIKE_A_VOWEL = "AEFHILMNORSX8"


@dataclass(frozen=True, slots=True)
class Cost:
    """One measured pair: the pattern against its cure.

    Times are medians in milliseconds; `ratio` is the median of bad over good, `low` and
    `high` the least and the greatest ratio seen. `scope` is "operation" where the pattern was
    timed alone, "step" where a whole training, inference or decoding step was.
    """

    name: str
    rules: tuple[str, ...]
    pattern: str
    scope: str
    dtype: str
    shape: str
    bad_ms: float
    good_ms: float
    ratio: float
    low: float
    high: float
    device: str
    torch: str
    source: str

    @property
    def slower(self) -> str:
        """The ratio in words: "about 4.4 × slower", "about 10% slower"."""
        return slower(self.ratio)

    @property
    def where(self) -> str:
        """The condition in words: "in bfloat16 on an H200"."""
        return _where(self.dtype, self.device)

    @property
    def severity(self) -> Severity:
        """The severity for a pattern that costs this much of a whole step.

        An error costs a quarter of the step or more, a warning three percent or more. A cost
        within the noise of a single run may be chance, and the ratio of one operation shows no
        cost of a step: both are INFO.
        """
        if self.scope != "step" or self.low <= 1:
            return Severity.INFO
        return severity_of(1 - 1 / self.ratio)


def severity_of(lost: float) -> Severity:
    """The severity for a pattern that takes this share of a step, from 0 to 1."""
    if lost >= 0.25:
        return Severity.ERROR
    return Severity.WARNING if lost >= 0.03 else Severity.INFO


@dataclass(frozen=True, slots=True)
class Grid:
    """Measured ratios over the sizes of a layer: of a size that misfits, over the next multiple.

    `inner` and `outer` are the multiples; `ratios` has a value for each of `rows`, `inner` and
    `outer`, in this order.
    """

    name: str
    rules: tuple[str, ...]
    pattern: str
    dtype: str
    rows: tuple[int, ...]
    inner: tuple[int, ...]
    outer: tuple[int, ...]
    ratios: tuple[float, ...]
    device: str
    torch: str
    source: str

    @property
    def where(self) -> str:
        """The condition in words: "under bfloat16 autocast on an H200"."""
        return _where(self.dtype, self.device)

    @property
    def most_rows(self) -> int:
        """The batch for which `ratio` was measured."""
        return self.rows[-1]

    def ratio(self, inner: int, outer: int, rows: int | None = None) -> float | None:
        """The ratio at these multiples, between those measured; None beyond them.

        It holds for the largest batch, or for `rows`, where a batch beyond those measured counts as the nearest.
        """
        down, across = _between(self.inner, inner), _between(self.outer, outer)
        if down is None or across is None:
            return None
        most = self.most_rows
        planes = _between(self.rows, min(max(rows or most, self.rows[0]), most)) if len(self.rows) > 1 else ((0, 1.0),)
        total = 0.0
        for plane, weight in planes or ():
            for row, part in down:
                for column, share in across:
                    at = ((plane * len(self.inner)) + row) * len(self.outer) + column
                    total += weight * part * share * math.log(self.ratios[at])
        return math.exp(total)


def _between(axis: tuple[int, ...], value: int) -> tuple[tuple[int, float], tuple[int, float]] | None:
    """The two neighbours of a value on a logarithmic axis, with their shares."""
    if not axis[0] <= value <= axis[-1]:
        return None
    below = min(bisect_right(axis, value) - 1, len(axis) - 2)
    share = math.log(value / axis[below]) / math.log(axis[below + 1] / axis[below])
    return (below, 1 - share), (below + 1, share)


def amount(ratio: float) -> str:
    """A ratio, "4.4 ×", or from below 1.45 the surplus, "10%"; empty if there is none."""
    if ratio >= 10:
        return f"{ratio:.0f} ×"
    if ratio >= 1.45:
        return f"{ratio:.1f} ×"
    percent = round((ratio - 1) * 100)
    return f"{percent}%" if percent > 0 else ""


def slower(ratio: float) -> str:
    """A ratio in words: "about 4.4 × slower", "about 10% slower"."""
    return f"about {amount(ratio)} slower" if amount(ratio) else "not measurably slower"


_SHORT = {"bfloat16 autocast": "bf16", "bfloat16": "bf16", "float16 autocast": "fp16", "float32 with TF32": "TF32"}
_EACH_LAYER = " in each of 12 layers"


def sentence(template: str, *names: str) -> str:
    """A sentence on the cost of a pattern, with the device and dtype that it was measured with.

    In the template `{0}` stands for the ratio of the first row, "about 9%", `{1}` for that of the second.
    """
    quoted = [cost(name) for index, name in enumerate(names) if f"{{{index}}}" in template]
    dtypes = {row.dtype for row in quoted}
    text = template
    for index, name in enumerate(names):
        if f"{{{index}}}" in template:
            figure = amount(cost(name).ratio)
            text = text.replace(f"{{{index}}}", f"about {figure}" if figure else "nothing measurable")
    return f"Measured {conditions(quoted[0].device, dtypes.pop() if len(dtypes) == 1 else '')}: {text}."


def conditions(device: str, dtype: str = "") -> str:
    """The conditions of a measurement: "on an H200 (bf16)"."""
    return f"on {_a(device)}" + (f" ({_SHORT.get(dtype, dtype)})" if dtype else "")


def usual(names: tuple[str, ...]) -> str | None:
    """The sentence on a pattern that was timed in the usual two ways, "…-gpt" and "…-gpt-host-work"; else None."""
    step = next((name for name in names if name.endswith("-gpt")), None)
    if step is None or f"{step}-host-work" not in names:
        return None
    if _EACH_LAYER in cost(step).pattern:
        text = "once in each layer it costs GPT-2 training {0}, once per step {1} if 2 ms of CPU work follows"
    else:
        text = "once per step it costs GPT-2 training {0}, {1} if 2 ms of CPU work follows"
    return sentence(text, step, f"{step}-host-work")


def _where(dtype: str, device: str) -> str:
    return f"{'under' if dtype.endswith('autocast') else 'in'} {dtype} on {_a(device)}"


def _a(device: str) -> str:
    """A device with its article: "an H200"."""
    model = device.removeprefix("NVIDIA ")
    return f"{'an' if model[:1] in _SOUNDS_LIKE_A_VOWEL else 'a'} {model}"


@cache
def cost(name: str) -> Cost:
    """The row of that name. Raises KeyError if there is none."""
    return _cost(name, _table("rows", name))


@cache
def grid(name: str) -> Grid:
    """The grid of that name. Raises KeyError if there is none."""
    return _grid(name, _table("grids", name))


@cache
def rows() -> tuple[Cost, ...]:
    """All rows, in the order of the file."""
    return tuple(_cost(name, row) for name, row in _parsed(_text())["rows"].items())


@cache
def grids() -> tuple[Grid, ...]:
    """All grids, in the order of the file."""
    return tuple(_grid(name, table) for name, table in _parsed(_text())["grids"].items())


def _cost(name: str, row: dict[str, Any]) -> Cost:
    fields = {key: value for key, value in row.items() if key not in ("run", "rules")}
    return Cost(name=name, rules=tuple(row["rules"]), **fields, **_run(row["run"]))


def _grid(name: str, table: dict[str, Any]) -> Grid:
    fields: dict[str, Any] = {key: tuple(table[key]) for key in ("rules", "rows", "inner", "outer", "ratios")}
    return Grid(name=name, pattern=table["pattern"], dtype=table["dtype"], **fields, **_run(table["run"]))


@cache
def _run(name: str) -> dict[str, Any]:
    return _table("runs", name)


def _table(kind: str, name: str) -> dict[str, Any]:
    """One table of the file: parsing them all takes longer than checking most files."""
    text = _text()
    start = text.find(f"[{kind}.{name}]\n")
    if start < 0:
        raise KeyError(name)
    table: dict[str, Any] = _parsed(text[start : text.find("\n\n", start) + 1 or None])[kind][name]
    return table


def _parsed(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text)


@cache
def _text() -> str:
    return Path(__file__).with_name("worth.toml").read_text(encoding="utf-8")
