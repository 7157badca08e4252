# SPDX-License-Identifier: Apache-2.0
"""The price of a GPU-hour and the length of a job, which cannot be measured."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ConfigError

PRICE = "FEEDLINE_GPU_PRICE"
_JOB_HOURS = 24.0


@dataclass(frozen=True)
class Price:
    """Attributes:
    gpu_hour: price of one GPU for an hour, in any currency; None if unknown.
    job_hours: duration of a whole job, used for reporting gains.
    """

    gpu_hour: float | None = None
    job_hours: float = _JOB_HOURS


NO_PRICE = Price()


def price_of(
    gpu_hour: float | None, job_hours: float | None = None, environment: Mapping[str, str] = os.environ
) -> Price:
    """Returns `gpu_hour`, or the price in the environment variable :data:`PRICE` if it is None, with the job's hours.

    Raises:
        ConfigError: the variable is not a nonnegative number.
    """
    if gpu_hour is None and (text := environment.get(PRICE, "").strip()):
        try:
            gpu_hour = float(text)
        except ValueError:
            gpu_hour = -1.0
        if not (math.isfinite(gpu_hour) and gpu_hour >= 0):
            raise ConfigError(f"{PRICE} is {text!r}: set a price per GPU-hour, such as 2.5")
    return Price(gpu_hour, _JOB_HOURS if job_hours is None else job_hours)
