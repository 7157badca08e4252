# SPDX-License-Identifier: Apache-2.0
"""Layouts of samples in shards: as members of tar files, or in MDS format. `column_layouts` has the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from .. import _engine
from .destinations import Destination
from .manifest import Manifest, Shard
from .mds_columns import Columns, Content
from .mds_shard import INDEX, MdsSettings, MdsShardFile, index_text, shard_name
from .names import CLASS_NAMES_MEMBER, FolderKeys, class_names_text, text
from .plan import quick_member_bytes
from .shard_file import ShardFile, member_bytes

_OF_FILES = ("folder", "coco", "voc", "yolo")  # formats whose samples are named after their images
_TAR_END = 1024  # size of a tar's end marker
_ENDINGS = {"tar": ".tar", "tfrecord": ".tfrecord", "lmdb": ".lmdb", "parquet": ".parquet"}


class ShardWriter(Protocol):
    """A shard that is being written; the file appears atomically."""

    path: Path
    bytes: int  # size so far
    entry: dict[str, Any] | None  # its entry in the index of all shards, once it is committed

    def take(self, content: Content) -> None:
        """Appends a sample."""

    def commit(self) -> str:
        """Moves the file to `path` durably and returns its SHA-256."""

    def discard(self) -> None: ...


class Layout(Protocol):
    """A layout. Immutable: several threads use it concurrently."""

    arguments: dict[str, Any]  # settings that the shards' bytes depend on, in addition to those of all layouts
    keys_differ: bool  # within a shard

    def shard_name(self, number: int) -> str: ...
    def key(self, stored: bytes, extension: bytes) -> str:
        """Returns the name of a sample in the shards; `extension` is the extension of its first file."""

    def content(self, key: str, label: int | None, files: Content) -> Content:
        """Returns a sample in the form that a shard stores. Raises DataError if the sample cannot be stored."""

    def taken(self, content: Content) -> int:
        """Returns the number of bytes that `content` occupies in a shard."""

    def front(self) -> int:
        """Returns the size of a shard without samples."""

    def planned(self, key: str, label: int | None, sizes: Sequence[tuple[str, int]]) -> int:
        """Calculates the number of bytes that a sample will occupy in a shard, from the sizes of its files."""

    def begin(self, path: Path) -> ShardWriter: ...
    def finished(self, shard: Path, content: Content) -> None:
        """Writes the files next to a finished shard; `content` is its last sample."""

    def complete(self, destination: Destination, manifest: Manifest) -> None:
        """Writes the files that describe all shards, once these are finished."""


class _TarFile(ShardFile):
    def take(self, content: Content) -> None:
        for name, data in content:
            self.add(name, data)


class TarLayout:
    """WebDataset's layout."""

    arguments: dict[str, Any] = {}  # noqa: RUF012
    keys_differ = True

    def __init__(self, dataset: _engine.Dataset) -> None:
        self._keys = FolderKeys(dataset) if dataset.format in _OF_FILES else None
        self._classes = list(dataset.classes)

    def shard_name(self, number: int) -> str:
        return f"{number:06d}.tar"

    def key(self, stored: bytes, extension: bytes) -> str:
        key = text(stored)
        return key if self._keys is None else self._keys.key(key, text(extension))

    def content(self, key: str, label: int | None, files: Content) -> Content:
        members = [(f"{key}.{extension}", data) for extension, data in files]
        return members if label is None else [*members, (f"{key}.cls", str(label).encode())]

    def taken(self, content: Content) -> int:
        return sum(member_bytes(name, len(data)) for name, data in content)

    def front(self) -> int:
        names = class_names_text(self._classes)
        return _TAR_END + (member_bytes(CLASS_NAMES_MEMBER, len(names)) if self._classes else 0)

    def planned(self, key: str, label: int | None, sizes: Sequence[tuple[str, int]]) -> int:
        taken = sum(quick_member_bytes(f"{key}.{extension}", size) for extension, size in sizes)
        return taken if label is None else taken + quick_member_bytes(f"{key}.cls", len(str(label)))

    def begin(self, path: Path) -> ShardWriter:
        file = _TarFile(path)
        if self._classes:
            file.add(CLASS_NAMES_MEMBER, class_names_text(self._classes))
        return file

    def finished(self, shard: Path, content: Content) -> None:
        extension = content[0][0].rpartition("/")[2].partition(".")[2]
        _engine.open(
            str(shard), {"format": "tar", "fields": [f"{extension}:bytes"]}
        )  # writes an index next to the shard

    def complete(self, destination: Destination, manifest: Manifest) -> None:
        pass


class MdsLayout:
    """MosaicML streaming's layout, version 2."""

    keys_differ = False

    def __init__(self, columns: Columns, settings: MdsSettings) -> None:
        self._columns, self._settings = columns, settings
        self.arguments = {"to": "mds", "columns": columns.encodings, **settings.arguments}

    def shard_name(self, number: int) -> str:
        return shard_name(number, self._settings.compression)

    def key(self, stored: bytes, extension: bytes) -> str:
        return text(stored)

    def content(self, key: str, label: int | None, files: Content) -> Content:
        return [(key, self._columns.sample(key, label, files))]

    def taken(self, content: Content) -> int:
        return MdsShardFile.taken(content)

    def front(self) -> int:
        return MdsShardFile.front(self._columns, self._settings)

    def planned(self, key: str, label: int | None, sizes: Sequence[tuple[str, int]]) -> int:
        return MdsShardFile.offset_bytes + self._columns.planned(key, label, sizes)

    def begin(self, path: Path) -> ShardWriter:
        return MdsShardFile(path, self._columns, self._settings)

    def finished(self, shard: Path, content: Content) -> None:
        pass

    def complete(self, destination: Destination, manifest: Manifest) -> None:
        index_of_all(destination, manifest)


def index_of_all(destination: Destination, manifest: Manifest) -> None:
    """Writes the index of a complete dataset next to its shards, if the layout has one."""
    if manifest.arguments.get("to") == "mds":
        destination.write(INDEX, index_text(manifest.shards, manifest.classes))


def pattern_of(destination: Destination, arguments: dict[str, Any], shards: Sequence[Shard]) -> str:
    """Returns the source that opens these shards."""
    front = destination.shown + "/" if destination.is_remote else os.path.join(destination.shown, "")
    if arguments.get("to") == "mds":
        return front + INDEX if destination.is_remote else destination.shown
    ending = _ENDINGS[arguments.get("to", "tar")]
    names = [shard.name.removesuffix(ending) for shard in shards] or ["000000"]
    return front + (f"{names[0]}{ending}" if len(names) == 1 else f"{{{names[0]}..{names[-1]}}}{ending}")


def name_of_shard(arguments: dict[str, Any], number: int) -> str:
    """Returns the name of a shard that was packed with these arguments."""
    if arguments.get("to") == "mds":
        return shard_name(number, arguments["compression"])
    return f"{number:06d}{_ENDINGS[arguments.get('to', 'tar')]}"
