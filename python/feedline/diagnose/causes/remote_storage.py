# SPDX-License-Identifier: Apache-2.0
"""Samples come from a store behind a network, and its answers are waited for."""

from __future__ import annotations

from feedline.diagnose.judging import gains, making, reading, signals, waiting
from feedline.diagnose.judging.case import Case, gain_of_workers
from feedline.diagnose.judging.cause import Cause, Found, Gain, Rule
from feedline.diagnose.judging.fixes import Fix, more_within_reach, with_workers
from feedline.diagnose.judging.shares import NAMED
from feedline.diagnose.judging.waiting import ENOUGH_LOOKS, MOSTLY
from feedline.findings import Entry, Threshold
from feedline.watching.model import prediction, what_if
from feedline.watching.summary.figures import Store, Summary

__all__ = ["CAUSE", "ENOUGH_LOOKS", "FROM_STORE", "MOSTLY", "NAMED"]

FROM_STORE = Threshold(0.5, "of what Feedline's threads read: from the store, and the rest from copies near")

_NEARER = (
    "bring the data nearer: a store in the same region, or copies on a disk of this machine (`feedline stage URL DIR`)"
)
_WORDS = Fix(
    "Have the store read ahead of the loop: feedline.open(URL, cache=PATH) asks for many samples at a time and keeps "
    'copies, and shuffle="shards" lets it ask for long pieces; pack single objects into shards (feedline pack); or '
    f"{_NEARER}.",
    own="Keep copies on a disk of this machine with cache=PATH, so that later epochs ask for nothing; read shards in "
    f'pieces with shuffle="shards", so that requests are long; or {_NEARER}.',
    lowered="Keep copies on a disk of this machine: feedline.open(URL, cache=PATH); read shards in pieces with "
    f'shuffle="shards", so that requests are long; or {_NEARER}.',
)


def _books(case: Case) -> Found | None:
    summary, read = case.summary, reading.of(case)
    if summary.native:
        store = summary.making.store
        if store is None or not read.is_named or case.reading_is_taken or not _brings_samples(store, summary):
            return None
        return reading.found(case, read, 0.92, _asked(store), [])
    seen = summary.making.waited_for
    if seen is None or read.outside < NAMED or waiting.outside_for(summary) != "store":
        return None
    case.outside_is_taken = True
    against: list[str] = []
    gain = None
    best = _workers(summary)
    if best is not None:
        gain, against = gain_of_workers(summary, best)
    evidence = [*making.evidence(case), *_each(summary), *waiting.sentences(seen)]
    confidence = waiting.limit_of(summary, seen.kinds["store"])
    return Found(read.outside, confidence, evidence, against, gain, making.NEEDS)


def _brings_samples(store: Store, summary: Summary) -> bool:
    """Not where a disk does, as of copies in a cache: then few bytes come from the store."""
    batch = summary.loader.get("batch_size")
    samples = summary.making.batches * (batch if isinstance(batch, int) else 1)
    return store.bytes >= FROM_STORE * samples * (summary.host.read_bytes_per_sample or 0.0)


def _asked(store: Store) -> list[str]:
    """Requests, latency and bandwidth, as far as they were seen."""
    each = store.bytes / max(store.requests, 1)
    told = f"{store.host} was asked {store.requests} times, for {each / 1e3:.0f} KB each"
    if store.latency_ms is not None:
        told += f"; an answer's first byte came after {store.latency_ms:.1f} ms"
    if store.bytes_per_s is not None:
        told += f", and the rest of it with {store.bytes_per_s / 1e6:.1f} MB/s"
    return [told]


def _each(summary: Summary) -> list[str]:
    """How long a sample waits: by whom it was asked for is not known, so requests cannot be counted."""
    batch, stages = summary.loader.get("batch_size"), summary.making.stages or {}
    if not isinstance(batch, int) or batch < 1:
        return []
    return [f"a sample waits {summary.making.wall_ms * stages.get('storage', 0.0) / batch:.1f} ms for its store"]


def _workers(summary: Summary) -> int | None:
    """Of Feedline's threads none reads by itself: more of them ask for no more."""
    return None if summary.native else more_within_reach(summary)


def _gain(summary: Summary, _share: float) -> Gain:
    if summary.native:
        return gains.without_stages(summary, "storage")
    waits = gains.in_files(summary, 0.0)
    return gains.of_batch(summary, what_if.without(summary, prediction.batch_of(summary), waits, 1.0))


CAUSE = Cause(
    Entry(
        code="remote_storage",
        verb="diagnose",
        title="samples wait for a store behind a network",
        means="Objects are fetched from a store over HTTP or an object store's interface, and the loop waits for its "
        "answers: too few are asked for at a time, each is small, or the network gives no more.",
        recognised="Of Feedline's loaders, the requests that its client made and how they were answered; of Python, "
        "waits inside of a library that asks stores (urllib, requests, boto3, fsspec, ...) or for a program that does "
        "(curl, aws, gsutil).",
        to_do="Keep copies near, ask for longer pieces and more of them at a time, or bring the data nearer.",
        abstains="The stages of a batch were not seen. Never certain where fewer than 80 % of the waits were for it.",
        example="store.example:443 was asked 1280 times, for 110 KB each; an answer's first byte came after 50.3 ms, "
        "and the rest of it with 80.0 MB/s.",
    ),
    rules=(Rule(205, _books),),
    fix=lambda summary: with_workers(_workers(summary), _WORDS(summary)),
    gain=_gain,
    workers=_workers,
    signals=(signals.WORKERS, signals.STAGES),
)
