# SPDX-License-Identifier: Apache-2.0
"""A cache in the dataset grows in each worker."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, gb, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    script, load = analysis.script, analysis.load
    if script is None or not script.may_have_workers:
        return
    for place in script.growing:
        words = f"{place.at}: {place.what} gets an entry for each sample, and nothing removes entries"
        evidence = [words]
        if load is not None and load.workers and analysis.source is not None and analysis.source.total_bytes:
            workers = load.ranks * load.workers
            most = workers * analysis.source.total_bytes
            evidence.append(f"{workers} workers hold up to {gb(most)} of encoded samples, more if decoded")
        yield Found("warning", tuple(evidence), about=place.about)


CAUSE = Cause(
    page(
        "growing_cache",
        "a cache in the dataset grows in each worker",
        means="Each worker has its own copy of the dataset, so a cache in it is filled once per worker: it is "
        "rarely hit, since samples reach workers in random order, and memory grows until the run is killed. Without "
        "persistent_workers, the cache is also lost after each epoch.",
        recognised="A method of a dataset other than __init__ adds to an attribute that starts as an empty dict, list "
        "or set, and no method removes entries or checks its length; or functools.cache decorates a method.",
        to_do="Use feedline.open(...).cache(), which all workers share, a memory-mapped file, or "
        "functools.lru_cache(maxsize=N) with a small N.",
        example="line 14: self.cache gets an entry for each sample, and nothing removes entries.",
    ),
    priority=SCRIPT + 75,
    evaluate=_evaluate,
)
