# SPDX-License-Identifier: Apache-2.0
"""Samples are fetched from a remote store, and the loop waits for its responses."""

from __future__ import annotations

from feedline.diagnose.rules import gains, idle_waits, production, reading, signals
from feedline.diagnose.rules.analysis import Analysis, gain_of_workers
from feedline.diagnose.rules.cause import Cause, Found, Gain, Rule
from feedline.diagnose.rules.fixes import Fix, more_within_reach, with_workers
from feedline.diagnose.rules.idle_waits import ENOUGH_LOOKS, MOSTLY
from feedline.diagnose.rules.shares import NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction, what_if
from feedline.profiler.summary.figures import Store, Summary

__all__ = ["CAUSE", "ENOUGH_LOOKS", "FROM_STORE", "MOSTLY", "NAMED"]

FROM_STORE = Threshold(
    0.5,
    "minimum fraction of the bytes read by Feedline's threads that come from the store rather than from local copies",
)

_NEARER = (
    "move the data closer, such as to a store in the same region or to a disk of this machine (`feedline "
    "stage URL DIR`)"
)
_WORDS = Fix(
    "Prefetch from the store: feedline.open(URL, cache=PATH) requests many samples at a time and stores local "
    'copies, and shuffle="shards" allows long range requests; pack single objects into shards (feedline pack); or '
    f"{_NEARER}.",
    own="Store copies on a local disk with cache=PATH, so that later epochs need no requests; read shards "
    f'sequentially with shuffle="shards", so that requests are long; or {_NEARER}.',
    lowered="Store copies on a local disk: feedline.open(URL, cache=PATH); read shards sequentially with "
    f'shuffle="shards", so that requests are long; or {_NEARER}.',
)


def _evaluate(analysis: Analysis) -> Found | None:
    summary, read = analysis.summary, reading.of(analysis)
    if summary.native:
        store = summary.making.store
        if store is None or not read.is_named or analysis.reading_is_taken or not _brings_samples(store, summary):
            return None
        return reading.found(analysis, read, 0.92, _asked(store), [])
    seen = summary.making.waited_for
    if seen is None or read.outside < NAMED or idle_waits.outside_for(summary) != "store":
        return None
    analysis.outside_is_taken = True
    against: list[str] = []
    gain = None
    best = _workers(summary)
    if best is not None:
        gain, against = gain_of_workers(summary, best)
    evidence = [*production.evidence(analysis), *_each(summary), *idle_waits.sentences(seen)]
    confidence = idle_waits.limit_of(summary, seen.kinds["store"])
    return Found(read.outside, confidence, evidence, against, gain, production.NEEDS)


def _brings_samples(store: Store, summary: Summary) -> bool:
    """Whether samples come from the remote store rather than from copies cached on a disk."""
    batch = summary.loader.get("batch_size")
    samples = summary.making.batches * (batch if isinstance(batch, int) else 1)
    return store.bytes >= FROM_STORE * samples * (summary.host.read_bytes_per_sample or 0.0)


def _asked(store: Store) -> list[str]:
    """Describes the observed requests, latency and bandwidth."""
    each = store.bytes / max(store.requests, 1)
    sentence = f"{store.host} received {store.requests} requests of {each / 1e3:.0f} KB each"
    if store.latency_ms is not None:
        sentence += f"; time to first byte was {store.latency_ms:.1f} ms"
    if store.bytes_per_s is not None:
        sentence += f", and the transfer rate was {store.bytes_per_s / 1e6:.1f} MB/s"
    return [sentence]


def _each(summary: Summary) -> list[str]:
    """Describes how long a sample waits. Requests cannot be counted if their sender is unknown."""
    batch, stages = summary.loader.get("batch_size"), summary.making.stages or {}
    if not isinstance(batch, int) or batch < 1:
        return []
    return [f"a sample waits {summary.making.wall_ms * stages.get('storage', 0.0) / batch:.1f} ms for the remote store"]


def _workers(summary: Summary) -> int | None:
    """Returns None for Feedline's threads: the prefetcher reads for them, so more threads do not send more requests."""
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
        title="samples wait for a remote store",
        means="Objects are fetched over HTTP or an object store's API, and the loop waits for the responses: "
        "too few requests are in flight, requests are too small, or the network is saturated.",
        recognised="For Feedline's loaders, measures requests and responses; for Python code, measures waits in a "
        "library for remote stores (urllib, requests, boto3, fsspec, ...) or for a client program "
        "(curl, aws, gsutil).",
        to_do="Store local copies, send longer and more concurrent requests, or move the data closer.",
        abstains="The stages of a batch were not observed. The finding is uncertain if less than 80 % of the waits "
        "were for the store.",
        example="store.example:443 received 1280 requests of 110 KB each; time to first byte was 50.3 ms, "
        "and the transfer rate was 80.0 MB/s.",
    ),
    rules=(Rule(205, _evaluate),),
    fix=lambda summary: with_workers(_workers(summary), _WORDS(summary)),
    gain=_gain,
    workers=_workers,
    signals=(signals.WORKERS, signals.STAGES),
)
