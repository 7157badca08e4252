# SPDX-License-Identifier: Apache-2.0
"""Measures the part of a dataset that each worker copies: its Python objects, by pickling them without storing the
result.

Arrays and tensors are not counted: forked workers share them, and only their headers are pickled.
"""

from __future__ import annotations

import io
import pickle
import time
from typing import Any

_MOST_S = 2.0
_BUFFERS = 5  # the pickle protocol that keeps large buffers out of the stream


class _TooLong(Exception):
    pass


class _Counter(io.RawIOBase):
    """Counts the bytes written, up to a time limit."""

    def __init__(self, limit_s: float) -> None:
        self.count, self._until = 0, time.monotonic() + limit_s

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.count += len(data)
        if time.monotonic() > self._until:
            raise _TooLong
        return len(data)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind.__module__ == "torch" and kind.__name__ in ("Tensor", "Parameter"):
            return int, ()  # in shared memory
        if callable(value) and getattr(value, "__name__", "") == "<lambda>":
            return int, ()  # forked workers need no pickle
        return NotImplemented


def pickled_size(dataset: Any, limit_s: float = _MOST_S) -> dict[str, Any]:
    """Estimates the memory that each worker copies, by pickling the dataset for at most `limit_s` seconds.

    Returns ``bytes``, a lower bound on this memory; ``whole``, whether everything was pickled in time; and ``why``, the
    reason if the dataset cannot be pickled. ``bytes`` is then None.
    """
    counter = _Counter(limit_s)
    try:
        _Pickler(counter, protocol=_BUFFERS, buffer_callback=lambda buffer: False).dump(dataset)
    except _TooLong:
        return {"bytes": counter.count, "whole": False, "why": None}
    except Exception as error:  # raised by the user's classes
        return {"bytes": None, "whole": False, "why": f"{type(error).__name__}: {error}".splitlines()[0]}
    return {"bytes": counter.count, "whole": True, "why": None}
