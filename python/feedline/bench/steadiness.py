# SPDX-License-Identifier: Apache-2.0
"""Samples CPU use and reads from disks once a second during a measurement, and computes how steady they were."""

from __future__ import annotations

import os
import statistics
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from feedline.errors import Error
from feedline.machine.host import HostWatch

_SECOND = 1.0
_LEAST_SECONDS = 3  # whole seconds; the spread of fewer seconds is not meaningful


class SteadinessWatch:
    """Samples this process and its children, while used as a context manager.

    Args:
        seconds: expected length of the measurement; a short measurement is not sampled.
    """

    def __init__(self, seconds: float) -> None:
        self._is_long = seconds >= _LEAST_SECONDS * _SECOND
        self._cpus: list[float | None] = []
        self._disk: list[float | None] = []
        self._end = threading.Event()
        self._why = ""
        self._thread = threading.Thread(target=self._sample, name="feedline-steadiness", daemon=True)

    def __enter__(self) -> SteadinessWatch:
        if self._is_long:
            self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._end.set()
        if self._is_long:
            self._thread.join()

    def _sample(self) -> None:
        try:
            watch = HostWatch(os.getpid(), _SECOND)
        except (Error, OSError) as error:
            self._why = str(error)
            return
        try:
            watch.look()  # the first sample has no rates
            while not self._end.wait(_SECOND):
                figures = watch.look()
                self._cpus.append(figures.cpus_used)
                self._disk.append(figures.read_bytes_per_s)
        except (Error, OSError) as error:
            self._why = str(error)
        finally:
            watch.close()

    def figures(self, arrivals: Iterable[tuple[float, int]]) -> dict[str, Any]:
        """Returns mean and spread of the rates in each second.

        Args:
            arrivals: time in seconds at which each batch arrived, and its number of samples.

        Returns:
            ``seconds``: number of whole seconds; ``images_per_s``, ``cpus`` (CPUs in use) and ``disk_bytes_per_s``
            (bytes read from disks, not from the page cache): objects with ``mean`` and ``spread``, the standard
            deviation over seconds divided by the mean, or None if not measured; ``not_judged``: the reason, or None.
        """
        images = per_second(arrivals)
        why = None
        if len(images) < _LEAST_SECONDS:
            why = f"the measurement has {len(images)} whole seconds, but {_LEAST_SECONDS} are needed: raise --seconds"
        elif self._why:
            why = f"the machine's counters could not be read: {self._why}"
        return {
            "seconds": len(images),
            "images_per_s": spread(images),
            "cpus": spread(self._cpus),
            "disk_bytes_per_s": spread(self._disk),
            "not_judged": why,
        }


def per_second(arrivals: Iterable[tuple[float, int]]) -> list[float]:
    """Returns the samples that arrived in each whole second after the first batch."""
    counts: dict[int, float] = {}
    begin: float | None = None
    last = 0
    for time, samples in arrivals:
        if begin is None:
            begin = time
            continue
        last = int(time - begin)
        counts[last] = counts.get(last, 0.0) + samples
    return [counts.get(second, 0.0) for second in range(last)]  # the last second is incomplete


def spread(values: Sequence[float | None]) -> dict[str, float] | None:
    """Returns the mean and the standard deviation divided by the mean; None for fewer than three known values."""
    known = [value for value in values if value is not None]
    if len(known) < _LEAST_SECONDS:
        return None
    mean = statistics.mean(known)
    return {"mean": mean, "spread": statistics.pstdev(known) / mean if mean > 0 else 0.0}
