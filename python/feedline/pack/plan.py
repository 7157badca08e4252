# SPDX-License-Identifier: Apache-2.0
"""Plans which samples each shard contains, without reading them; ranges of shards refer to this plan.

If no sample is skipped, packing produces exactly the planned shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from .shard_file import member_bytes

_NAME_BYTES = 100  # longest name in a header; longer ones take further blocks
_AT_A_TIME = 4096


def ends_by_samples(samples: int, samples_per_shard: int) -> list[int]:
    """Returns the position after the last sample of each shard."""
    return [min(begin + samples_per_shard, samples) for begin in range(0, samples, samples_per_shard)]


def ends_by_bytes(sizes: Iterable[int], most: int, front: int) -> list[int]:
    """Returns the position after the last sample of each shard, for shards of at most `most` bytes, except for shards
    with a single sample.

    `sizes` are the sizes of each sample's members, in packed order; `front` is the size of a shard without samples.
    """
    ends: list[int] = []
    now, position = 0, 0
    for position, size in enumerate(sizes, 1):
        if now and now + size > most:
            ends.append(position - 1)
            now = 0
        now = (now or front) + size
    return [*ends, position] if position else []


def quick_member_bytes(name: str, size: int) -> int:
    """Vectorised :func:`member_bytes`."""
    if len(name) < _NAME_BYTES and name.isascii():
        return 512 + -(-size // 512) * 512
    return member_bytes(name, size)


def in_threads(call: object, things: Iterable[object], threads: int) -> Iterator[int]:
    """Yields the results of `call`, in order, with a limited number in flight."""
    iterator = iter(things)
    with ThreadPoolExecutor(threads, "feedline-plan") as pool:
        while chunk := list(islice(iterator, _AT_A_TIME)):
            yield from pool.map(call, chunk)  # type: ignore[arg-type]
