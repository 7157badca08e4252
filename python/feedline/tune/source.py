# SPDX-License-Identifier: Apache-2.0
"""Measures Feedline's own loader over a source, in this process, with different numbers of threads, prefetched bytes
and batch sizes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from feedline.data.dataset import Dataset
from feedline.errors import ConfigError, Error
from feedline.loader.loader import Loader
from feedline.machine import limits as host_limits
from feedline.profiler.summary.figures import Host, Making, Summary
from feedline.tune.live import Live, Stable
from feedline.tune.search import Refused, Rung, SearchResult, Visit, search_settings
from feedline.tune.settings import SOURCE, Limits, Options, Setting

_WARM_SHARE = 0.15  # of the budget, for a first epoch, after which all settings find the same page cache
_MEMORY_SHARE = 4
_BATCHES_AHEAD = 2  # the engine's default: docs/decisions/pipeline-two-batches-ahead.md
_START_S = 0.1  # of a new loader, whose first batches wait for everything
_THREADS_PER_CPU = 2  # prefetching hides slow storage: more threads would only share CPUs


@dataclass
class TunedSource:
    """The result of tuning a source."""

    source: str
    result: SearchResult
    samples: int
    summary: Summary | None
    limits: Limits
    notes: list[str] = field(default_factory=list)


def tune(
    dataset: Dataset,
    source: str,
    batch_size: int,
    options: Options,
    tell: Callable[[Rung], None] = lambda rung: None,
    say: Callable[[str], None] = lambda phase: None,
) -> TunedSource:
    """Tunes ``dataset.loader``, starting from ``num_workers="auto"``; limits the CPU affinity to ``options.cpus``.

    Args:
        source: name of the source in messages.
        tell: called after each step of the search.
        say: called with a description of each new phase.
    """
    began = time.monotonic()
    cpus = min(options.cpus or host_limits.share_of_cpus(), host_limits.usable_cpus())
    memory = options.memory or host_limits.share_of_memory_left() // _MEMORY_SHARE
    plant = SourcePlant(dataset, options.budget_s)
    with _kept_to(cpus if options.cpus else None), contextlib.closing(plant):
        say("warming up")
        try:
            base = plant.warm_up(batch_size, _WARM_SHARE * options.budget_s)
        except Refused as error:
            raise Error(f"{source} could not be measured: {error}. Use a larger --budget") from error
        ahead = _BATCHES_AHEAD * plant.batch_bytes
        limits = Limits(cpus, memory, _THREADS_PER_CPU * cpus, options.batch_sizes, ahead=ahead)
        say("measuring")
        left = options.budget_s - (time.monotonic() - began)
        found = search_settings(plant, base, limits, left, time.monotonic, tell)
    return TunedSource(source, found, len(dataset), plant.summary(cpus), limits, list(found.notes))


class SourcePlant:
    """Loaders over one dataset that stay alive between their turns."""

    def __init__(self, dataset: Dataset, budget_s: float) -> None:
        self._dataset = dataset
        self._until = time.monotonic() + budget_s
        self._stable = Stable(self._live)
        self._stages: dict[str, float] | None = None  # ms per batch of the first setting, by stage
        self.batch_bytes = 0  # set by warm_up()

    def _live(self, setting: Setting) -> Live:
        def make() -> Loader:
            try:
                return self._dataset.loader(
                    setting.batch_size,
                    shuffle=True,
                    num_workers="auto" if setting.auto else setting.num_workers,
                    memory_budget=setting.memory_budget,
                    output="numpy",
                )
            except ConfigError as error:  # a budget smaller than one batch
                raise Refused(str(error)) from error

        # threads share batches, so the first one that was not ready is of this turn
        return Live(make, lambda loader: int(loader.stats()["ready_batches"]) + 1, 0)

    def warm_up(self, batch_size: int, seconds: float) -> Setting:
        """Reads for about `seconds` with the engine's own settings, and returns these settings."""
        live = self._live(Setting(SOURCE, 0, batch_size=batch_size, auto=True))
        with contextlib.closing(live):
            threads = int(live.loader.stats()["threads"])  # the most that "auto" may use, before it adapts
            live.visit(seconds, None, batch_size, self._patience())
        self.batch_bytes = live.batch_bytes or 0
        return Setting(SOURCE, threads, batch_size=batch_size, auto=True)

    def visit(self, setting: Setting, seconds: float) -> Visit:
        if setting.auto:  # a loader that slept between its turns has adapted to a loop that takes no batches
            self._stable.drop(setting)
        live = self._stable.of(setting)
        try:
            if setting.auto:
                live.visit(min(_START_S, seconds), None, setting.batch_size or 1, self._patience())
            visit = live.visit(seconds, None, setting.batch_size or 1, max(self._patience(), 4 * seconds))
        except Refused:
            self._stable.drop(setting)
            raise
        if self._stages is None:
            stats = live.loader.stats()
            batches = max(stats["batches"], 1)
            self._stages = {name: 1000 * stage["busy_s"] / batches for name, stage in stats["stages"].items()}
        return visit

    def border_s(self, setting: Setting) -> float:
        raise Refused("Feedline's loader prepares the next epoch's batches while it returns the last ones")

    def bytes_ahead(self, setting: Setting) -> int | None:
        return setting.memory_budget

    def epoch_batches(self) -> int | None:
        return None

    def summary(self, cpus: int) -> Summary | None:
        """Returns the time of a batch on one thread, all of it CPU time, for the model of a loop."""
        if self._stages is None:
            return None
        making_ms = sum(ms for name, ms in self._stages.items() if name != "consumer")
        cpu_ms = sum(ms for name, ms in self._stages.items() if name not in ("consumer", "storage"))
        return Summary(making=Making(wall_ms=making_ms, cpu_ms=cpu_ms), host=Host(cpus=cpus))

    def _patience(self) -> float:
        return max(self._until - time.monotonic(), 1.0)

    def close(self) -> None:
        self._stable.close()


@contextlib.contextmanager
def _kept_to(cpus: int | None) -> Iterator[None]:
    """Limits this process and its threads to `cpus` of its CPUs."""
    before = host_limits.allowed_cpus()
    if cpus is not None:
        os.sched_setaffinity(0, before[:cpus])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
