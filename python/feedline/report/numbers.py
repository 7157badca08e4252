# SPDX-License-Identifier: Apache-2.0
"""Formats numbers for readers."""

from __future__ import annotations

import math

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def number(value: float) -> str:
    """Three significant digits: 0.0123, 4.56, 78.9, 1,234."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 9)}f}"


def size(count: float) -> str:
    for unit in _SIZES:
        if abs(count) < 1024 or unit == _SIZES[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def with_unit(value: float, unit: str) -> str:
    if unit == "share":
        return f"{value:.1%}"
    if unit in ("B", "B/s"):
        return size(value) + unit[1:]
    return f"{number(value)}/s" if unit == "1/s" else f"{number(value)} {unit}"


def fact(name: str, value: object) -> str:
    """Formats a fact of a record with the unit given by the end of its name."""
    if value is None:
        return "none or unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return size(value) if name.endswith("_bytes") else f"{value:.6g}" if isinstance(value, float) else str(value)
    return str(value)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Returns round values between `low` and `high`, at most `most` + 1."""
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    if span < 1e-12 * max(abs(low), abs(high)):
        return [low, high]  # too close for any rounder number between them
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]
