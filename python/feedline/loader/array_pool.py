# SPDX-License-Identifier: Apache-2.0
"""Large arrays whose memory is used again: new memory costs the kernel as much time as filling it."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

_MOST = 4  # unused blocks


class ArrayPool:
    """Provides float32 arrays. Memory returns to the pool when no array or tensor refers to it, as long as the pool has
    users. Thread-safe.
    """

    def __init__(self) -> None:
        self._free: list[Any] = []
        self._users = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Adds a user."""
        with self._lock:
            self._users += 1

    def end(self) -> None:
        """Removes a user. After the last one, unused memory is freed."""
        with self._lock:
            self._users = max(self._users - 1, 0)
            if self._users == 0:
                self._free.clear()

    def __reduce__(self) -> Any:
        return ArrayPool, ()

    def empty(self, shape: Sequence[int]) -> Any:
        """Returns an array whose values are not set."""
        count = math.prod(shape)
        if count == 0:
            return np.empty(shape, np.float32)
        block = self._block(count)
        # Views refer to this array, and not to the block, because the array's memory is that of a memoryview.
        whole = np.frombuffer(memoryview(block), np.float32, count)
        weakref.finalize(whole, self._give_back, block).atexit = False
        return whole.reshape(shape)

    def _block(self, count: int) -> Any:
        while self._free:
            try:
                block = self._free.pop()
            except IndexError:  # another thread took it
                break
            if len(block) >= count:
                return block
        return np.empty(count + count // 4, np.float32)  # the sizes of batches differ; unused memory stays unmapped

    def _give_back(self, block: Any) -> None:
        if self._users > 0 and len(self._free) < _MOST:
            self._free.append(block)
            if self._users == 0:  # end() ran in between; no lock, as the garbage collector may run this inside end()
                self._free.clear()
