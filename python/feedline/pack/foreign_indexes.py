# SPDX-License-Identifier: Apache-2.0
"""Writes other programs' indexes and shard lists for tar and TFRecord files.

Indexes next to each shard are DALI's ``x.idx`` (tools/wds2idx.py, v1.2), Megatron-Energon's ``x.tar.idx``, and
``x.tfindex`` of the `tfrecord` package, which DALI's tfrecord2idx also writes. The lists of all shards are those of
wids, timm (``_info.json``) and OpenCLIP (``sizes.json``).
"""

from __future__ import annotations

import json
import os
import posixpath
import struct
import tarfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .. import _engine
from ..cluster import ray_tasks
from ..data import shard_lists, sources
from ..errors import ConfigError, DataError, StorageError

_WHERE = "index"
_TFRECORD_FRAME, _TFRECORD_HEAD = 16, 12  # framing bytes of a record, and those before its data


class Written(NamedTuple):
    """The written files, and the numbers of shards and samples that they list."""

    files: list[str]
    shards: int
    samples: int


def write(source: str, kind: str, *, output: str | None = None, split: str = "train", on: str | None = None) -> Written:
    """Writes the index named by `kind`.

    Args:
        source: tar or TFRecord files, as for feedline.open().
        kind: name of the index, one of KINDS.
        output: path of a list; by default the path that readers of the list expect, next to the first shard.
        split: the name of the samples in timm's list.
        on: ``"ray"`` or ``"ray://HOST:PORT"`` reads shards as tasks of a Ray cluster.

    Raises:
        ConfigError: the shards do not exist, or the index cannot represent their contents.
        DataError: a shard is damaged.
        StorageError: a shard cannot be read, or a file cannot be written.
    """
    if kind in _PER_SHARD:
        return _write_next_to(source, kind, output, on)
    stored = _engine.StoredSource(source).shards()
    names = [os.fsdecode(name) for name in stored.names]
    if stored.is_folder(stored.names[0]):
        raise ConfigError(f"{_WHERE}: {names[0]!r} is a folder; {kind} requires tar or TFRecord files")
    counts = _counts_of_remote(source) if stored.is_remote else _each(on, _count_of, None, names)
    return _write_list(names, counts, kind, output, split)


# ---- lists of shards


def _counts_of_remote(source: str) -> list[int]:
    ends = sources.spec_of(source, None, None, None, "error").open().shard_ends()
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def _each(on: str | None, call: Callable[[Any, str], Any], shared: Any, names: list[str]) -> list[Any]:
    """Returns ``call(shared, name)`` of each name, in order."""
    if on is None:
        return [call(shared, name) for name in names]
    made = dict(ray_tasks.run(_WHERE, on, call, shared, names))
    return [made[number] for number in range(len(names))]


def _count_of(_shared: None, shard: str) -> int:
    return _made(shard, _energon if tarfile.is_tarfile(shard) else _tfindex)[1]


def _write_list(names: list[str], counts: list[int], kind: str, output: str | None, split: str) -> Written:
    file = output or posixpath.join(posixpath.dirname(names[0]), _LISTS[kind])
    if "://" in file:
        raise ConfigError(f"{_WHERE}: a list is written to a local file; pass its path with --output")
    here = os.path.dirname(os.path.abspath(file))
    paths = [name if "://" in name else os.path.relpath(name, here) for name in names]
    if kind == "wids":
        sizes = [_size_of(name) for name in names]
        shards = [
            {"url": name, "nsamples": count, "filesize": size}
            for name, count, size in zip(paths, counts, sizes, strict=True)
        ]
        said: object = {"__kind__": shard_lists.WIDS, "wids_version": 1, "name": split, "shardlist": shards}
    elif kind == "timm":
        own = {"name": split, "num_samples": sum(counts), "filenames": paths, "shard_lengths": counts}
        said = {"splits": {split: own}}
    else:
        own = dict(zip(map(posixpath.basename, paths), counts, strict=True))
        if len(own) < len(counts):
            raise ConfigError(f"{_WHERE}: two shards have the same name, but open_clip distinguishes shards by name")
        said = own
    _write_file(file, (json.dumps(said, indent=1) + "\n").encode())
    return Written([file], len(counts), sum(counts))


def _size_of(name: str) -> int:
    return _engine.StoredSource(name).object(os.fsencode(name)).size


_LISTS = {"wids": "index.json", "timm": "_info.json", "open_clip": "sizes.json"}

# ---- indexes of shards


def _write_next_to(source: str, kind: str, output: str | None, on: str | None) -> Written:
    if output is not None:
        raise ConfigError(
            f"{_WHERE}: {kind} writes its index next to its shard; --output applies only to lists of shards"
        )
    stored = _engine.StoredSource(source).shards()
    if stored.is_remote:
        raise ConfigError(f"{_WHERE}: {kind} writes indexes only next to local shards")
    made = _each(on, _write_index, kind, [os.fsdecode(name) for name in stored.names])
    return Written([file for file, _ in made], len(made), sum(count for _, count in made))


def _write_index(kind: str, name: str) -> tuple[str, int]:
    """Writes the index of one shard, and returns its path and the number of samples."""
    file, make = _PER_SHARD[kind]
    content, count = _made(name, make)
    if not count:
        raise ConfigError(f"{_WHERE}: {name} has no samples")
    _write_file(file(name), content)
    return file(name), count


def _made(shard: str, make: Callable[[str], tuple[bytes, int]]) -> tuple[bytes, int]:
    """Returns an index and the number of samples in it."""
    try:
        return make(shard)
    except tarfile.TarError as error:
        raise DataError(f"{_WHERE}: {shard}: {error}", shard=shard) from None
    except OSError as error:
        raise StorageError(f"{_WHERE}: {shard}: {error.strerror}", errno=error.errno, shard=shard) from None


def _members(shard: str) -> Iterator[tuple[str, str, tarfile.TarInfo]]:
    """Yields the key, extension and member of each plain file that belongs to a sample by WebDataset's naming rules."""
    with tarfile.open(shard, "r:") as tar:
        for member in tar:
            folder, _, base = member.name.rpartition("/")
            stem, dot, extension = base.partition(".")
            if member.isreg() and stem and dot:
                yield f"{folder}/{stem}" if folder else stem, extension, member
        end = tar.offset
    if os.path.getsize(shard) < end + 2 * tarfile.BLOCKSIZE:
        raise tarfile.ReadError("the end marker is missing: the file is truncated")


def _dali(shard: str) -> tuple[bytes, int]:
    """Returns one line for each sample, with the extension, offset, size and name of each of its files."""
    lines: list[list[str]] = []
    last = None
    for key, extension, member in _members(shard):
        if any(c.isspace() for c in member.name) or not member.name.isascii():
            raise ConfigError(
                f"{_WHERE}: {shard}: the name {member.name!r} has a space or a non-ASCII character, which DALI's "
                "index cannot represent"
            )
        if key != last:
            lines.append([])
            last = key
        lines[-1] += [extension, str(member.offset_data), str(member.size), member.name]
    return "".join([f"v1.2 {len(lines)}\n", *(" ".join(line) + "\n" for line in lines)]).encode("ascii"), len(lines)


def _energon(shard: str) -> tuple[bytes, int]:
    """Returns the offset of each sample's first header, and the end of the last sample, as 64-bit numbers."""
    begins, end, last = [], 0, None
    for key, _, member in _members(shard):
        if key != last:
            begins.append(member.offset)
            last = key
        end = member.offset_data + -(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    return struct.pack(f"<{len(begins) + 1}Q", *begins, end), len(begins)


def _tfindex(shard: str) -> tuple[bytes, int]:
    """Returns one line for each record, with its offset and its size including the frame."""
    lines, begin = [], 0
    size = os.path.getsize(shard)
    with open(shard, "rb") as file:
        while begin < size:
            file.seek(begin)
            head = file.read(_TFRECORD_HEAD)
            length = struct.unpack("<Q", head[:8])[0] + _TFRECORD_FRAME if len(head) == _TFRECORD_HEAD else size + 1
            if begin + length > size:
                raise DataError(
                    f"{_WHERE}: {shard}: the record at byte {begin:,} is incomplete", shard=shard, offset=begin
                )
            lines.append(f"{begin} {length}\n")
            begin += length
    return "".join(lines).encode(), len(lines)


def _without_extension(shard: str) -> str:
    """Splits a name as wds2idx.py does: at the first dot, ignoring a leading dot."""
    folder, name = os.path.split(shard)
    dot = name.find(".", 1)
    return os.path.join(folder, name if dot < 0 else name[:dot])


_PER_SHARD: dict[str, tuple[Callable[[str], str], Callable[[str], tuple[bytes, int]]]] = {
    "dali": (lambda shard: _without_extension(shard) + ".idx", _dali),
    "energon": (lambda shard: os.path.splitext(shard)[0] + ".tar.idx", _energon),
    "tfindex": (lambda shard: os.path.splitext(shard)[0] + ".tfindex", _tfindex),
}
KINDS = (*_PER_SHARD, *_LISTS)


def _write_file(file: str, content: bytes) -> None:
    unfinished = f"{file}.{os.getpid()}.unfinished"
    try:
        with open(unfinished, "wb") as out:
            out.write(content)
        os.replace(unfinished, file)
    except OSError as error:
        raise StorageError(f"{_WHERE}: {file}: {error.strerror}", errno=error.errno, shard=file) from None
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
