# SPDX-License-Identifier: Apache-2.0
"""The kinds of events that the probe records. What ``a`` and ``b`` hold is said beside each; times are nanoseconds."""

from __future__ import annotations

from typing import Any, NamedTuple

# Of the process that runs the training loop. "loader" is a number that the process gave to a loader.
ITER = 1  # iter(loader): a = loader, b = its epochs before
WAIT = 2  # next(iterator): a = loader, b = number of the batch's task, or NO_TASK; CPU of the thread
STEP = 3  # from one next() to the following: a = loader, b = how many steps this one stands for
LAST = 4  # the next() that ended an epoch: a = loader, b = how many steps before it passed without an event
UNPICKLE = 5  # a batch out of a worker's message, inside the WAIT around it: a = bytes
CALLS = 6  # .item() and .tolist() during a step that was watched: a = calls, b = time in them; lasts the step
PASS = 8  # follows an ITER: a = loader, b = which iter() of its process this was, from 1 on
LOOK = 7  # at the counters of Feedline's engine
COPY = 9  # a copy of the process was made, for experiments
# Of workers, or of the same process without them.
READY = 10  # a worker's start: from its first statement to the wait for a task; a = process of the loop;
# b = worker + WORKERS * which iter() of that process started it, 0: not known
WORK = 11  # one task of a worker, from its arrival to the hand-over: a = number of the task, b = its longest sample
# Follows a WORK: a = tasks that passed unseen before it, or after it where they were the last; lasts as long as if each
# had taken what that one took, as does its CPU.
UNSEEN_WORK = 31
LATE_WORK = 28  # as WORK, of a task that took much longer than others while some pass unseen: it stands for itself
# samples and collation of a batch: a = samples, b = its longest sample (0: not looked at); late ones are kept where
# there are no workers
FETCH = 13
DETAILED_FETCH = 14  # those of them whose samples were timed
SAMPLE = 15  # one sample: a = its index where that is a number; kept where it is slow beside others
DECODE = 16  # an image out of a file's bytes
TRANSFORM = 17  # a Compose, without what was decoded inside
COLLATE = 18  # a = samples
PICKLE = 19  # the batch of a WORK into a worker's message: a = bytes
# Likewise, of a late task; or of an unseen one while a batch that is seen waited for its turn, or was on its way.
PICKLE_BESIDE = 29
NESTED_POOL = 20  # the making of a pool of processes or threads inside a worker: a = its size
GATHER = 21  # the rows of a batch out of arrays: a = rows; lasts its FETCH
# Of steps that were watched. The flags of a copy: PINNED, ASKED and OTHER_STREAM.
# Copies from host memory to a device, those of the same flags: a = bytes, b = flags + 256 * copies; time in the calls.
COPIES = 24
# Of such copies, once the device has made them: a = ns on its stream, b = flags + 256 * copies. Of WHOLE_STEP, steps in
# the place of copies, from where the stream came to their begin to where it came to their end.
DEVICE_TIMES = 25
DEVICE_COST = 26  # what watching them cost: a = ns
# Of the process of the loop, in whichever thread.
PIN = 27  # a batch into page-locked memory, by the loader
# Of any.
STARTED = 12  # the probe was loaded into the process, or its first loop begun: a = ns of CPU, b = ns
SPENT = 22  # CPU of the hooks of batches and steps since the one before: a = ns; CPU: what an event costs by now
HEARD = 23  # opens of files that the probe was told of: a = how many
COST = 30  # measured when the first event came: a = ns of CPU per event, b = per call that is only counted
FIRST_TRANSFORM = 32  # and the following: single transforms of a Compose, named in the process's .names file
TRANSFORMS = 14
# Full collections of garbage in the process of the loop, told as epochs begin and end: a = how many since it began. Of
# b = 1, one fell into the WAIT that begins with it.
COLLECTIONS = FIRST_TRANSFORM + TRANSFORMS
# Comes before a STEP that stands for several: a = loader; CPU of those that passed unseen and of the waits there.
UNSEEN_CYCLES = COLLECTIONS + 1

PINNED, ASKED, OTHER_STREAM = 1, 2, 4  # page-locked; non_blocking=True; on another stream than the device's default one
WHOLE_STEP = 8  # of DEVICE_TIMES alone

_OF_TASKS = (WORK, UNSEEN_WORK, LATE_WORK, PICKLE, PICKLE_BESIDE)
_INSIDE = (*_OF_TASKS, DETAILED_FETCH, SAMPLE, DECODE, TRANSFORM, COLLATE, UNPICKLE, NESTED_POOL)
_AROUND = (ITER, WAIT, STEP, LAST, UNSEEN_CYCLES, FETCH, GATHER, CALLS, PASS, LOOK, COPIES, DEVICE_TIMES, COLLECTIONS)
TIMED = (*_AROUND, *_INSIDE, *range(FIRST_TRANSFORM, FIRST_TRANSFORM + TRANSFORMS))  # whose cost is in SPENT

LOOPS = "loops"  # a file in the session's folder, made when the first loop of any process begins

NO_TASK = 2**64 - 1
WORKERS = 2**16


class Event(NamedTuple):
    """One of ``_engine.read_events()["events"]``."""

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
    """All events of a kind that a process recorded."""

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
