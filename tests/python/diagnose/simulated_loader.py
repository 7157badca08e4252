# SPDX-License-Identifier: Apache-2.0
"""A discrete-event simulation of a training loop over torch's loader, written independently of the model that it tests.

Workers take their tasks in turn, each from its own queue; the loop takes batches in order, gives the next task to the
worker whose turn it is, unpacks, and steps. All processes that want to run share the CPUs evenly.
"""

import heapq
import math
import random
from dataclasses import dataclass
from itertools import count


@dataclass
class Load:
    """Milliseconds of one batch."""

    wait_ms: float  # for storage, in a worker
    cpu_ms: float  # in a worker
    pack_ms: float = 0.0  # CPU, in a worker
    unpack_ms: float = 0.0  # CPU, in the loop
    step_wait_ms: float = 0.0  # of the step, on a device
    step_cpu_ms: float = 0.0
    spread: float = 0.0  # standard deviation of the production time of a batch, relative to its mean
    times: tuple = ()  # instead of `spread`: production times of successive batches, relative to their mean, repeated


class _Machine:
    """Virtual time, in which processes wait or share CPUs."""

    def __init__(self, cpus):
        self.cpus, self.now, self._order = cpus, 0.0, count()
        self._waiting, self._running = [], {}  # (end, order, process); process: work that is left

    def advance(self):
        """Advances to the next end; returns the process."""
        rate = min(1.0, self.cpus / len(self._running)) if self._running else 0.0
        first = min(self._running, key=self._running.get, default=None)
        ends = self.now + self._running[first] / rate if first is not None else math.inf
        if self._waiting and self._waiting[0][0] <= ends:
            until, _, process = heapq.heappop(self._waiting)
        else:
            until, process = ends, first
        for running in self._running:
            self._running[running] -= (until - self.now) * rate
        self.now = until
        self._running.pop(process, None)
        return process

    def wait(self, process, ms):
        heapq.heappush(self._waiting, (self.now + ms, next(self._order), process))

    def run(self, process, ms):
        self._running[process] = ms


def batches_per_s(load, workers, prefetch=2, cpus=4, batches=400, seed=0):
    """Returns the rate of the second half of this many batches."""
    draw = random.Random(seed)
    machine = _Machine(cpus)
    sigma = math.sqrt(math.log(1 + load.spread**2))

    def stretched():
        return draw.lognormvariate(-(sigma**2) / 2, sigma) if sigma else 1.0

    def phases(name):
        """Endless: yields (kind, ms) and receives nothing."""
        for turn in count():
            times = stretched() if not load.times or name != "loop" else load.times[turn % len(load.times)]
            if name == "loop":
                if workers == 0:
                    yield "wait", load.wait_ms * times
                    yield "run", load.cpu_ms * times
                else:
                    yield "take", 0
                    yield "run", load.unpack_ms
                yield "run", load.step_cpu_ms
                yield "wait", load.step_wait_ms
                yield "stepped", 0
            else:
                yield "task", 0
                if load.times:
                    times = load.times[tasks[name][0] % len(load.times)]
                yield "wait", load.wait_ms * times
                yield "run", (load.cpu_ms + load.pack_ms) * times
                yield "made", 0

    programs = {name: phases(name) for name in ["loop", *range(workers)]}
    tasks = {worker: [] for worker in range(workers)}
    given, made, taken, half = count(), set(), 0, None
    blocked, ends = {}, []

    def give():
        number = next(given)
        tasks[number % workers].append(number)
        if number % workers in blocked:
            del blocked[number % workers]
            step(number % workers)

    def step(process):
        """Resumes a process until it waits, runs or blocks."""
        nonlocal taken
        while True:
            kind, ms = blocked.pop(process, None) or next(programs[process])
            if kind in ("wait", "run"):
                if ms > 0:
                    (machine.wait if kind == "wait" else machine.run)(process, ms)
                    return
            elif kind == "task" and not tasks[process]:
                blocked[process] = (kind, ms)
                return
            elif kind == "made":
                made.add(tasks[process].pop(0))
                if blocked.get("loop"):
                    step("loop")
            elif kind == "take":
                if taken not in made:
                    blocked["loop"] = (kind, ms)
                    return
                made.discard(taken)
                taken += 1
                give()
            elif kind == "stepped":
                ends.append(machine.now)

    for worker in range(workers):
        blocked[worker] = ("task", 0)
    for _ in range(workers * prefetch):
        give()
    step("loop")
    while len(ends) < batches:
        step(machine.advance())
    half = len(ends) // 2
    return 1000 * (len(ends) - half) / (ends[-1] - ends[half - 1])
