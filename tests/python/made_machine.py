# SPDX-License-Identifier: Apache-2.0
"""A machine whose speeds follow a formula, for the search of `feedline tune`: simulated timings with their own
clock.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from feedline.tune.search import Lost, Refused, SearchResult, Visit, search_settings
from feedline.tune.settings import SOURCE, TORCH, Limits, Setting

OWN = Setting(TORCH, 2, 2, batch_size=16)
LIMITS = Limits(cpus=4, memory=10**9, most_workers=32)


class Machine:
    """Measures by a formula, with noise and drift, with its own clock."""

    def __init__(
        self,
        rate: Callable[[Setting], float],
        noise: float = 0.0,
        seed: int = 0,
        border: Callable[[Setting], float] = lambda s: 0.0,
        batch_bytes: int = 1000,
        epoch: int | None = 100,
        most_visits: int = 10**6,
    ) -> None:
        self.rate, self.noise, self.border, self.batch_bytes = rate, noise, border, batch_bytes
        self.epoch, self.most_visits = epoch, most_visits
        self.random = random.Random(seed)
        self.now = 0.0
        self.seen: list[Setting] = []

    def clock(self) -> float:
        return self.now

    def visit(self, setting: Setting, seconds: float) -> Visit:
        self.seen.append(setting)
        if len(self.seen) > self.most_visits:
            raise Lost("the copy has died")
        rate = self.rate(setting)
        if rate <= 0:
            raise Refused("it does not run")
        weather = math.exp(self.random.gauss(0, self.noise))
        self.now += max(seconds, 3 / rate)
        return Visit(alone=rate * weather, rows=setting.batch_size or 1)

    def border_s(self, setting: Setting) -> float:
        self.now += self.border(setting)
        return self.border(setting) * math.exp(self.random.gauss(0, self.noise))

    def bytes_ahead(self, setting: Setting) -> int | None:
        if setting.loader == SOURCE:
            return setting.memory_budget
        return setting.batches_ahead() * self.batch_bytes

    def epoch_batches(self) -> int | None:
        return self.epoch


def tune(machine: Machine, base: Setting = OWN, limits: Limits = LIMITS, budget: float = 60.0) -> SearchResult:
    return search_settings(machine, base, limits, budget, machine.clock)


def up_to(most: int) -> Callable[[Setting], float]:
    """Additional workers help up to `most` workers."""
    return lambda setting: 10.0 * max(1, min(setting.num_workers, most))
