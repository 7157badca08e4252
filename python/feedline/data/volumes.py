# SPDX-License-Identifier: Apache-2.0
"""Sources that consist of volumes: NIfTI files, Zarr arrays and groups, HDF5 files, and .npy files as volumes."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _engine
from ..errors import ConfigError
from . import arguments
from .dataset import Dataset
from .source_spec import SourceSpec
from .storage import node_cache

_NIFTI = (".nii", ".nii.gz")
_HDF5 = (".h5", ".hdf5")
_GROUPS = (".zarr", *_HDF5)
_LABELS = ("mask", "label", "seg")  # how names of label fields begin


class _Field(NamedTuple):
    name: str
    array: str  # in a group
    has_labels: bool


def are_volumes(source: Any, volumes: bool) -> bool:
    """Whether :func:`feedline.open` opens a source as volumes."""
    rows = _rows_of(source)
    if rows is None:
        return False
    return all(_is_volume(path, volumes) for row in rows for path in row)


def open_volumes(source: Any, fields: Any, index: Any, cache: Any, cache_limit: Any) -> Dataset:
    """Opens a source that are_volumes() accepts."""
    rows = _rows_of(source)
    assert rows is not None
    rows = [row for one in rows for row in _expanded(one)]
    chosen = _fields_of(fields, rows)
    samples = []
    for row in rows:
        if len(row) == 1 and len(chosen) > 1 and not _is_group(row[0]):
            raise ConfigError(
                f"open: {row[0]!r} has one volume, but there are {len(chosen)} fields; pass one path for each field: "
                'open([(image, mask), ...], fields=("image", "mask"))'
            )
        paths = row * len(chosen) if len(row) == 1 else row
        if len(paths) != len(chosen):
            raise ConfigError(f"open: a sample has {len(paths)} paths, but there are {len(chosen)} fields")
        samples.append([_stored(path, field.array, index) for path, field in zip(paths, chosen, strict=True)])
    stored = node_cache.of_open(cache, cache_limit)
    limit = stored.get("cache_limit", {"bytes": 0, "share": 0.5})
    name = rows[0][0] + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")
    engine = _engine.volumes(
        name,
        [(field.name, field.has_labels) for field in chosen],
        samples,
        "" if index is None else arguments.output_path("open", "index", index),
        stored.get("cache_directory", ""),
        limit["bytes"],
        limit["share"],
    )
    return Dataset(engine, SourceSpec(name, "volumes"))


def _stored(path: str, array: str, index: Any) -> tuple[str, str, str]:
    """Returns a volume in the engine's form: its path, the array in it, and for HDF5 the list of its chunks."""
    if not path.endswith(_HDF5):
        return path, array, ""
    from . import hdf5_chunks

    return path, array, hdf5_chunks.list_of(path, array, "" if index is None else os.fspath(index))


def _rows_of(source: Any) -> list[tuple[str, ...]] | None:
    """Returns the paths of each sample; None for sources that cannot be volumes."""
    given = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(given, Sequence) or not given:
        return None
    rows = []
    for one in given:
        paths = (one,) if isinstance(one, str | os.PathLike) else one
        if not isinstance(paths, tuple | list) or not paths:
            return None
        names = tuple(os.fspath(path) for path in paths if isinstance(path, str | os.PathLike))
        if len(names) != len(paths) or not all(isinstance(name, str) for name in names):
            return None
        rows.append(names)
    return rows


def _is_volume(path: str, volumes: bool) -> bool:
    name = path.partition("?")[0].rstrip("/") if "://" in path else path.rstrip("/")
    if name.endswith((*_NIFTI, *_GROUPS)) or (volumes and name.endswith(".npy")):
        return True
    if "://" in path or not os.path.isdir(path):
        return False
    return _is_zarr(path) or bool(_volumes_in(path))


def _is_zarr(path: str) -> bool:
    return any(os.path.isfile(os.path.join(path, name)) for name in ("zarr.json", ".zarray", ".zgroup"))


def _is_group(path: str) -> bool:
    """Whether a path may contain several arrays."""
    name = path.partition("?")[0].rstrip("/")
    return name.endswith(_GROUPS) or (os.path.isdir(path) and _is_zarr(path))


def _volumes_in(folder: str) -> list[str]:
    """Returns the NIfTI files or the Zarr folders of a folder that contains nothing else; otherwise an empty list.

    Stops at the first other name, as folders may have millions of files.
    """
    names = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if not entry.name.endswith((*_NIFTI, ".zarr")):
                    return []
                names.append(entry.name)
    except OSError:
        return []  # reported when the folder is opened
    if len({name.endswith(".zarr") for name in names}) != 1:
        return []
    return [os.path.join(folder, name) for name in sorted(names)]


def _expanded(row: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Returns one row for each sample that a row of patterns or folders describes."""
    columns = [_paths_of(path) for path in row]
    if len({len(column) for column in columns}) > 1:
        counts = ", ".join(f"{path!r} has {len(column)}" for path, column in zip(row, columns, strict=True))
        raise ConfigError(f"open: patterns of a sample's fields must match the same number of files; {counts}")
    return list(zip(*columns, strict=True))


def _paths_of(path: str) -> list[str]:
    if "://" in path:
        return [path]
    if os.path.exists(path):
        return (not _is_zarr(path) and os.path.isdir(path) and _volumes_in(path)) or [path]
    if "{" in path:
        return [os.fsdecode(name) for name in _engine.StoredSource(path).names]
    if any(mark in path for mark in "*?["):
        return sorted(glob.glob(path, recursive=True)) or [path]
    return [path]


def _fields_of(fields: Any, rows: list[tuple[str, ...]]) -> list[_Field]:
    specs = arguments.field_specs("open", fields)
    if not specs:
        count = len(rows[0])
        if count > 2:
            raise ConfigError(f"open: samples have {count} paths; name their fields with fields=")
        specs = ["image", "mask"][:count]
        return [_Field(name, "", name == "mask") for name in specs]
    is_group = len(rows[0]) == 1 and _is_group(rows[0][0])
    return [_field_of(spec, is_group) for spec in specs]


def _field_of(spec: str, is_group: bool) -> _Field:
    text, colon, kind = spec.rpartition(":")
    if not colon:
        text, kind = spec, ""
    if kind not in ("", "image", "volume", "mask"):
        raise ConfigError(f"open: fields: {spec!r} has the kind {kind!r}; volumes are image or mask")
    name, equals, array = text.partition("=")
    if not equals:
        name, array = text.rstrip("/").rpartition("/")[2], text
    has_labels = kind == "mask" or (kind == "" and name.lower().startswith(_LABELS))
    return _Field(name, array if is_group or equals else "", has_labels)
