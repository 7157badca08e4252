# SPDX-License-Identifier: Apache-2.0
"""Writes shards of an MDS dataset with compression and checksums, and their index.

``u32 samples; u32 offset[samples + 1]; JSON of the shard's settings, as below; the samples``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
import zlib
from array import array
from bz2 import BZ2Compressor
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from ..data import arguments
from ..errors import ConfigError, DataError
from .manifest import Shard
from .mds_columns import Columns, Content
from .shard_file import UNFINISHED, sync_folder

INDEX = "index.json"
MOST_SHARD_BYTES = 2**32 - 1  # offsets have 32 bits
DEFAULT_SHARD_BYTES = 1 << 26  # streaming's own default: it fetches whole shards
_IN_MEMORY = 1 << 28  # bytes of a shard's samples held in memory; the rest are spooled to an unnamed file
_PIECE = 1 << 22
_LEVELS = {"gz": (0, 9, 6), "bz2": (1, 9, 9), "zstd": (1, 22, 3)}  # minimum, maximum, default
_XXHASH = {"xxh32": "xxh32", "xxh64": "xxh64", "xxh128": "xxh128", "xxh3_64": "xxh3_64", "xxh3_128": "xxh3_128"}


class _Sum(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


@dataclass(frozen=True)
class MdsSettings:
    """Storage of shards. ``compression``: ``"zstd"``, ``"gz"`` or ``"bz2"``, optionally with ``":LEVEL"``; None
    disables compression. ``hashes``: sorted names of the checksums in the index, as in hashlib and xxhash.
    """

    compression: str | None = None
    hashes: tuple[str, ...] = ("sha256",)
    size_limit: int | None = DEFAULT_SHARD_BYTES

    @staticmethod
    def checked(compression: str | None, hashes: Sequence[str], size_limit: int | None) -> MdsSettings:
        """Raises ConfigError if a setting is unknown or needs a missing package."""
        if size_limit is not None and size_limit > MOST_SHARD_BYTES:
            raise ConfigError(f"pack: MDS shards must be smaller than 4 GiB, but shard_bytes is {size_limit:,}")
        if isinstance(hashes, str) or not arguments.is_iterable(hashes):
            raise ConfigError(f'pack: hashes must be a list of names, such as ["sha256"], not {hashes!r}')
        settings = MdsSettings(compression, tuple(sorted(set(map(_checksum, hashes)))), size_limit)
        if compression is not None:
            _compressor(compression, 0)
        for name in settings.hashes:
            _sum_of(name)
        return settings

    @property
    def arguments(self) -> dict[str, Any]:
        return {"compression": self.compression, "hashes": list(self.hashes)}


class MdsShardFile:
    """Buffers the samples until `commit`, because the offsets precede them in the file. Before `commit`, `path` does
    not exist.
    """

    offset_bytes = 4

    def __init__(self, path: Path, columns: Columns, settings: MdsSettings) -> None:
        self.path = path
        self.bytes = self.front(columns, settings)
        self.entry: dict[str, Any] | None = None
        self._columns, self._settings = columns, settings
        self._unfinished = path.with_name(path.name + UNFINISHED)
        self._sizes = array("I")
        self._samples: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(path.parent))  # noqa: SIM115

    @staticmethod
    def front(columns: Columns, settings: MdsSettings) -> int:
        """Returns the size of a shard without samples."""
        return 2 * MdsShardFile.offset_bytes + len(_settings_text(columns, settings))

    @staticmethod
    def taken(content: Content) -> int:
        """Returns the size of a sample in a shard."""
        return sum(MdsShardFile.offset_bytes + len(data) for _, data in content)

    def take(self, content: Content) -> None:
        """Appends a sample. Raises DataError if the shard would be too large."""
        self.bytes += self.taken(content)
        if self.bytes > MOST_SHARD_BYTES:
            raise DataError(
                f"pack: {self.path.name} would have {self.bytes:,} bytes, but MDS allows at most 4 GiB; pass a smaller "
                "shard_bytes or samples_per_shard"
            )
        for _, data in content:
            self._sizes.append(len(data))
            self._samples.write(data)

    def commit(self) -> str:
        """Moves the file to `path` durably and returns its SHA-256."""
        compression, hashes = self._settings.compression, self._settings.hashes
        stored_sum = hashlib.sha256()
        raw, stored = ({name: _sum_of(name) for name in hashes} for _ in range(2))
        stored_bytes = 0
        with open(self._unfinished, "wb") as file:

            def write(data: bytes) -> None:
                nonlocal stored_bytes
                stored_bytes += len(data)
                for own in [stored_sum, *(stored.values() if compression else ())]:
                    own.update(data)
                file.write(data)

            compressor = _compressor(compression, self.bytes) if compression else None
            for piece in self._pieces():
                for own in raw.values():
                    own.update(piece)
                write(compressor.compress(piece) if compressor else piece)
            if compressor:
                write(compressor.flush())
            file.flush()
            os.fsync(file.fileno())
        os.replace(self._unfinished, self.path)
        sync_folder(self.path.parent)
        self._samples.close()
        ending = f".{_extension(compression)}" if compression else ""
        self.entry = {
            "samples": len(self._sizes),
            "raw_data": _file(self.path.name.removesuffix(ending), self.bytes, raw),
            "zip_data": _file(self.path.name, stored_bytes, stored) if compression else None,
            **_settings_of(self._columns, self._settings),
        }
        self.bytes = stored_bytes
        return stored_sum.hexdigest()

    def discard(self) -> None:
        """Removes the partial file."""
        with contextlib.suppress(OSError):  # flushing fails on a full disk, and the data is discarded anyway
            self._samples.close()
        self._unfinished.unlink(missing_ok=True)

    def _pieces(self) -> Iterator[bytes]:
        text = _settings_text(self._columns, self._settings)
        end = self.offset_bytes * (len(self._sizes) + 2) + len(text)
        offsets = array("I", [len(self._sizes), end])
        for size in self._sizes:
            end += size
            offsets.append(end)
        yield struct.pack(f"<{len(offsets)}I", *offsets) + text
        self._samples.seek(0)
        while piece := self._samples.read(_PIECE):
            yield piece


def shard_name(number: int, compression: str | None) -> str:
    """Returns streaming's name for the shard's file."""
    return f"shard.{number:05d}.mds" + (f".{_extension(compression)}" if compression else "")


def index_text(shards: Iterable[Shard], classes: Sequence[str]) -> bytes:
    """Returns the index of a whole dataset. The ``classes`` in the index are read only by :func:`feedline.open`."""
    index: dict[str, Any] = {"version": 2, "shards": [shard.entry for shard in shards]}
    if classes:
        index["classes"] = [name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in classes]
    return json.dumps(index).encode()


def _settings_of(columns: Columns, settings: MdsSettings) -> dict[str, Any]:
    return {
        "column_encodings": list(columns.encodings.values()),
        "column_names": columns.names,
        "column_sizes": columns.sizes,
        "compression": settings.compression,
        "format": "mds",
        "hashes": list(settings.hashes),
        "size_limit": settings.size_limit,
        "version": 2,
    }


def _settings_text(columns: Columns, settings: MdsSettings) -> bytes:
    return json.dumps(_settings_of(columns, settings)).encode()


def _file(name: str, size: int, sums: dict[str, _Sum]) -> dict[str, Any]:
    return {"basename": name, "bytes": size, "hashes": {algorithm: own.hexdigest() for algorithm, own in sums.items()}}


def _extension(compression: str) -> str:
    return compression.partition(":")[0]


def _compressor(compression: str, size: int) -> _Compressor:
    """`size` is the uncompressed size, which streaming's zstd reader requires in the header."""
    name, colon, digits = compression.partition(":")
    if name not in _LEVELS:
        raise ConfigError(f"pack: compression {compression!r} must be one of {', '.join(sorted(_LEVELS))}")
    low, high, level = _LEVELS[name]
    if colon:
        level = int(digits) if digits.isdecimal() else -1
        if not low <= level <= high:
            raise ConfigError(f"pack: the level of {compression!r} must be a number from {low} to {high}")
    if name == "gz":
        return zlib.compressobj(level, wbits=31)  # omits the time from the header
    return BZ2Compressor(level) if name == "bz2" else _zstd(level, size)


def _zstd(level: int, size: int) -> _Compressor:
    try:
        import zstandard
    except ImportError:
        raise ConfigError(
            'pack: compression "zstd" needs the package zstandard: pip install "feedline[mds]"; gz and bz2 need none'
        ) from None
    own: _Compressor = zstandard.ZstdCompressor(level=level).compressobj(size=size)
    return own


def _checksum(name: Any) -> str:
    """Returns `name` if it is the name of a supported checksum."""
    known = sorted({*_XXHASH, *(own for own in hashlib.algorithms_guaranteed if not own.startswith("shake"))})
    if not isinstance(name, str) or name not in known:
        raise ConfigError(f"pack: hashes: unknown checksum {name!r}; use {', '.join(known)}")
    return name


def _sum_of(name: str) -> _Sum:
    if name in _XXHASH:
        try:
            import xxhash
        except ImportError:
            raise ConfigError(f'pack: the checksum "{name}" needs the package xxhash: pip install xxhash') from None
        own: _Sum = getattr(xxhash, name)()
        return own
    return hashlib.new(name)
