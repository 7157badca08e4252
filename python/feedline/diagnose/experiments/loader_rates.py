# SPDX-License-Identifier: Apache-2.0
"""Measures a loader in a copy of the script's process: batches per second with other settings or cold files."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from feedline import _engine
from feedline.diagnose.experiments import cold_files
from feedline.profiler.intervals import interval, rate_interval
from feedline.profiler.isolated import NotTried
from feedline.profiler.probe.opened_files import OpenedFiles, open_for_reading
from feedline.profiler.summary.figures import DROP_IN

_ROUNDS = 3
_FEWEST_ROUNDS = 4  # number of workers: two blocks of two
_MOST_STARTS = 5
_MOST_SAMPLES = 2048
_FEWEST_SAMPLES = 8
_STILL_CACHED = 0.5


def loader_like(loader: Any, workers: int, dataset: Any = None, kind: Any = None, **others: Any) -> Any:
    """Returns a torch loader over the same samples in the same kind of order, or over all samples of `dataset` in
    sequence.

    `kind`: another loader class with the same arguments.
    """
    from torch.utils.data import DataLoader

    options: dict[str, Any] = {
        "num_workers": workers,
        "collate_fn": loader.collate_fn,
        "worker_init_fn": loader.worker_init_fn,
    }
    if workers > 0:
        options["multiprocessing_context"] = loader.multiprocessing_context
        options["prefetch_factor"] = loader.prefetch_factor or 2
        options["persistent_workers"] = True
    if dataset is not None:
        options["batch_size"] = loader.batch_size
    elif getattr(loader, "_dataset_kind", 0) != 0:
        options |= {"batch_size": loader.batch_size, "drop_last": loader.drop_last}
    elif loader.batch_sampler is not None:
        options["batch_sampler"] = loader.batch_sampler
    else:
        options |= {"batch_size": None, "sampler": loader.sampler}
    return (kind or DataLoader)(loader.dataset if dataset is None else dataset, **{**options, **others})


def rate(loader: Any, workers: int, seconds: float, step_s: float = 0.0) -> dict[str, Any]:
    """Measures batches per second after all workers have started. `step_s`: time to sleep after each batch, to simulate
    the training step.

    Workers that start together finish batches together, and the cost of starting an epoch is shared by all its batches.
    Therefore a measurement counts whole rounds of workers, and whole epochs if they fit into twice the time.
    """
    times: list[tuple[float, float]] = []
    epoch, together = _length(loader), max(workers, 1)
    until = time.perf_counter() + seconds
    for position, _ in _endless(loader):
        now = time.perf_counter()
        if position == 0 and times:
            epoch = epoch or len(times)
        times.append((now, 1.0))
        counted = len(times) - 1 - workers
        if counted == 0:  # receives the first batch of each worker, so that all workers have started
            until = max(until, now + seconds / 2)
        enough = counted >= _FEWEST_ROUNDS * together or now > until + seconds  # fewer batches yield no interval
        if counted >= 3 and now > until and enough:
            left = -counted % epoch if epoch else counted
            soon = now + left * (now - times[workers][0]) / counted < until + seconds
            if left == 0 or (counted % together == 0 and not (epoch and soon)):
                break
        if step_s > 0:
            time.sleep(step_s)
    steady = times[workers:]
    mean, low, high = rate_interval(steady, workers)
    return {"workers": workers, "batches_per_s": mean, "low": low, "high": high, "batches": len(steady) - 1}


def prefetching(loader: Any, workers: int, factor: int, seconds: float, step_s: float) -> dict[str, Any]:
    """Alternates between the current `prefetch_factor` and `factor`, in a loop that spends time on every batch."""
    present = loader.prefetch_factor or 2
    both = [loader_like(loader, workers, prefetch_factor=number) for number in (present, factor)]
    each = seconds / _ROUNDS / 2

    def rate_of(one: Any) -> float:
        return float(rate(one, workers, each, step_s)["batches_per_s"])

    rates = alternating([functools.partial(rate_of, one) for one in both])
    return comparison(f"prefetch_factor={factor}", "steps/s", rates)


def drop_in(loader: Any, workers: int, seconds: float) -> dict[str, Any]:
    """Alternates between torch's loader and Feedline's, with the same arguments."""
    from feedline.torch_loader.data_loader import DataLoader

    both = [loader_like(loader, workers), loader_like(loader, workers, kind=DataLoader)]
    each = seconds / _ROUNDS / 2

    def rate_of(one: Any) -> float:
        return float(rate(one, workers, each)["batches_per_s"])

    return comparison(DROP_IN, "batches/s", alternating([functools.partial(rate_of, one) for one in both]))


def persisting(loader: Any, workers: int, until: float) -> dict[str, Any]:
    """Compares newly started with persistent workers: ms from iter() to an epoch's first batch."""

    def first_batch_ms(one: Any) -> float:
        begin = time.perf_counter()
        iterator = iter(one)
        next(iterator)
        took = time.perf_counter() - begin
        for _ in iterator:  # otherwise the start of the next epoch would wait for the rest of this epoch
            pass
        return 1000 * took

    few = _first_samples(loader, workers)
    fresh, kept = loader_like(loader, workers, few, persistent_workers=False), loader_like(loader, workers, few)
    first_batch_ms(kept)  # starts its workers
    times: list[list[float]] = [[], []]
    while len(times[0]) < _MOST_STARTS and (len(times[0]) < 2 or time.monotonic() < until):
        times[0].append(first_batch_ms(fresh))
        times[1].append(first_batch_ms(kept))
    return comparison("persistent_workers=True", "ms until an epoch's first batch", times)


def _first_samples(loader: Any, batches: int) -> Any:
    from torch.utils.data import Subset

    if getattr(loader, "_dataset_kind", 0) != 0 or loader.batch_size is None:
        raise NotTried("samples of a stream cannot be read again one by one")
    return Subset(loader.dataset, range(min(len(loader.dataset), max(batches, 1) * loader.batch_size)))


def cold_and_warm(loader: Any, workers: int, opened: OpenedFiles, seconds: float) -> dict[str, Any]:
    """Alternates between reading the same samples with their files outside and inside the page cache."""
    from torch.utils.data import Subset

    if getattr(loader, "_dataset_kind", 0) != 0 or loader.batch_size is None:
        raise NotTried("samples of a stream cannot be read again one by one")
    indices, paths = _samples_and_files(loader, opened, seconds / 4)
    files = [f for f in _engine.look_at_files(paths) if f["device"] and not f["unwritten_bytes"]]
    if not files:
        raise NotTried("no file on a local disk was opened while samples were read")
    workers = max(min(workers, len(indices) // max(loader.batch_size, 1)), 1)
    batches = loader_like(loader, workers, Subset(loader.dataset, indices), drop_last=False)
    _pass(batches)  # starts workers, which build their cached copies of the dataset
    times: list[list[float]] = [[], []]
    until = time.monotonic() + 0.75 * seconds
    for _ in range(_ROUNDS):
        _drop(files)
        for one in times:  # the second pass reads the data cached by the first
            one.append(_pass(batches))
        if time.monotonic() > until:
            break
    found = comparison("files in the page cache", "batches/s", times)
    return {**found, "files": len(files), "file_bytes": sum(f["bytes"] for f in files)}


def _samples_and_files(loader: Any, opened: OpenedFiles, seconds: float) -> tuple[list[int], list[str]]:
    """Returns the samples that one process reads in `seconds`, and the files that it opens or already has open."""
    until = time.monotonic() + seconds
    count = len(loader.dataset)
    chosen = random.Random(0).sample(range(count), min(count, _MOST_SAMPLES))
    read = 0
    paths: set[str] = set()
    opened.collected = paths
    try:
        for index in chosen:
            loader.dataset[index]
            read += 1
            if time.monotonic() > until and read >= _FEWEST_SAMPLES:
                break
    finally:
        opened.collected = None
    paths |= open_for_reading()
    return chosen[:read], sorted(paths)


def _drop(files: Sequence[dict[str, Any]]) -> None:
    """Evicts the files from the page cache. The kernel does not evict pages that a process has mapped or written to."""
    if sum(facts["bytes"] for facts in files) > cold_files.MOST_BYTES:
        raise NotTried("the files read in a few seconds are larger than 1 GiB and were left in the page cache")
    for facts in files:
        cold_files.drop(facts["path"])
    now = _engine.look_at_files([facts["path"] for facts in files])
    kept = sum(f["cached_bytes"] or 0 for f in now)
    if kept > _STILL_CACHED * sum(f["bytes"] for f in now):
        raise NotTried("the files stayed in the page cache because other processes have mapped them")


def _pass(loader: Any) -> float:
    """Measures the batches per second over one epoch."""
    begin = time.perf_counter()
    count = sum(1 for _ in loader)
    return count / max(time.perf_counter() - begin, 1e-9)


def alternating(measures: Sequence[Callable[[], float]]) -> list[list[float]]:
    """Returns one value per round for each measurement. The measurements alternate, so that changes in machine load
    affect all of them.
    """
    values: list[list[float]] = [[] for _ in measures]
    for _ in range(_ROUNDS):
        for one, measure in zip(values, measures, strict=True):
            one.append(measure())
    return values


def comparison(change: str, figure: str, values: Sequence[Sequence[float]]) -> dict[str, Any]:
    """`values`: the values without the change, then with the change."""
    (before, before_low, before_high), (after, after_low, after_high) = (interval(one) for one in values)
    ratio, ratio_low, ratio_high = interval([b / max(a, 1e-9) for a, b in zip(*values, strict=True)])
    return {
        "change": change,
        "figure": figure,
        "before": before,
        "before_low": before_low,
        "before_high": before_high,
        "after": after,
        "after_low": after_low,
        "after_high": after_high,
        "ratio": ratio,
        "ratio_low": ratio_low,
        "ratio_high": ratio_high,
    }


def _length(loader: Any) -> int:
    """Returns the number of batches per epoch, or 0 if unknown."""
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return 0


def _endless(loader: Any) -> Iterator[tuple[int, Any]]:
    """Yields batches endlessly, each with its position in the epoch."""
    while True:
        position = -1
        for position, batch in enumerate(loader):
            yield position, batch
        if position < 0:
            raise NotTried("the loader yields no batches a second time")
