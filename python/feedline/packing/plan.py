# SPDX-License-Identifier: Apache-2.0
"""Which samples each shard gets, before one is read: the split that ranges of shards are cut from.

It is the one that packing finds by itself on its way, wherever no sample is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from .shard_file import member_bytes

_NAME_BYTES = 100  # of a header; longer ones take further blocks
_AT_A_TIME = 4096


def ends_by_samples(samples: int, samples_per_shard: int) -> list[int]:
    """Positions behind the last sample of each shard."""
    return [min(begin + samples_per_shard, samples) for begin in range(0, samples, samples_per_shard)]


def ends_by_bytes(sizes: Iterable[int], most: int, front: int) -> list[int]:
    """The same where no shard takes more than `most` bytes, but one with a single sample.

    `sizes`: what each sample's members take, in packed order; `front`: what a shard takes without any.
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
    """:func:`member_bytes`, for millions."""
    if len(name) < _NAME_BYTES and name.isascii():
        return 512 + -(-size // 512) * 512
    return member_bytes(name, size)


def in_threads(call: object, things: Iterable[object], threads: int) -> Iterator[int]:
    """What `call` gives for each, in order, and not too many at a time."""
    iterator = iter(things)
    with ThreadPoolExecutor(threads, "feedline-plan") as pool:
        while chunk := list(islice(iterator, _AT_A_TIME)):
            yield from pool.map(call, chunk)  # type: ignore[arg-type]
