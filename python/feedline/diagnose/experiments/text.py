# SPDX-License-Identifier: Apache-2.0
"""Formats the results of the experiments as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from feedline.profiler.experiments import Comparison, DatasetCopies, DiskProbe, Experiments
from feedline.profiler.intervals import interval_text, is_known

_FEWEST_BYTES = 10_000_000  # of all workers' copies of the dataset: less is not worth a line


def lines(tried: Experiments, predicted: Mapping[int, float | None], workers: int = 0) -> list[str]:
    """`predicted`: the model's batches per second for each number of workers. `workers`: the current number."""
    found = _ladder(tried, predicted)
    if tried.ceiling is not None:
        top = tried.ceiling
        found.append(
            f"  the loop without waits: at most {top.steps_per_s:.1f} steps/s  {interval_text(top.low, top.high)}"
        )
    if tried.comparisons or tried.not_tried:
        found.append("  changes tried, alternating with the current settings (95 % intervals):")
    found += [f"    {_comparison(one)}" for one in tried.comparisons]
    found += [f"    {one['change']}: not tried: {one['why']}" for one in tried.not_tried]
    found += [] if tried.disk is None else [_disk(tried.disk)]
    return found + ([] if tried.dataset is None else _dataset(tried.dataset, workers))


def _ladder(tried: Experiments, predicted: Mapping[int, float | None]) -> list[str]:
    if not tried.rungs:
        return [f"  worker counts were not measured: {tried.refused}"]
    found = ["  measured, loader only, by number of workers (batches/s, 95 % interval, the model's prediction)"]
    if tried.cold:
        found.append("  with files evicted from the page cache, as in the run")
    if tried.warm_because is not None:
        found.append(f"  from the page cache rather than from disk as in the run: {tried.warm_because}")
    intervals = [interval_text(rung.low, rung.high) for rung in tried.rungs]
    width = max(map(len, intervals))
    for rung, interval in zip(tried.rungs, intervals, strict=True):
        conclusion = f"   {rung.comparison}" if rung.comparison else ""
        model = predicted.get(rung.workers)
        found.append(
            f"    {rung.workers:>3}  {rung.batches_per_s:8.1f}  {interval:<{width}}"
            f"  {'' if model is None else format(model, '.1f'):>8}{conclusion}"
        )
    return found


def _comparison(one: Comparison) -> str:
    values = f"{one.change}: {one.before:.1f} → {one.after:.1f} {one.figure}"
    if not is_known(one.ratio_low, one.ratio_high):
        return f"{values}   measured too imprecisely"
    own = "" if one.own_ms is None else f", and takes {one.own_ms:.1f} ms itself"
    gains = "" if one.kept else "   no gain shown"
    return f"{values}, {one.ratio:.2f} times {interval_text(one.ratio_low, one.ratio_high, 2)}{own}{gains}"


def _disk(disk: DiskProbe) -> str:
    if disk.bytes_per_s is None or disk.latency_ms is None:
        return f"  the disk was not probed: {disk.refused}"
    return (
        f"  disk {disk.device}, bypassing the page cache: {(disk.bytes_per_s or 0) / 1e6:.1f} MB/s "
        f"[{(disk.bytes_per_s_low or 0) / 1e6:.1f}, {(disk.bytes_per_s_high or 0) / 1e6:.1f}], latency of a small read "
        f"{disk.latency_ms:.2f} ms [{disk.latency_ms_low or 0:.2f}, {disk.latency_ms_high or 0:.2f}]"
    )


def _dataset(copies: DatasetCopies, workers: int) -> list[str]:
    total = max(workers, 1) * copies.bytes
    if total < _FEWEST_BYTES:
        return []
    least = "" if copies.whole else "at least "
    all_of_them = f", {least}{total / 1e6:.0f} MB for {workers} workers" if workers > 1 else ""
    return [
        f"  each worker copies the dataset's Python objects while it reads them: {least}{copies.bytes / 1e6:.0f} MB"
        f"{all_of_them}; workers would share one array or tensor"
    ]
