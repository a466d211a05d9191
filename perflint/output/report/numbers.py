"""Numbers as people read them."""

from __future__ import annotations

from perflint.output.report.facts import finite

_FIXED = "\u00a0"
"""A number and its unit stay on one line."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def ms(value: float | None, digits: int = 2) -> str:
    """Milliseconds, with their unit; an em dash where they are not known."""
    return "—" if value is None else f"{plain(value, digits)}{_FIXED}ms"


def plain(value: float | None, digits: int = 2) -> str:
    """A number of milliseconds without unit."""
    if value is None:
        return "—"
    value = finite(value)
    return f"{value:,.{digits}f}" if abs(value) < 1e6 else f"{value:.3g}"


def percent(value: float | None) -> str:
    """A share from 0 to 1."""
    if value is None:
        return "—"
    if 0 < value < 0.001:
        return f"<{_FIXED}0.1%"
    return f"{100 * value:.1f}%" if 0 < value < 0.0995 else f"{100 * value:.0f}%"


def times(value: float) -> str:
    """How often something happens in a step."""
    value = finite(value)
    if 0 < value < 0.01:
        return f"<{_FIXED}0.01"
    return f"{value:,.2f}".rstrip("0").rstrip(".") if value < 100 else f"{value:,.0f}"


def factor(value: float) -> str:
    """A ratio."""
    return plain(value)


def size(value: int) -> str:
    """A number of bytes."""
    amount, unit = finite(float(value)), 0
    while abs(amount) >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    digits = 0 if unit == 0 or abs(amount) >= 100 else 1
    return f"{amount:.{digits}f}{_FIXED}{_UNITS[unit]}"
