# SPDX-License-Identifier: Apache-2.0
"""Calculates the cost of a run's GPUs and of their waits for data from the measurements of the run.

A GPU counts as idle while its training loop waits for the loader. Gaps caused by the step's own Python code do not
count; `feedline trace` shows these gaps. The idle time does not depend on GPU-Util, which counts any moment in which a
kernel runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .price import Price

_HOUR_S = 3600.0
_WAITS = ("production", "straggler", "handover", "startup", "border")


@dataclass(frozen=True)
class Spent:
    """Resources used in a period of time.

    Attributes:
        gpus: number of GPUs in the run.
        seconds: length of the period.
        idle_share: share of the time in which the GPUs waited for data, 0 to 1.
        watts: mean power of one GPU; None if unknown.
        idle_watts: power of one nearly idle GPU; None if not observed or unknown.
        assumed: True if no GPU was detected, and `gpus` therefore assumes one GPU for each training loop.
    """

    gpus: int
    seconds: float
    idle_share: float
    watts: float | None = None
    idle_watts: float | None = None
    assumed: bool = False

    @property
    def gpu_hours(self) -> float:
        return self.gpus * self.seconds / _HOUR_S

    @property
    def idle_gpu_hours(self) -> float:
        return self.gpu_hours * self.idle_share

    @property
    def kwh(self) -> float | None:
        return None if self.watts is None else self.gpu_hours * self.watts / 1000

    @property
    def idle_kwh(self) -> float | None:
        """Returns the energy used while waiting, from a GPU's idle power if observed, or else from its mean power."""
        watts = self.watts if self.idle_watts is None else self.idle_watts
        return None if watts is None else self.idle_gpu_hours * watts / 1000

    def of_job(self, hours: float) -> Spent:
        """Returns the amounts scaled to a job of `hours` with the same idle share and power."""
        return Spent(self.gpus, hours * _HOUR_S, self.idle_share, self.watts, self.idle_watts, self.assumed)


def of_run(summary: Mapping[str, Any], price: Price) -> Spent | None:
    """Returns the resources used by a run that `feedline diagnose` watched.

    Args:
        summary: the summary of a diagnosis, in the form of its JSON output.
        price: the price of a GPU-hour; if known, a run without detected GPUs counts as one GPU for each rank.

    Returns:
        The amounts; None if no GPU was detected and there is no price, or no loop was measured.
    """
    if not summary or not summary.get("loop_s") or not summary.get("waits"):
        return None
    gpu, ranks = summary.get("gpu") or {}, summary.get("ranks") or ()
    if not gpu and price.gpu_hour is None:
        return None
    own = sum(summary["waits"].get(name, 0.0) for name in _WAITS)
    idle = sum(ranks) / len(ranks) if ranks else own
    loops = max(len(ranks), 1)
    return Spent(
        max(len(gpu.get("indices") or ()), loops),
        summary["loop_s"],
        min(max(idle, 0.0), 1.0),
        gpu.get("power_w"),
        gpu.get("idle_power_w"),
        assumed=not gpu,
    )


def saved_hours(gain: Sequence[float], hours: float) -> tuple[float, float]:
    """Returns the hours (low, high) that a job of `hours` saves if throughput grows by the fractions `gain`."""
    low, high = (hours * (1 - 1 / (1 + max(one, 0.0))) for one in (gain[0], gain[-1]))
    return low, high


def as_amounts(spent: Spent, price: Price) -> dict[str, Any]:
    """Converts the amounts of a period to a dict for JSON."""
    return {
        "gpus": spent.gpus,
        "gpus_assumed": spent.assumed,
        "gpu_hours": spent.gpu_hours,
        "idle_share": spent.idle_share,
        "idle_gpu_hours": spent.idle_gpu_hours,
        "kwh": spent.kwh,
        "idle_kwh": spent.idle_kwh,
        "gpu_hour_price": price.gpu_hour,
        "idle_money": None if price.gpu_hour is None else spent.idle_gpu_hours * price.gpu_hour,
    }


def of_record(record: Mapping[str, Any], price: Price) -> Spent | None:
    """Returns the amounts in a run record. If a record has no amounts but a price is known, assumes one GPU."""
    held = record.get("cost")
    if held is not None:
        hours = held["gpu_hours"]
        watts = None if held["kwh"] is None or not hours else held["kwh"] / hours * 1000
        idle = None if held["idle_kwh"] is None or not held["idle_gpu_hours"] else held["idle_kwh"]
        idle_watts = None if idle is None else idle / held["idle_gpu_hours"] * 1000
        seconds = hours / held["gpus"] * _HOUR_S
        return Spent(held["gpus"], seconds, held["idle_share"], watts, idle_watts, held["gpus_assumed"])
    waits, wall_s = record["waits"], record.get("wall_s")
    if price.gpu_hour is None or not waits or not wall_s:
        return None
    share = sum(value for name, value in waits.items() if name in _WAITS)
    return Spent(1, wall_s, min(max(share, 0.0), 1.0), assumed=True)


def as_dict(spent: Spent | None, causes: Iterable[Mapping[str, Any]], price: Price) -> dict[str, Any] | None:
    """Returns the ``cost`` entry of a run record: the run's amounts, and the job hours that fixing each cause saves."""
    if spent is None:
        return None
    return {
        **as_amounts(spent, price),
        "job_hours": price.job_hours,
        "saves": [
            {"cause": cause["cause"], "hours": list(saved_hours(cause["predicted_gain"], price.job_hours))}
            for cause in _promising(causes)
        ],
    }


def lines(spent: Spent | None, causes: Iterable[Mapping[str, Any]], price: Price) -> list[str]:
    """Returns report lines of at most 76 columns, beginning with the run's own cost; empty if nothing was spent."""
    if spent is None:
        return []
    gpus = f"{spent.gpus} GPU" + ("" if spent.gpus == 1 else "s")
    found = [f"{gpus} waited for data {spent.idle_share:.0%} of the time: {amounts(spent, price)} in this run"]
    if spent.assumed:
        found.append("no GPU was detected: one GPU is assumed for each training loop")
    job = spent.of_job(price.job_hours)
    found.append(f"in a similar job of {price.job_hours:g} h: {amounts(job, price)}")
    for cause in _promising(causes):
        low, high = saved_hours(cause["predicted_gain"], price.job_hours)
        money = ""
        if price.gpu_hour is not None:
            money = f", worth {_number(low * job.gpus * price.gpu_hour)} to {_number(high * job.gpus * price.gpu_hour)}"
        found.append(f"  fixing {cause['cause']} would save {_number(low)} to {_number(high)} h{money}")
    return found


def _promising(causes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the causes whose fix has a predicted gain. Excludes compute_bound, because a busy GPU is not wasted."""
    return [one for one in causes if one["predicted_gain"][-1] > 0 and one["cause"] != "compute_bound"]


def amounts(spent: Spent, price: Price) -> str:
    """Formats the idle amounts: ``1.2 GPU-hours, 0.4 kWh, costing 3``."""
    parts = [f"{_number(spent.idle_gpu_hours)} GPU-hours"]
    if spent.idle_kwh is not None:
        up_to = "" if spent.idle_watts is not None else "up to "
        parts.append(f"{up_to}{_number(spent.idle_kwh)} kWh")
    if price.gpu_hour is not None:
        parts.append(f"costing {_number(spent.idle_gpu_hours * price.gpu_hour)}")
    return ", ".join(parts)


def _number(value: float) -> str:
    """Formats a number with two significant digits, or rounded to hundreds: 0.0042, 1.3, 12, 1,234."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.95 else f"{value:.2g}"
