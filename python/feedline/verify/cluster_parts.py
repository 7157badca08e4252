# SPDX-License-Identifier: Apache-2.0
"""Verifies parts as tasks of a cluster. Each task opens the source itself, as engine objects cannot be sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from .. import _engine
from ..cluster import ray_tasks
from ..data.source_spec import SourceSpec
from ..errors import DataError
from .parts import Result, Work, verify_shard, verify_slice

_opened: dict[str, _engine.Dataset] = {}  # the latest source of this worker process, whose folder is slow to list


class Cluster(NamedTuple):
    """Where parts are verified, and the settings of :class:`Work`."""

    on: str
    spec: SourceSpec
    shown: str
    cache: dict[str, Any]
    decode: bool
    threads: int  # of each task

    def shards(self, numbers: Sequence[int], items: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Result]]:
        """Yields the number and result of shards; an item is (name, stamp, wanted)."""
        return self._run(_verify_shard, numbers, items)

    def slices(self, numbers: Sequence[int], items: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Result]]:
        """Yields the number and result of parts of a folder; an item is (indices, stamp)."""
        return self._run(_verify_slice, numbers, items)

    def _run(
        self, call: Callable[[Any, Any], Result], numbers: Sequence[int], items: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        for number, result in ray_tasks.run("verify", self.on, call, self, items, cpus=self.threads):
            yield numbers[number], result

    def work(self, pool: ThreadPoolExecutor) -> Work:
        return Work(self.spec, self.shown, self.cache, self.decode, pool)


def _verify_shard(settings: Cluster, item: tuple[Any, ...]) -> Result:
    name, stamp, wanted = item
    stored = _engine.StoredSource(settings.spec.source).shards().object(name)
    if [stored.size, stored.stamp] != stamp:
        raise _differs(os.fsdecode(name))
    with ThreadPoolExecutor(settings.threads, "feedline-verify") as pool:
        return verify_shard(settings.work(pool), name, stored, stamp, wanted)


def _verify_slice(settings: Cluster, item: tuple[Any, ...]) -> Result:
    indices, stamp = item
    key = repr((settings, os.getcwd()))
    if key not in _opened:
        _opened.clear()
        _opened[key] = settings.spec.open(**settings.cache, listing_age=0)
    dataset = _opened[key]
    if [dataset.fingerprint, len(dataset)] != stamp:
        raise _differs(settings.shown)
    with ThreadPoolExecutor(settings.threads, "feedline-verify") as pool:
        return verify_slice(settings.work(pool), dataset, f"{indices.start}:{indices.stop}", indices, stamp)


def _differs(name: str) -> DataError:
    return DataError(
        f"verify: {name} on the node {os.uname().nodename} differs from the one on the machine of the command; "
        "all nodes need the same files"
    )
