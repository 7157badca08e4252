# SPDX-License-Identifier: Apache-2.0
"""Numbers on the command line."""

from __future__ import annotations

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A number within bounds. ``nan`` is beside every bound, not beyond one: a clock never gets there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no number to wait for; give one such as 5", param, ctx)
        return number
