# SPDX-License-Identifier: Apache-2.0
"""Which shards one call packs: all of them, or a range of those that the sizes plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from .manifest import Part
from .plan import ends_by_bytes, ends_by_samples, in_threads
from .source import Source


@dataclass(frozen=True)
class Work:
    """What a call packs: from ``number``, the first shard, and ``first``, its first position, to before ``end``."""

    number: int
    first: int
    end: int
    ends: list[int] | None  # of each shard, where they are planned
    part: Part | None


def planned_ends(source: Source, wanted: dict[str, Any], threads: int) -> list[int]:
    if wanted["samples_per_shard"] is not None:
        return ends_by_samples(len(source), wanted["samples_per_shard"])
    if not source.keeps_sizes:
        raise ConfigError(
            "pack: a range of shards by size takes sizes that are known before, and restart markers change them; give "
            "samples_per_shard (--samples-per-shard)"
        )
    indices = (index for _, index in source.order(0, len(source)))
    sizes = in_threads(source.planned_bytes, indices, threads)
    return ends_by_bytes(sizes, wanted["shard_bytes"], source.layout.front())


def work_of(source: Source, wanted: dict[str, Any], shard_range: tuple[int, int], threads: int) -> Work:
    first, end = shard_range
    ends = planned_ends(source, wanted, threads)
    if not 0 <= first < end or first >= len(ends):
        raise ConfigError(
            f"pack: shard_range {first}:{end} has none of the {len(ends)} shards of {wanted['samples']:,} samples; "
            f"ranges go from 0:1 to {len(ends) - 1}:{len(ends)}"
        )
    begin = ends[first - 1] if first else 0
    last = min(end, len(ends))  # the last worker's share may be the smaller one
    return Work(first, begin, ends[last - 1], ends[first:last], Part(first, end, len(ends)))
