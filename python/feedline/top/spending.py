# SPDX-License-Identifier: Apache-2.0
"""Computes the cost of the run's waiting GPUs from successive samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..cost import Price, Spent
from ..machine.gpu import Reading
from .rates import LoaderRates

Waiting = Iterable[tuple[int, LoaderRates | None]]  # a loader's process, and its rates since the previous sample


class Spending:
    """Accumulates samples. `price`: the price from the arguments of `feedline top`."""

    def __init__(self, price: Price) -> None:
        self.price = price
        self._gpus = 0
        self._gpu_s = self._idle_s = self._power_s = self._powered_s = 0.0

    def add(self, over_s: float, waiting: Waiting, gpus: Sequence[Reading], pids: Iterable[int]) -> Spent | None:
        """Returns the cost since the first sample.

        Args:
            over_s: seconds since the previous sample.
            waiting: the loaders of the run.
            gpus: all visible GPUs.
            pids: process ids of the run.

        Returns:
            None if the run has no GPU, or if it is unknown whether its GPUs wait.
        """
        shares = _waits(waiting)
        own = _own(gpus, set(pids), len(shares))
        count = len(own) if own or self.price.gpu_hour is None else len(shares)
        idle = _idle_share(shares, own)
        if count and idle is not None and over_s > 0:
            self._gpus = max(self._gpus, count)
            self._gpu_s += count * over_s
            self._idle_s += count * over_s * idle
            powers = [gpu.power_w for gpu in own if gpu.power_w is not None]
            if powers:
                self._powered_s += over_s
                self._power_s += over_s * sum(powers) / len(powers)
        if not self._gpu_s:
            return None
        watts = self._power_s / self._powered_s if self._powered_s else None
        seconds = self._gpu_s / self._gpus
        return Spent(self._gpus, seconds, self._idle_s / self._gpu_s, watts, assumed=not own)


def _waits(waiting: Waiting) -> list[float]:
    """Returns the share of the loop's time spent waiting, for each process with a loader."""
    shares: dict[int, float] = {}
    for pid, rates in waiting:
        if rates is not None and rates.wait_share is not None:
            shares[pid] = min(shares.get(pid, 0.0) + rates.wait_share, 1.0)
    return list(shares.values())


def _own(gpus: Sequence[Reading], pids: set[int], loops: int) -> list[Reading]:
    """Returns the number of GPUs that the run computes on; one per loop if the driver lists no processes."""
    if any(gpu.pids for gpu in gpus):
        return [gpu for gpu in gpus if pids & set(gpu.pids)]
    return list(gpus[: max(loops, 1)])


def _idle_share(shares: list[float], own: list[Reading]) -> float | None:
    """Returns the idle share of the GPUs: the exact value from the loops' waits, or a low estimate from GPU-Util if no
    loader reports waits.
    """
    if shares:
        return sum(shares) / len(shares)
    known = [gpu.utilisation for gpu in own if gpu.utilisation is not None]
    return 1 - sum(known) / len(known) if known else None
