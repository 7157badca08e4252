# SPDX-License-Identifier: Apache-2.0
"""Evaluates the logs of the fault campaign's ranks: every sample of every epoch was delivered once, with the right
bytes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Line = dict[str, Any]  # of a rank's log: see campaign_rank.py
Truth = Mapping[int, Mapping[int, str]]  # epoch -> sample -> digest
Event = tuple[float, int, str]  # time, rank, event

_MOST_SHOWN = 10


def complaints(logs: Sequence[Iterable[Line]], truth: Truth) -> list[str]:
    """Returns all errors: wrong samples, lost ones and repeated ones; empty if there are none."""
    found = []
    delivered: dict[int, Counter[int]] = {epoch: Counter() for epoch in truth}
    for rank, lines in enumerate(logs):
        steps: dict[int, tuple[int, list[list[Any]]]] = {}
        for line in lines:
            if "samples" not in line:
                continue
            step, batch = line["step"], (line["epoch"], line["samples"])
            if steps.setdefault(step, batch) != batch:
                found.append(f"rank {rank}, step {step}: done again, it is another batch")
            found += [f"rank {rank}, step {step}: {wrong}" for wrong in _wrong_samples(*batch, truth)]
        if sorted(steps) != list(range(1, len(steps) + 1)):
            found.append(f"rank {rank} has left out steps")
        for epoch, samples in steps.values():  # each step once, the last time that it was done
            delivered.setdefault(epoch, Counter()).update(sample for sample, _ in samples)
    for epoch, counts in delivered.items():
        lost = sorted(set(truth.get(epoch, {})) - set(counts))
        twice = sorted(sample for sample, count in counts.items() if count > 1)
        if lost:
            found.append(f"epoch {epoch}: lost are samples {lost[:_MOST_SHOWN]}, {len(lost)} in all")
        if twice:
            found.append(f"epoch {epoch}: samples {twice[:_MOST_SHOWN]} came more than once, {len(twice)} in all")
    return found


def _wrong_samples(epoch: int, samples: list[list[Any]], truth: Truth) -> list[str]:
    expected = truth.get(epoch, {})
    return [
        f"sample {sample} of epoch {epoch} is wrong" for sample, digest in samples if expected.get(sample) != digest
    ]


def recovery_times(logs: Sequence[Iterable[Line]], events: Iterable[Event]) -> dict[str, list[float]]:
    """Returns for each kind of event the seconds from it to the next batch of its rank, or to the end of its epoch,
    sorted.

    If a kill or an error follows a fault before any batch, only that event counts (kinds in brackets). Events while the
    rank waits for the others, between two epochs, are omitted.
    """
    times: dict[str, list[float]] = {}
    in_order = sorted(events)
    for rank, lines in enumerate(logs):
        delivered, waits = _delivered(lines)
        own = [(when, kind) for when, of_rank, kind in in_order if of_rank == rank]
        ends = [when for when, kind in own if kind.startswith("(")]
        for when, kind in own:
            at = bisect_right(delivered, when)
            if at == len(delivered) or any(begin <= when < end for begin, end in waits):
                continue
            is_undone = any(when < end < delivered[at] for end in ends)
            if kind.startswith("(") or not is_undone:
                times.setdefault(kind, []).append(delivered[at] - when)
    return {kind: sorted(seconds) for kind, seconds in sorted(times.items())}


def _delivered(lines: Iterable[Line]) -> tuple[list[float], list[tuple[float, float]]]:
    """When there were batches, or no more in an epoch; and the times between an epoch and the next."""
    delivered, waits = [], []
    ended = None
    for line in lines:
        if "samples" in line or "ended" in line:
            delivered.append(line["t"])
        if "ended" in line:
            ended = line["t"]
        if "began" in line and ended is not None:
            waits.append((ended, line["t"]))
            ended = None
    return delivered, waits + ([(ended, math.inf)] if ended is not None else [])


def table(times: Mapping[str, Sequence[float]]) -> str:
    """Describes the number, the median, the slowest percent and the maximum in words."""
    rows = [f"{'':18}{'count':>7}{'median':>9}{'99 %':>9}{'longest':>9}   seconds from it to the rank's next sample"]
    for kind, seconds in times.items():
        middle, late = seconds[len(seconds) // 2], seconds[min(len(seconds) - 1, len(seconds) * 99 // 100)]
        rows.append(f"{kind:18}{len(seconds):7}{middle:9.3f}{late:9.3f}{seconds[-1]:9.3f}")
    return "\n".join(rows)
