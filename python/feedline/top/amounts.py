# SPDX-License-Identifier: Apache-2.0
"""Formats numbers for narrow lines; "-" means unknown."""

from __future__ import annotations

from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_UNKNOWN = "-"


def percent(share: float | None) -> str:
    return _UNKNOWN if share is None else f"{share:.0%}"


def count(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:,.0f}"


def decimal(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.1f}"


def rate(per_s: float | None) -> str:
    """Formats small rates with three digits: one batch per minute is 0.02, not 0."""
    if per_s is None:
        return _UNKNOWN
    if per_s >= 100 or per_s == 0:
        return f"{per_s:,.0f}"
    return f"{per_s:.1f}" if per_s >= 10 else f"{per_s:.2f}"


def size(number: float | None) -> str:
    """Formats bytes like ``12.3 MB``, with decimal units, as is usual for disks and networks."""
    if number is None:
        return _UNKNOWN
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 999.95 or unit == "TB":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"


def milliseconds(value: float | None) -> str:
    if value is None:
        return _UNKNOWN
    if value < 1:
        return f"{value * 1000:,.0f} us"
    return f"{value:.1f} ms" if value < 100 else f"{value:,.0f} ms"


def clock(seconds: float) -> str:
    minutes, second = divmod(int(max(seconds, 0)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days} d {hour:02}:{minute:02}" if days else f"{hour:02}:{minute:02}:{second:02}"


def bar(share: float | None, width: int) -> str:
    """Returns a bar of `width` columns, filled from the left in eighths of a column."""
    eighths = round(min(max(share or 0.0, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width, "·")


def sparkline(shares: Sequence[float]) -> str:
    """Returns a sparkline with one column per share, oldest first."""
    return "".join(_HEIGHTS[min(int(min(max(share, 0.0), 1.0) * len(_HEIGHTS)), len(_HEIGHTS) - 1)] for share in shares)


def tail(text: str, width: int) -> str:
    """Shortens a path at the start, because its end is more informative."""
    return text if len(text) <= width else f"…{text[len(text) - width + 1 :]}" if width > 1 else ""
