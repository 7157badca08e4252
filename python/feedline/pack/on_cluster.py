# SPDX-License-Identifier: Apache-2.0
"""Packs ranges of shards as tasks of a cluster, and merges them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ..cluster import ray_tasks
from ..errors import ConfigError
from .destinations import Destination
from .manifest import NAME, Manifest
from .merging import merge_index

_MOST_RANGES = 256  # each reads the sizes of all samples, and has a manifest until they are merged


def ranges(shards: int) -> list[tuple[int, int]]:
    """Divides `shards` into ranges. They depend only on the number of shards, so that another call resumes."""
    count = min(shards, _MOST_RANGES)
    return list(pairwise(shards * number // count for number in range(count + 1)))


def pack_on(
    on: str,
    pack: Callable[..., Any],
    shard_count: Callable[..., int],
    source: Any,
    destination: Destination,
    plan: dict[str, Any],
    others: dict[str, Any],
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> Any:
    """Returns the report of :func:`feedline.packing.pack`.

    `plan`: the arguments that determine the shards. `others`: further arguments of `pack`. `threads`: of each task.
    """
    found = _whole(destination)
    if found is None:
        spans = ranges(shard_count(source, **plan))
        if not spans:
            raise ConfigError("pack: the dataset has no samples")
        shared = (pack, source, destination.shown, {**plan, **others, "num_workers": threads})
        done, already = 0, 0
        tell = progress or (lambda done, total: None)
        tell(0, spans[-1][1])
        for number, report in ray_tasks.run("pack", on, _pack_range, shared, spans, cpus=threads):
            done += spans[number][1] - spans[number][0]
            already += report.shards_found
            tell(done, spans[-1][1])
        merge_index(destination.shown)
    else:
        already = len(found.shards)
    return pack(source, destination.shown, **plan, **others)._replace(shards_found=already)  # reads the manifest


def _whole(destination: Destination) -> Manifest | None:
    if NAME not in destination.names():
        return None
    manifest = Manifest.load(destination, NAME)
    return manifest if manifest is not None and manifest.complete else None


def _pack_range(shared: tuple[Any, ...], span: tuple[int, int]) -> Any:
    pack, source, output, arguments = shared
    return pack(source, output, shard_range=span, **arguments)
