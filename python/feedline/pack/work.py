# SPDX-License-Identifier: Apache-2.0
"""The shards that one call packs: all shards, or a range of the planned shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from .manifest import Part
from .plan import ends_by_bytes, ends_by_samples, in_threads
from .source import Source


@dataclass(frozen=True)
class Work:
    """The work of a call: the samples from position ``first`` up to, but not including, ``end``, written to shards from
    number ``number``.
    """

    number: int
    first: int
    end: int
    ends: list[int] | None  # of each shard, if planned
    part: Part | None


def planned_ends(source: Source, wanted: dict[str, Any], threads: int) -> list[int]:
    if wanted["samples_per_shard"] is not None:
        return ends_by_samples(len(source), wanted["samples_per_shard"])
    if not source.keeps_sizes:
        raise ConfigError(
            "pack: shard_range with shards limited by size requires known sizes, but restart markers change "
            "them; pass "
            "samples_per_shard (--samples-per-shard)"
        )
    indices = (index for _, index in source.order(0, len(source)))
    sizes = in_threads(source.planned_bytes, indices, threads)
    return ends_by_bytes(sizes, wanted["shard_bytes"], source.layout.front())


def work_of(source: Source, wanted: dict[str, Any], shard_range: tuple[int, int], threads: int) -> Work:
    is_pair = isinstance(shard_range, tuple | list) and len(shard_range) == 2
    if not is_pair or not all(hasattr(one, "__index__") for one in shard_range):
        raise ConfigError(f"pack: shard_range must be (first, end), such as (0, 4), not {shard_range!r}")
    first, end = shard_range
    ends = planned_ends(source, wanted, threads)
    if not 0 <= first < end or first >= len(ends):
        raise ConfigError(
            f"pack: shard_range {first}:{end} contains none of the {len(ends)} shards of {wanted['samples']:,} "
            "samples; "
            f"ranges go from 0:1 to {len(ends) - 1}:{len(ends)}"
        )
    begin = ends[first - 1] if first else 0
    last = min(end, len(ends))  # the last worker's range may be smaller
    return Work(first, begin, ends[last - 1], ends[first:last], Part(first, end, len(ends)))
