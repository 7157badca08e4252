# SPDX-License-Identifier: Apache-2.0
"""Measures loaders that stay alive between their turns, so that a turn does not include worker startup.

After its turn, a loader fills its prefetch buffer and then sleeps. At its next turn, the buffered batches and one more
batch per worker are dropped, so that the production of batches is measured.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from feedline.tune.search import Refused, Visit

_LEAST_BATCHES = 3
_MOST_WAITS = 512  # of which a visit stores the times
_MOST_ALIVE = 2
_WORK = bytes(1 << 16)  # hashed as the CPU part of a step: about 50 us, without the interpreter lock

now = time.perf_counter


@dataclass(frozen=True)
class Step:
    """Simulates the loop's own work between two batches: CPU time on one thread, then waiting."""

    wall_s: float
    cpu_s: float

    def spend(self) -> None:
        until, cpu_until = now() + self.wall_s, time.thread_time() + min(self.cpu_s, self.wall_s)
        while time.thread_time() < cpu_until:
            hashlib.sha256(_WORK)
        time.sleep(max(until - now(), 0.0))


class Live:
    """A loader, created by `make`, that iterates over its data repeatedly.

    `ahead`: number of batches that are ready when the loader's turn begins; `workers`: number of its workers.
    """

    def __init__(self, make: Callable[[], Any], ahead: Callable[[Any], int], workers: int) -> None:
        self.loader = make()
        self._ahead, self._workers, self._until = ahead, workers, 0.0
        self._batches = _endless(self.loader)
        self._began = False
        self.batch_bytes: int | None = None

    def visit(self, seconds: float, step: Step | None, rows: float, patience_s: float, alone: bool = True) -> Visit:
        """Measures at least three batches with `step` between them, and at least three batches of the loader without a
        step.

        If there is no step, only the loader is measured; if `alone` is False, only batches with `step` are measured.
        Both cases take all of `seconds`. Raises Refused if the measurement takes longer than `patience_s`.
        """
        self._until = now() + patience_s
        self._skip((self._ahead(self.loader) if self._began else 0) + self._workers)
        self._began = True
        if step is None:
            rate, waits = self._run(seconds, None)
            return Visit(rate, None, rows, tuple(waits))
        # measure without a step first: afterwards, batches would be ready that were made during the loop
        rate_alone = self._run(seconds / 2, None)[0] if alone else None
        looped, waits = self._run(seconds / 2 if alone else seconds, step)
        return Visit(rate_alone, looped, rows, tuple(waits))

    def _skip(self, count: int) -> None:
        for _ in range(count):
            self._next()

    def _next(self) -> None:
        batch = next(self._batches)
        if self.batch_bytes is None:
            self.batch_bytes = bytes_of(batch)
        if now() > self._until:
            raise Refused("the loader's batches take too long for the remaining time")

    def _run(self, seconds: float, step: Step | None) -> tuple[float, list[float]]:
        waits: list[float] = []
        # workers that began together finish together, so measure whole rounds
        least, count = max(_LEAST_BATCHES, 2 * self._workers), 0
        begin = now()
        while True:
            before = now()
            self._next()
            if len(waits) < _MOST_WAITS:
                waits.append(1000 * (now() - before))
            if step is not None:
                step.spend()
            count += 1
            took = now() - begin
            if (took >= seconds and count >= least) or (took >= 4 * seconds and count >= _LEAST_BATCHES):
                return count / max(took, 1e-9), waits

    def close(self) -> None:
        self._batches.close()
        close = getattr(self.loader, "close", None)
        if callable(close):
            close()
        self.loader = None
        gc.collect()  # torch's iterators stop their workers when they are garbage collected


class Stable:
    """The live loaders: those for the latest two settings."""

    def __init__(self, make: Callable[[Any], Live]) -> None:
        self._make = make
        self._alive: dict[Any, Live] = {}

    def of(self, setting: Any) -> Live:
        live = self._alive.pop(setting, None)
        if live is None:
            while len(self._alive) >= _MOST_ALIVE:
                self.drop(next(iter(self._alive)))
            live = self._make(setting)
        self._alive[setting] = live  # latest last
        return live

    def drop(self, setting: Any) -> None:
        live = self._alive.pop(setting, None)
        if live is not None:
            live.close()

    def close(self) -> None:
        for setting in list(self._alive):
            self.drop(setting)


def bytes_of(batch: Any) -> int:
    """Returns the size of the arrays, tensors, text and bytes in a batch."""
    if isinstance(batch, (bytes, str)):
        return len(batch)
    size = getattr(batch, "nbytes", None)
    if isinstance(size, int):
        return size
    if isinstance(batch, Mapping):
        return sum(bytes_of(value) for value in batch.values())
    if isinstance(batch, (list, tuple)):
        return sum(bytes_of(value) for value in batch)
    return 8


def _endless(loader: Any) -> Generator[Any, None, None]:
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            raise Refused("the loader cannot be iterated a second time")
