"""A comparison of two traces as values of JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perflint.output.compare.comparison import Comparison, LinePair, Pair
from perflint.output.report.facts import Line

VERSION = 1


def comparison_document(found: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    """The differences of two traces; `names` are those of their files. Times are in milliseconds per step."""
    return {
        "version": VERSION,
        "before": names[0],
        "after": names[1],
        "step_ms": _pair(found.step_ms) | {"is_within_spread": found.is_within_spread},
        "idle_ms": _pair(found.idle_ms),
        "parts_ms": {kind: _pair(pair) for kind, pair in found.parts.items()},
        "waits": _pair(found.waits),
        "lines": {"gone": _lines(found.gone), "new": _lines(found.new), "kept": _lines(found.kept)},
        "work": [{"kind": each.kind, "ms": _pair(each.ms), "count": _pair(each.count)} for each in found.work],
        "conditions": {name: {"before": before, "after": after} for name, before, after in found.conditions},
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {"before": _rounded(pair.before), "after": _rounded(pair.after), "change": _rounded(pair.change)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _lines(pairs: Iterable[LinePair]) -> list[dict[str, Any]]:
    return [
        {
            "text": pair.text,
            "before": None if pair.before is None else _line(pair.before),
            "after": None if pair.after is None else _line(pair.after),
            "cost_ms": _pair(pair.cost_ms),
        }
        for pair in pairs
    ]


def _line(line: Line) -> dict[str, Any]:
    return {
        "file": line.file,
        "line": line.line,
        "function": line.syncs[0].place.function,
        "cost_ms": _rounded(line.cost_ms),
        "per_step": _rounded(line.per_step),
    }
