# SPDX-License-Identifier: Apache-2.0
"""`feedline.shared`: a list stored as bytes in one array, so that workers read it without copying memory."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ...errors import ConfigError

_SURROGATES = "surrogateescape"  # supports non-UTF-8 paths, as returned by os.fsdecode


class SharedList(Sequence[Any]):
    """A sequence that behaves like a tuple of `values`. Reading an element creates a new object and does not write to
    shared memory.

    In a list of strings, each string is an object with a reference count. Reading a string in a forked worker changes
    the count, which copies the memory page, so the worker eventually copies all pages. This class uses only two arrays:
    the bytes, and the int64 offset of each element.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        """See :func:`shared`."""
        values = list(values)
        kinds = set(map(type, values))
        self._kind = "text" if kinds == {str} else "bytes" if kinds == {bytes} else "pickle"
        encoded = list(map(self._encode, values))
        del values
        self._starts = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(one) for one in encoded], out=self._starts[1:])
        self._bytes: npt.NDArray[np.uint8] = np.frombuffer(b"".join(encoded), dtype=np.uint8)

    def _encode(self, value: Any) -> bytes:
        if self._kind == "text":
            return bytes(value.encode("utf-8", _SURROGATES))
        try:
            return value if self._kind == "bytes" else pickle.dumps(value, protocol=5)
        except Exception as error:
            raise ConfigError(
                f"shared: an element of type {type(value).__qualname__} cannot be pickled: {error}"
            ) from error

    def _decode(self, at: int) -> Any:
        raw = self._bytes[self._starts[at] : self._starts[at + 1]].tobytes()
        if self._kind == "text":
            return raw.decode("utf-8", _SURROGATES)
        return raw if self._kind == "bytes" else pickle.loads(raw)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self._decode(at) for at in range(*index.indices(len(self)))]
        return self._decode(range(len(self))[index])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SharedList) and self._kind == other._kind != "pickle":
            return np.array_equal(self._starts, other._starts) and np.array_equal(self._bytes, other._bytes)
        if not isinstance(other, (SharedList, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of a list

    @property
    def nbytes(self) -> int:
        """Size in bytes of the memory that all processes share."""
        return int(self._starts.nbytes + self._bytes.nbytes)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"shared([{shown}{', ...' if len(self) > 3 else ''}])  # {len(self)} elements, {self.nbytes:,} bytes"


def shared(values: Iterable[Any]) -> SharedList:
    """Stores `values` as a sequence that forked workers can read without copying its memory.

    ::

        self.paths = feedline.shared(sorted(folder.rglob("*.jpg")))

    Args:
        values: str, bytes or other picklable objects, such as pairs of a path and a class. Each read returns a new
            equal object, so changing it does not affect the sequence.

    Raises:
        ConfigError: an element cannot be pickled.
    """
    return values if isinstance(values, SharedList) else SharedList(values)
