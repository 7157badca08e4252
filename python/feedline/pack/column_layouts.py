# SPDX-License-Identifier: Apache-2.0
"""Layouts of samples as columns of TFRecord, LMDB or Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _engine
from ..errors import ConfigError
from . import lmdb_shard, parquet_shard, tfrecord_shard
from .destinations import Destination
from .layouts import ShardWriter, TarLayout, name_of_shard
from .manifest import Manifest
from .mds_columns import Columns, Content
from .names import text

# the kind of an encoding, and the names of columns whose kind readers detect
_KINDS = {"str": (":text", ("txt", "text", "caption")), "json": (":json", ("json",))}


class ColumnLayout:
    """The common part of layouts that store the columns of a sample in a file with its own ending."""

    keys_differ = False
    to = ""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.arguments: dict[str, Any] = {"to": self.to, "columns": columns.encodings, "fields": self.fields()}
        if columns.arrays:
            self.arguments["arrays"] = {name: list(form) for name, form in columns.arrays.items()}

    def fields(self) -> list[str]:
        """Returns the entries of ``fields=`` that read all columns; empty if the reader finds them without it."""
        if self._columns.names in (["image"], ["image", "label"]):
            return []
        return [f"{name}{self.kind(name)}" for name in self._columns.names]

    def kind(self, name: str) -> str:
        """Returns the ``:KIND`` of a column in ``fields=``; "" if the reader detects the kind."""
        kind, known = _KINDS.get(self._columns.encodings[name], ("", ()))
        return "" if name in known else kind

    def shard_name(self, number: int) -> str:
        return name_of_shard(self.arguments, number)

    def key(self, stored: bytes, extension: bytes) -> str:
        return text(stored)

    def taken(self, content: Content) -> int:
        return sum(len(data) for _, data in content)

    def front(self) -> int:
        return 0

    def planned(self, key: str, label: int | None, sizes: Sequence[tuple[str, int]]) -> int:
        return sum(self._columns.sizes_of(key, label, sizes).values())

    def finished(self, shard: Path, content: Content) -> None:
        pass

    def complete(self, destination: Destination, manifest: Manifest) -> None:
        pass


class TfrecordLayout(ColumnLayout):
    """Records of tf.train.Example."""

    to = "tfrecord"

    def kind(self, name: str) -> str:
        return ":array" if tfrecord_shard.is_npy(self._columns, name) else super().kind(name)

    def content(self, key: str, label: int | None, files: Content) -> Content:
        values = self._columns.values(key, label, files)
        return [(key, tfrecord_shard.record_of(tfrecord_shard.example_of(self._columns, key, values)))]

    def planned(self, key: str, label: int | None, sizes: Sequence[tuple[str, int]]) -> int:
        raise ConfigError(
            "pack: shard_range with TFRecord files requires samples_per_shard (--samples-per-shard), because the sizes "
            "of records are known only after they are encoded"
        )

    def begin(self, path: Path) -> ShardWriter:
        return tfrecord_shard.TfrecordFile(path)

    def finished(self, shard: Path, content: Content) -> None:
        # writes an index next to the shard
        _engine.open(str(shard), {"format": "tfrecord", "fields": self.arguments["fields"]})


class LmdbLayout(ColumnLayout):
    """Databases with an entry ``KEY.COLUMN`` for each value."""

    to = "lmdb"
    keys_differ = True

    def __init__(self, columns: Columns, tar: TarLayout) -> None:
        super().__init__(columns)
        self._tar = tar  # creates the same keys

    def fields(self) -> list[str]:
        return [f"{{key}}.{name}{self.kind(name)}" for name in self._columns.names]

    def key(self, stored: bytes, extension: bytes) -> str:
        return self._tar.key(stored, extension)

    def content(self, key: str, label: int | None, files: Content) -> Content:
        entries = [(f"{key}.{name}", data) for name, data in self._columns.values(key, label, files).items()]
        lmdb_shard.check(entries)
        return entries

    def taken(self, content: Content) -> int:
        return sum(lmdb_shard.entry_bytes(name, len(value)) for name, value in content)

    def front(self) -> int:
        return lmdb_shard.META_PAGES * lmdb_shard.PAGE_BYTES

    def planned(self, key: str, label: int | None, sizes: Sequence[tuple[str, int]]) -> int:
        own = self._columns.sizes_of(key, label, sizes)
        return sum(lmdb_shard.entry_bytes(f"{key}.{name}", size) for name, size in own.items())

    def begin(self, path: Path) -> ShardWriter:
        return lmdb_shard.LmdbFile(path)


class ParquetLayout(ColumnLayout):
    """Parquet files with a row for each sample. Sizes count only the values."""

    to = "parquet"

    def __init__(self, columns: Columns, classes: Sequence[str]) -> None:
        super().__init__(columns)
        self._classes = classes

    def kind(self, name: str) -> str:
        return ":array" if parquet_shard.is_npy(self._columns, name) else super().kind(name)

    def content(self, key: str, label: int | None, files: Content) -> Content:
        values = self._columns.values(key, label, files)
        parquet_shard.check(self._columns, key, values)
        return list(values.items())

    def begin(self, path: Path) -> ShardWriter:
        return parquet_shard.ParquetFile(path, self._columns, self._classes)
