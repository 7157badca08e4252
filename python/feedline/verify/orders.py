# SPDX-License-Identifier: Apache-2.0
"""Checks that all ranks together receive every sample exactly once."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _engine

_BATCH_SIZE = 64  # forces several batches and a remainder
_SHARD_WINDOW = 4


def is_exact(samples: int, shard_ends: Sequence[int], world_size: int) -> bool:
    """Checks the orders of an epoch: as stored, shuffled, and shuffled by shards, with ``uneven="exact"``."""
    import numpy as np

    for shuffle, window in ((False, 0), (True, 0), (True, _SHARD_WINDOW)):
        times = np.zeros(samples, np.uint8)
        for rank in range(world_size):
            order = _engine.rank_order(
                samples=samples,
                shard_ends=shard_ends if window else [],
                shuffle=shuffle,
                shard_window=window,
                seed=0,
                epoch=0,
                batch_size=_BATCH_SIZE,
                rank=rank,
                world_size=world_size,
            )
            if len(np.unique(order)) != len(order):
                return False
            times[order] += 1
        if not (times == 1).all():
            return False
    return True
