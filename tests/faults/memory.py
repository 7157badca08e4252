# SPDX-License-Identifier: Apache-2.0
"""Runs each job with less and less memory: it delivers the right samples or ends with an error, and never hangs."""

from __future__ import annotations

import dataclasses
import re
import time
from collections import Counter
from pathlib import Path

from .children import Children, Ended
from .jobs import Job
from .walk import Walk, begin, judged, reference

# Bytes of address space in addition to that of the process: a thread's stack takes 8 MiB, an arena of malloc 64 MiB.
_LIMITS = [int(1.3**number * 2**14) for number in range(46)]
# CPython waits for ever for a thread that had too little memory to begin, or for its result.
_WAITS = re.compile(
    r'threading.py", line \d+ in wait\n.*(threading.py", line \d+ in start|_base.py", line \d+ in result)\n'
)
_OTHER_THREAD = re.compile("^Thread 0x", re.MULTILINE)
_NO_THREAD_DATA = "cannot allocate memory for thread-local data"  # glibc ends the process
_OF_PYTHON = "hang of CPython"
_MOST_SHOWN = 1200  # characters of an output
_WORDS = ("memory", "thread", "allocate")  # in errors


def starve(
    job: Job, children: Children, source: Path, until: float, found: Walk, ends: Counter[str], stride: int
) -> None:
    expected = reference(job, children, source, found)
    if expected is None:
        return
    for limit in reversed(_LIMITS[::stride]):
        if time.monotonic() > until:
            return
        begin(job, source, children)
        run = children.run(lambda: job.run(source, children.root), memory=limit)
        found.faults += 1
        end = _end(run)
        ends[end] += 1
        if end == _OF_PYTHON:
            run = dataclasses.replace(run, hung=False)
        complaints = list(judged(job, children, source, run, None, expected, found))
        if end.startswith("?"):
            stack = run.output.rpartition("Fatal Python error")[2] or run.output[-_MOST_SHOWN:]
            complaints.append(f"{end}: {stack[:_MOST_SHOWN]}")
        found.complaints += [f"{job.name}, {limit:,} bytes: {one}" for one in complaints]


def _end(run: Ended) -> str:
    """Names the way in which a run ended; "?..." if it does not say that memory is missing."""
    if run.hung:
        is_alone = not _OTHER_THREAD.search(run.output)
        return _OF_PYTHON if is_alone and _WAITS.search(run.output) else "?hangs"
    if run.status == 0:
        return "right samples"
    if run.status in (2, 3):
        return "error" if any(word in run.output.lower() for word in _WORDS) else "?error"
    if "MemoryError" in run.output or "can't start new thread" in run.output:
        return "exception of Python"
    if run.status == 127 and _NO_THREAD_DATA in run.output:
        return "ended by glibc"
    if run.status < 0:
        return f"{'' if run.status in (-6, -9) else '?'}signal {-run.status}"
    return f"?status {run.status}"
