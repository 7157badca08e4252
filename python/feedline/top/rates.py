# SPDX-License-Identifier: Apache-2.0
"""Computes a loader's rates from two readings of its totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from ..loader.statistics import percentile_ms
from .published import Loader, Stage


@dataclass(frozen=True)
class StageRates:
    """Rates of one stage; shares are fractions of the total time of the loader's threads."""

    busy_share: float | None
    items_per_s: float | None
    bytes_per_s: float | None
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True)
class LoaderRates:
    """Rates of one loader between two readings. A rate is None if the loader does not count it, or was idle."""

    over_s: float
    batches_per_s: float | None
    samples_per_s: float | None
    read_bytes_per_s: float | None  # read from storage
    out_bytes_per_s: float | None  # written into batches
    wait_share: float | None  # share of the training loop's time spent in next()
    busy_share: float | None  # shares of the threads' time: working,
    blocked_share: float | None  # blocked because the loader is ahead,
    starved_share: float | None  # waiting for input
    stages: Mapping[str, StageRates] = field(default_factory=dict)


UNKNOWN_STAGE = StageRates(None, None, None, None, None)
UNKNOWN = LoaderRates(0.0, None, None, None, None, None, None, None, None)


def between(earlier: Loader, later: Loader, over_s: float) -> LoaderRates | None:
    """Returns the rates between two readings that are `over_s` seconds apart; None if no time has passed."""
    if over_s <= 0:
        return None
    if later.number != earlier.number:
        return _across_epochs(earlier, later, over_s)
    batches = _batches(earlier, later)
    thread_s = over_s * later.threads if later.threads else None
    pairs = {name: (earlier.stages.get(name), stage) for name, stage in later.stages.items()}
    totals = {
        name: _total_share([_difference(before, now, f"{name}_s") for before, now in pairs.values()], thread_s)
        for name in ("busy", "blocked", "starved")
    }
    return LoaderRates(
        over_s=over_s,
        batches_per_s=batches / over_s,
        samples_per_s=_samples(earlier, later, batches, over_s),
        read_bytes_per_s=_bytes_per_s(pairs.get("storage"), over_s),
        out_bytes_per_s=_bytes_per_s(pairs.get("batch"), over_s),
        wait_share=_wait_share(earlier, later, over_s),
        busy_share=totals["busy"],
        blocked_share=totals["blocked"],
        starved_share=totals["starved"],
        stages={name: _stage(before, now, thread_s, over_s) for name, (before, now) in pairs.items()},
    )


def _across_epochs(earlier: Loader, later: Loader, over_s: float) -> LoaderRates | None:
    """Returns the rates of a torch loader. Such a loader creates an iterator for each epoch, which counts batches and
    waiting time from 0. Batches are counted across epochs, but waiting time only for the later iterator. None if there
    is no batch yet.
    """
    batches = later.batches
    if later.epoch is not None and earlier.epoch is not None and later.batches_per_epoch is not None:
        batches += max((later.epoch - earlier.epoch) * later.batches_per_epoch - earlier.batches, 0.0)
    rates = between(replace(earlier, number=later.number), later, over_s)
    if rates is None or later.batches <= 0:
        return None
    return replace(
        rates,
        batches_per_s=batches / over_s,
        samples_per_s=None if later.samples is None else batches / over_s * later.samples / later.batches,
        wait_share=None if later.wait_s is None else min(later.wait_s / over_s * batches / later.batches, 1.0),
    )


def _batches(earlier: Loader, later: Loader) -> float:
    # a torch loader counts batches per epoch, starting from 0
    return later.batches - earlier.batches if later.batches >= earlier.batches else later.batches


def _samples(earlier: Loader, later: Loader, batches: float, over_s: float) -> float | None:
    if later.samples is None or earlier.samples is None:
        return None
    if later.samples >= earlier.samples and later.batches >= earlier.batches:
        return (later.samples - earlier.samples) / over_s
    return batches / over_s * (later.samples / later.batches) if later.batches else 0.0


def _wait_share(earlier: Loader, later: Loader, over_s: float) -> float | None:
    if later.wait_s is None or earlier.wait_s is None:
        return None
    waited = later.wait_s - earlier.wait_s if later.wait_s >= earlier.wait_s else later.wait_s
    return min(waited / over_s, 1.0)


def _difference(earlier: Stage | None, later: Stage, name: str) -> float:
    before = getattr(earlier, name) if earlier is not None else 0.0
    now: float = getattr(later, name)
    return now - before if now >= before else now  # smaller: the loader has restarted


def _total_share(seconds: list[float], thread_s: float | None) -> float | None:
    return min(sum(seconds) / thread_s, 1.0) if thread_s and seconds else None


def _bytes_per_s(pair: tuple[Stage | None, Stage] | None, over_s: float) -> float | None:
    return None if pair is None else _difference(*pair, "bytes") / over_s


def _stage(earlier: Stage | None, later: Stage, thread_s: float | None, over_s: float) -> StageRates:
    before = earlier.latency_us if earlier is not None else ()
    counts = [max(now - then, 0) for now, then in zip_longest(later.latency_us, before, fillvalue=0)]
    return StageRates(
        busy_share=_total_share([_difference(earlier, later, "busy_s")], thread_s),
        items_per_s=_difference(earlier, later, "items") / over_s,
        bytes_per_s=_difference(earlier, later, "bytes") / over_s,
        p50_ms=percentile_ms(counts, 0.50),
        p99_ms=percentile_ms(counts, 0.99),
    )
