# SPDX-License-Identifier: Apache-2.0
"""Hooks on the pools of threads and processes that workers create."""

from __future__ import annotations

import functools
import os
from typing import Any

from feedline.profiler.probe import events
from feedline.profiler.probe.recorder import Recorder, clock, cpu_clock

_FEW_POOLS = 4  # thread pools: created once and reused, they do not count as nested


def patch_multiprocessing_pool(module: Any, recorder: Recorder) -> None:
    _patch_pool(module.Pool, recorder)


def patch_process_pool(module: Any, recorder: Recorder) -> None:
    _patch_pool(module.ProcessPoolExecutor, recorder)


def patch_thread_pool(module: Any, recorder: Recorder) -> None:
    _patch_pool(module.ThreadPoolExecutor, recorder, _FEW_POOLS)


def _patch_pool(kind: Any, recorder: Recorder, free: int = 0) -> None:
    """`free`: the number of pools that a process may create before any is recorded."""
    original = kind.__init__
    made: dict[int, int] = {}

    @functools.wraps(original)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        begin, cpu_begin = clock(), cpu_clock()
        try:
            original(self, *arguments, **options)
        finally:
            cpu = cpu_clock()
            process = os.getpid()
            made[process] = made.get(process, 0) + 1
            if recorder.in_worker and made[process] > free:
                part = getattr(recorder.local, "part", 0)
                recorder.record(events.NESTED_POOL, begin, cpu - cpu_begin, part)
                recorder.paid(cpu_clock() - cpu)

    kind.__init__ = __init__
