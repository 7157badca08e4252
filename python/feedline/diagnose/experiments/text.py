# SPDX-License-Identifier: Apache-2.0
"""Formats the results of the experiments as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from feedline.profiler.experiments import Comparison, DiskProbe, Experiments
from feedline.profiler.intervals import interval_text, is_known


def lines(tried: Experiments, predicted: Mapping[int, float | None]) -> list[str]:
    """`predicted`: the model's batches per second by number of workers."""
    found = _ladder(tried, predicted)
    if tried.ceiling is not None:
        top = tried.ceiling
        found.append(
            f"  the loop without waiting: at most {top.steps_per_s:.1f} steps/s  {interval_text(top.low, top.high)}"
        )
    if tried.comparisons or tried.not_tried:
        found.append("  tried, alternating with the current settings (95 % intervals):")
    found += [f"    {_comparison(one)}" for one in tried.comparisons]
    found += [f"    {one['change']}: not tried: {one['why']}" for one in tried.not_tried]
    return found + ([] if tried.disk is None else [_disk(tried.disk)])


def _ladder(tried: Experiments, predicted: Mapping[int, float | None]) -> list[str]:
    if not tried.rungs:
        return [f"  worker counts were not measured: {tried.refused}"]
    found = ["  measured, loader only, by workers (batches/s, 95 % interval, the model's prediction)"]
    if tried.cold:
        found.append("  with the files evicted from the page cache, as in the run")
    if tried.warm_because is not None:
        found.append(f"  from the page cache rather than from disk as in the run: {tried.warm_because}")
    intervals = [interval_text(rung.low, rung.high) for rung in tried.rungs]
    width = max(map(len, intervals))
    for rung, interval in zip(tried.rungs, intervals, strict=True):
        beside = f"   {rung.beside}" if rung.beside else ""
        model = predicted.get(rung.workers)
        found.append(
            f"    {rung.workers:>3}  {rung.batches_per_s:8.1f}  {interval:<{width}}"
            f"  {'' if model is None else format(model, '.1f'):>8}{beside}"
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
