# SPDX-License-Identifier: Apache-2.0
"""Detects stalls while the training loop waits, and reports the stage, worker, sample and Python stack."""

from __future__ import annotations

import time
import warnings

from ...errors import StalledError
from .worker_group import WorkerGroup

_WARN_SHARE = 0.2  # share of the limit: early enough to examine the process while it hangs


class Watchdog:
    """Observes one wait of the loop. Any worker that begins a sample while the loop waits for it counts as progress."""

    def __init__(self, group: WorkerGroup, workers: list[int], limit_s: float) -> None:
        self._worker_group, self._workers, self._limit_s = group, workers, limit_s
        self._progress = self._count()
        self._since = time.monotonic()
        self._warned = False

    def _count(self) -> int:
        return sum(self._worker_group.progress(worker) for worker in self._workers)

    def step(self) -> float:
        """Warns about a stall, and later raises StalledError. Returns the seconds until the next check."""
        if self._limit_s <= 0:
            return 5.0
        progress, now = self._count(), time.monotonic()
        if progress != self._progress:
            self._progress, self._since, self._warned = progress, now, False
        waited = now - self._since
        if waited >= self._limit_s:
            raise StalledError(f"DataLoader: {self._report(waited)}", stage="workers")
        if waited >= self._limit_s * _WARN_SHARE and not self._warned:
            self._warned = True
            warnings.warn(
                f"DataLoader: {self._report(waited)}\nThis becomes an error after {self._limit_s:g} s "
                "(stall_timeout=; 0 waits forever).",
                stacklevel=2,
            )
        return min(1.0, self._limit_s * _WARN_SHARE / 4)

    def _report(self, waited: float) -> str:
        lines = [f"no progress for {waited:.1f} s."]
        for worker in self._workers:
            pid = self._worker_group.workers[worker].pid
            lines.append(f"Worker {worker} (pid {pid}): {self._worker_group.activity(worker)}. Its Python stack:")
            lines += _user_part(self._worker_group.stack(worker))
        return "\n".join(lines)


def _user_part(stack: str) -> list[str]:
    """Returns the stack, innermost frame first, without frames outside of the worker's code."""
    lines = stack.rstrip().splitlines()
    end = next(
        (i for i, line in enumerate(lines) if line.endswith((" in run_process", " in run_pool_process"))), len(lines)
    )
    return lines[:end]
