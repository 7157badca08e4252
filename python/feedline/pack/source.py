# SPDX-License-Identifier: Apache-2.0
"""The samples to pack, in packed order and in their stored form."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _engine
from ..data import arguments, hub
from ..data.source_spec import SourceSpec
from ..data.sources import warn_of_merged_folders
from ..errors import ConfigError, DataError, StorageError
from .column_layouts import LmdbLayout, ParquetLayout, TfrecordLayout
from .layouts import Layout, MdsLayout, TarLayout
from .mds_columns import Columns, Content
from .names import text
from .settings import Form
from .transcoders import Check, Transcoder

_ORDER_CHUNK = 1 << 16  # positions of the order that are requested at a time
_TITLES = {"mds": "MDS", "tfrecord": "TFRecord", "lmdb": "LMDB", "parquet": "Parquet"}
_LISTS_WITH_BYTES = b"\xffnested\x01"  # src/base/nested_mark.h
_MOST_UNREADABLE = 1000  # samples tried before giving up on a dataset's columns


@dataclass(frozen=True)
class Packed:
    """The content of a sample for a shard, or the error."""

    position: int
    key: str
    content: Content
    files: int = 0
    rewritten: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    error: Exception | None = None


class Source:
    """The samples of a dataset in packed order. Thread-safe."""

    def __init__(
        self, dataset: _engine.Dataset, layout: Layout, transcoders: Sequence[Transcoder], shuffle: bool, seed: int
    ) -> None:
        self.dataset = self._dataset = dataset
        self.layout = layout
        self.keeps_sizes = all(isinstance(transcoder, Check) for transcoder in transcoders)
        self._transcoders = transcoders
        self._shuffle, self._seed = shuffle, seed

    def __len__(self) -> int:
        return len(self._dataset)

    def order(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yields (position, index in the dataset) for the positions from ``first`` up to, but not including,
        ``end``.
        """
        for begin in range(first, end, _ORDER_CHUNK):
            count = min(_ORDER_CHUNK, end - begin)
            indices = _engine.sample_order(
                samples=len(self),
                shard_ends=[],
                shuffle=self._shuffle,
                shard_window=0,
                seed=self._seed,
                epoch=0,
                begin=begin,
                count=count,
            )
            yield from zip(range(begin, begin + count), indices.tolist(), strict=True)

    def read(self, position: int, index: int) -> Packed:
        """Reads and converts one sample. Errors are returned in the result."""
        try:
            return self._read(position, index)
        except (DataError, StorageError) as error:
            return Packed(position, self._dataset.key(index), [], error=error)

    def _read(self, position: int, index: int) -> Packed:
        stored_key, label, files = self._dataset.files(index)
        key = self.layout.key(stored_key, files[0][0])
        contents = _transcoded(key, files, self._transcoders)
        return Packed(
            position,
            key,
            self.layout.content(key, label, contents),
            files=len(files),
            rewritten=sum(content != stored for (_, content), (_, stored) in zip(contents, files, strict=True)),
            bytes_before=sum(len(stored) for _, stored in files),
            bytes_after=sum(len(content) for _, content in contents),
        )

    def planned_bytes(self, index: int) -> int:
        """Returns the size that a sample has in a shard if no transcoder changes it."""
        stored_key, label, files = self._dataset.file_sizes(index)
        key = self.layout.key(stored_key, files[0][0])
        return self.layout.planned(key, label, [(text(extension).lower(), size) for extension, size in files])


def _transcoded(key: str, files: Sequence[tuple[bytes, bytes]], transcoders: Sequence[Transcoder]) -> Content:
    """Returns the files of a sample with their extensions, converted by all transcoders."""
    contents = []
    for stored_extension, content in files:
        extension = text(stored_extension).lower()
        if content.startswith(_LISTS_WITH_BYTES) and extension.endswith(".json"):
            raise ConfigError(
                f"pack: the field {extension.removesuffix('.json')!r} holds lists with bytes, which JSON files cannot "
                "store; leave it out of fields="
            )
        try:
            for transcoder in transcoders:
                extension, content = transcoder(extension, content)
        except DataError as error:
            raise DataError(f"{error} (sample {key}.{extension})", key=key, stage=error.stage) from None
        contents.append((extension, content))
    return contents


def _columns_of(dataset: _engine.Dataset, transcoders: Sequence[Transcoder], with_key: bool, title: str) -> Columns:
    """Returns the columns of the first readable sample. Raises a sample's error if no sample is readable."""
    first: Exception | None = None
    for index in range(min(len(dataset), _MOST_UNREADABLE)):
        try:
            stored_key, label, files = dataset.files(index)
            return Columns.of_sample(label, _transcoded(text(stored_key), files, transcoders), with_key, title)
        except (DataError, StorageError) as error:
            first = first or error
    assert first is not None
    raise first


def spec_of(
    source: str | os.PathLike[str],
    format: str | None,
    fields: str | Sequence[str] | None,
    annotations: Mapping[str, str],
) -> SourceSpec:
    specs = arguments.field_specs("pack", fields)
    if hub.is_source(source):
        urls, format, annotations = hub.source_of(source, format, annotations)
        source = "::".join(urls)
    return SourceSpec(os.fspath(source), format or "", specs, annotations=annotations)


def opened(spec: SourceSpec) -> _engine.Dataset:
    dataset = spec.open(listing_age=0)
    warn_of_merged_folders("pack", dataset, callers=3)
    return dataset


def _layout_of(dataset: _engine.Dataset, transcoders: Sequence[Transcoder], form: Form) -> Layout:
    tar = TarLayout(dataset)
    if form.to == "tar":
        return tar
    columns = _columns_of(dataset, transcoders, form.keep_keys, _TITLES[form.to])
    if form.mds is not None:
        return MdsLayout(columns, form.mds)
    if form.to == "tfrecord":
        return TfrecordLayout(columns)
    return LmdbLayout(columns, tar) if form.to == "lmdb" else ParquetLayout(columns, dataset.classes)


def prepared(
    dataset: _engine.Dataset,
    limits: dict[str, int | None],
    shuffle: bool,
    seed: int,
    transcoders: Sequence[Transcoder],
    form: Form,
) -> tuple[Source, dict[str, Any]]:
    layout = _layout_of(dataset, transcoders, form)
    wanted: dict[str, Any] = {
        "fingerprint": f"{dataset.fingerprint:016x}",
        "samples": len(dataset),
        "shuffle": shuffle,
        "seed": seed if shuffle else None,
        "transcoders": [transcoder.description for transcoder in transcoders],
        **limits,
        **layout.arguments,
    }
    return Source(dataset, layout, transcoders, shuffle, seed), wanted
