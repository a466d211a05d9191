"""What patterns cost where they were measured: `worth.toml`, read when a rule first asks."""

from __future__ import annotations

from functools import cache
from pathlib import Path

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
    def amount(self) -> str:
        """The ratio, "4.4 ×", or from below 1.45 the surplus, "10 %"; empty where there is none."""
        if self.ratio >= 10:
            return f"{self.ratio:.0f} ×"
        if self.ratio >= 1.45:
            return f"{self.ratio:.1f} ×"
        percent = round((self.ratio - 1) * 100)
        return f"{percent} %" if percent > 0 else ""

    @property
    def slower(self) -> str:
        """The amount in words: "about 4.4 × slower", "about 10 % slower"."""
        return f"about {self.amount} slower" if self.amount else "not measurably slower"

    @property
    def where(self) -> str:
        """The condition in words: "in bfloat16 on an H200"."""
        return f"{'under' if self.dtype.endswith('autocast') else 'in'} {self.dtype} on {self.on}"

    @property
    def on(self) -> str:
        """The device with its article: "an H200"."""
        model = self.device.removeprefix("NVIDIA ")
        return f"{'an' if model[:1] in _SOUNDS_LIKE_A_VOWEL else 'a'} {model}"

    @property
    def severity(self) -> Severity:
        """What a pattern deserves that costs this much of a whole step.

        An error loses a quarter of the step or more, a warning three percent or more. An
        operation's own ratio says nothing about the step, so it only informs.
        """
        return severity_of(1 - 1 / self.ratio) if self.scope == "step" else Severity.INFO


def severity_of(lost: float) -> Severity:
    """What a pattern deserves that takes this share of a step, from 0 to 1."""
    if lost >= 0.25:
        return Severity.ERROR
    return Severity.WARNING if lost >= 0.03 else Severity.INFO


def cost(name: str) -> Cost:
    """The row of that name. Raises KeyError where there is none."""
    return _rows()[name]


@cache
def _rows() -> dict[str, Cost]:
    import tomllib

    data = tomllib.loads(Path(__file__).with_name("worth.toml").read_text(encoding="utf-8"))
    runs = data["runs"]
    rows: dict[str, Cost] = {}
    for name, row in data["rows"].items():
        fields = {key: value for key, value in row.items() if key not in ("run", "rules")}
        rows[name] = Cost(name=name, rules=tuple(row["rules"]), **fields, **runs[row["run"]])
    return rows
