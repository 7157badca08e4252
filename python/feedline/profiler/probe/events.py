# SPDX-License-Identifier: Apache-2.0
"""The kinds of events that the probe records, and the meaning of their values ``a`` and ``b``; times are in
nanoseconds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# In the process of the training loop. "loader" is a number that the process assigned to a loader.
ITER = 1  # iter(loader): a = loader, b = its earlier epochs
WAIT = 2  # next(iterator): a = loader, b = number of the batch's task, or NO_TASK; CPU of the thread
STEP = 3  # from one next() to the following: a = loader, b = number of steps that this one represents
LAST = 4  # the next() that ended an epoch: a = loader, b = number of unrecorded steps before it
UNPICKLE = 5  # unpacking a batch from a worker's message, inside the batch's WAIT: a = bytes
CALLS = 6  # .item() and .tolist() during a watched step: a = calls, b = time in them; lasts the step
PASS = 8  # follows an ITER: a = loader, b = number of this iter() in its process, from 1
LOOK = 7  # reading the counters of Feedline's engine
COPY = 9  # copying the process for experiments
# In workers, or in the loop's process if there are none.
READY = 10  # a worker's start: from its first statement to the wait for a task; a = process of the loop;
# b = worker + WORKERS * number of the iter() in that process that started it, 0 if unknown
WORK = 11  # one task of a worker, from receipt to hand-over: a = number of the task, b = its longest sample
# Follows a WORK: a = unrecorded tasks before the WORK, or after it at the end. Duration and CPU are those of the WORK
# times a.
UNSEEN_WORK = 31
LATE_WORK = 28  # as WORK, for a task that took much longer than others while some are not recorded: it represents only
# itself
# samples and collation of a batch: a = samples, b = its longest sample (0: not timed); late ones are retained if there
# are no workers
FETCH = 13
DETAILED_FETCH = 14  # the timed samples among them
SAMPLE = 15  # one sample: a = its index if that is a number; retained if it is slow compared with others
DECODE = 16  # decoding an image from a file's bytes
TRANSFORM = 17  # a Compose, without decoding inside it
COLLATE = 18  # a = samples
PICKLE = 19  # packing the batch of a WORK into a worker's message: a = bytes
# Like the previous kind, for a late task, or for an unrecorded task while a recorded batch was queued or in transit.
PICKLE_BESIDE = 29
NESTED_POOL = 20  # creating a pool of processes or threads inside a worker: a = OF_SAMPLES or OF_COLLATION, if known
GATHER = 21  # gathering the rows of a batch from arrays: a = rows; lasts its FETCH
# In watched steps. The flags of a copy: PINNED, ASKED and OTHER_STREAM. Copies with the same flags from host memory to
# a device: a = bytes, b = flags + 256 * copies; time in the calls.
COPIES = 24
# Completion of such copies on the device: a = ns on its stream, b = flags + 256 * copies. With WHOLE_STEP, b counts
# steps instead of copies, from the stream's time at their start to that at their end.
DEVICE_TIMES = 25
DEVICE_COST = 26  # cost of watching steps: a = ns
# In any thread of the loop's process.
PIN = 27  # the loader page-locks a batch
# In any process.
STARTED = 12  # loading the probe into the process, or starting its first loop: a = ns of CPU, b = ns
SPENT = 22  # CPU of the hooks of batches and steps since the previous one: a = ns; CPU: current cost of an event
HEARD = 23  # opens of files that the probe noticed: a = number
COST = 30  # measured at the first event: a = ns of CPU per event, b = per counted call
FIRST_TRANSFORM = 32  # and higher: single transforms of a Compose, named in the process's .names file
TRANSFORMS = 14
# Full garbage collections in the loop's process, reported when epochs begin and end: a = number since it began. If b =
# 1, one ran in the WAIT that begins with it.
COLLECTIONS = FIRST_TRANSFORM + TRANSFORMS
# Precedes a STEP that represents several: a = loader; CPU of the unrecorded steps and their waits.
UNSEEN_CYCLES = COLLECTIONS + 1

OF_SAMPLES, OF_COLLATION = 1, 1 << 32  # summed in a Total
PINNED, ASKED, OTHER_STREAM = 1, 2, 4  # page-locked; non_blocking=True; on another stream than the device's default one
WHOLE_STEP = 8  # only in DEVICE_TIMES

_OF_TASKS = (WORK, UNSEEN_WORK, LATE_WORK, PICKLE, PICKLE_BESIDE)
_INSIDE = (*_OF_TASKS, DETAILED_FETCH, SAMPLE, DECODE, TRANSFORM, COLLATE, UNPICKLE, NESTED_POOL)
_AROUND = (ITER, WAIT, STEP, LAST, UNSEEN_CYCLES, FETCH, GATHER, CALLS, PASS, LOOK, COPIES, DEVICE_TIMES, COLLECTIONS)
TIMED = (*_AROUND, *_INSIDE, *range(FIRST_TRANSFORM, FIRST_TRANSFORM + TRANSFORMS))  # kinds whose cost is in SPENT

LOOPS = "loops"  # a file in the session's folder, created when the first loop of any process begins

NO_TASK = 2**64 - 1
WORKERS = 2**16


class Event(NamedTuple):
    """An element of ``_engine.read_events()["events"]``."""

    kind: int
    thread: int
    begin_ns: int
    wall_ns: int
    cpu_ns: int
    a: int
    b: int

    @property
    def end_ns(self) -> int:
        return self.begin_ns + self.wall_ns


class Total(NamedTuple):
    """Totals over all events of one kind in one process."""

    times: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    longest_ns: int = 0
    a: int = 0

    def __add__(self, other: object) -> Total:
        if not isinstance(other, Total):
            return NotImplemented
        return Total(
            self.times + other.times,
            self.wall_ns + other.wall_ns,
            self.cpu_ns + other.cpu_ns,
            max(self.longest_ns, other.longest_ns),
            self.a + other.a,
        )


def total_of(raw: dict[str, Any]) -> Total:
    return Total(raw["count"], raw["wall_ns"], raw["cpu_ns"], raw["longest_ns"], raw["a"])
