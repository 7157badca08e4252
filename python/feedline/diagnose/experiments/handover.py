# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of passing one of a loader's batches from a worker to the loop, excluding its production.

A worker repeatedly sends copies of one batch: pickling, the pipe, shared-memory descriptors and mapping are the same as
for the loader's own batches. A run without workers does not have this cost.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from feedline.diagnose.experiments import other_workers
from feedline.profiler.isolated import NotTried

_FEWEST, _MOST = 12, 400  # batches
_FIRST = 4  # batches skipped while the worker starts
_MOST_ITEMS = 64  # maximum length of a list in a batch: longer ones contain values rather than tensors
_ENDLESS = 1 << 40
_CLEARLY = 1.2


class _Clocks(NamedTuple):
    """The clocks of a process, in seconds."""

    cpu: float
    delay: float  # runnable time without a CPU, of all its threads
    copying: float = 0.0  # CPU time of work done only by this experiment, on the thread that does it

    @staticmethod
    def now() -> _Clocks:
        delay_ns = 0
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/schedstat") as file:
                delay_ns += int(file.read().split()[1])
        return _Clocks(time.process_time(), delay_ns / 1e9)


class _Copies:
    """A dataset that repeats one batch, and records the worker's clocks.

    `is_copied`: copy the batch into new memory each time, as if a loader had produced it.
    """

    def __init__(self, batch: Any, is_copied: bool, as_collated: bool) -> None:
        self._batch, self._is_copied, self._as_collated = batch, is_copied, as_collated

    def __len__(self) -> int:
        return _ENDLESS

    def __getitem__(self, _index: int) -> tuple[_Clocks, Any]:
        begin = time.thread_time()  # another thread packs the previous batch concurrently
        batch = _copied(self._batch, self._as_collated) if self._is_copied else self._batch
        copying = time.thread_time() - begin
        return _Clocks.now()._replace(copying=copying), batch


def measure(loader: Any, seconds: float) -> dict[str, float]:
    """Measures, in ms per batch, "packing_ms" (CPU time of the worker), "unpacking_ms" (CPU time of the loop's process)
    and "waiting_ms" (the time for which the loop's process waits for the worker). Raises NotTried if the loader passes
    batches differently or has no batches.
    """
    if other_workers.is_feedlines(loader):
        raise NotTried("Feedline passes batches without pickling")
    made = list(itertools.islice(other_workers.with_workers(loader, 0), 2))
    if not made:
        raise NotTried("the loader yields no batches when it is iterated again")
    first, others = made[0], made[1:]
    is_copied = not any(_memory(first) & _memory(other) for other in others)
    return _sent(first, is_copied, loader.collate_fn, loader.prefetch_factor or 2, seconds)


def _sent(batch: Any, is_copied: bool, collate: Any, prefetch: int, seconds: float) -> dict[str, float]:
    from torch.utils.data import DataLoader, default_collate

    copies = DataLoader(
        _Copies(batch, is_copied, collate is default_collate),  # type: ignore[arg-type]
        batch_size=None,
        sampler=range(_ENDLESS),
        num_workers=1,
        collate_fn=_as_it_is,
        prefetch_factor=prefetch,
        multiprocessing_context="fork",  # whatever start method the script uses
    )
    seen: list[tuple[float, _Clocks, _Clocks]] = []  # arrival time of a batch, with the loop's and the worker's clocks
    until = time.perf_counter() + seconds
    for worker, _batch in copies:
        seen.append((time.perf_counter(), _Clocks.now(), worker))
        del _batch
        if len(seen) >= _MOST or (seen[-1][0] > until and len(seen) >= _FEWEST):
            break
    return _of_a_batch(seen[_FIRST:])


def _of_a_batch(seen: Sequence[tuple[float, _Clocks, _Clocks]]) -> dict[str, float]:
    """Returns medians, because outliers occur on a busy machine."""

    def median(of_pair: Callable[..., float]) -> float:
        return 1000 * statistics.median(of_pair(a, b) for a, b in itertools.pairwise(seen))

    unpacking = median(lambda a, b: b[1].cpu - a[1].cpu)
    worker = median(lambda a, b: b[2].cpu - a[2].cpu)
    packing = median(lambda a, b: b[2].cpu - a[2].cpu - b[2].copying)
    cycle = median(lambda a, b: b[0] - a[0] - (b[1].delay - a[1].delay) - (b[2].delay - a[2].delay))
    # Both sides work concurrently, so a cycle takes as long as the slower one. If the cycle is longer than the worker's
    # CPU time, the loop's process is the slower side, and the rest of its time is waiting.
    its = cycle > _CLEARLY * max(worker, unpacking)
    return {
        "packing_ms": max(packing, 0.0),
        "unpacking_ms": unpacking,
        "waiting_ms": cycle - unpacking if its else 0.0,
    }


def _as_it_is(item: Any) -> Any:
    return item


def _memory(value: Any) -> set[int]:
    """Returns the memory addresses of a batch's tensors."""
    import torch

    if isinstance(value, torch.Tensor):
        return {value.data_ptr()} if value.numel() else set()
    items = value.values() if isinstance(value, dict) else value if type(value) in (list, tuple) else ()
    return set().union(*map(_memory, itertools.islice(items, _MOST_ITEMS)))


def _copied(value: Any, as_collated: bool) -> Any:
    """Copies tensors as a collate function would: torch's default_collate uses shared memory, other collate functions
    do not.
    """
    import torch
    from torch.utils.data import default_collate

    if isinstance(value, torch.Tensor):
        return default_collate([value]) if as_collated else value.clone()
    if isinstance(value, dict):
        return {key: _copied(item, as_collated) for key, item in value.items()}
    if type(value) in (list, tuple) and len(value) <= _MOST_ITEMS:
        return type(value)(_copied(item, as_collated) for item in value)
    return value
