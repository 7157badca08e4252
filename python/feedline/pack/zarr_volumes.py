# SPDX-License-Identifier: Apache-2.0
"""Writes volumes as Zarr groups (version 3), with shards whose chunks fit a patch."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import os
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _engine
from ..data import arguments
from ..errors import ConfigError, StorageError

if TYPE_CHECKING:
    import numpy

    from ..data.dataset import Dataset

_WHERE = "pack"
_NOT_STORED = (2**64 - 1, 2**64 - 1)
_MOST_SHARD = 256  # voxels along an axis
_LEAST_CHUNK, _MOST_CHUNK = 8, 64


class VolumeReport(NamedTuple):
    """The result of :func:`pack_volumes`."""

    volumes: int  # number of samples, including those that already existed
    skipped: int  # number of samples that already existed
    bytes: int  # bytes written
    chunk: tuple[int, ...]  # extents of a chunk along the last axes


def pack_volumes(
    source: str | os.PathLike[str] | Sequence[Any] | Dataset,
    output: str | os.PathLike[str],
    *,
    patch: Sequence[int],
    fields: str | Sequence[str] | None = None,
) -> VolumeReport:
    """Writes each sample of a dataset of volumes as a Zarr group ``OUTPUT/00000.zarr``, with one array per field.

    Chunks have half the extents of `patch`, from 8 to 64 voxels, so that a random patch decodes 3.3 voxels for each
    voxel that it contains. They are stored in shards of up to 256 voxels along each axis, compressed by zstd if the
    package ``zstandard`` is installed, otherwise by gzip; chunks of zeros are not stored. NIfTI's affine is in the
    attributes of its array. ``feedline.open(OUTPUT, fields=("image", "mask"))`` reads the result. Existing samples are
    not written again, so an interrupted call can be repeated.

    Args:
        source: a dataset of volumes without operations, or a source for :func:`feedline.open`.
        output: a local folder, which is created if necessary.
        patch: extents of the patches that will be read, in voxels.
        fields: the fields of `source`, if it is not a dataset.

    Raises:
        ConfigError: the source has no volumes, or an argument is invalid.
        DataError, StorageError: a volume cannot be read, or the output cannot be written.
    """
    from ..data.dataset import Dataset
    from ..data.sources import open as open_source

    sizes = arguments.integers(_WHERE, "patch", patch, 1)
    if "://" in os.fspath(output):
        raise ConfigError(f"{_WHERE}: Zarr is written to a local folder, not to {output!r}")
    dataset = source if isinstance(source, Dataset) else open_source(source, fields=fields)
    kinds = {name: kind for name, kind, *_ in dataset._engine.roles()}
    if "volume" not in kinds.values():
        raise ConfigError(
            f"{_WHERE}: Zarr needs a source with volumes (NIfTI, Zarr, HDF5, .npy), not {dataset.source!r}"
        )
    if dataset.operations:
        raise ConfigError(f"{_WHERE}: volumes are stored without operations; remove {dataset.operations[0]}")
    folder = Path(output)
    chunk = tuple(min(max(size // 2, _LEAST_CHUNK), _MOST_CHUNK) for size in sizes)
    written = skipped = 0
    digits = max(5, len(str(len(dataset) - 1)))
    for index in range(len(dataset)):
        target = folder / f"{index:0{digits}d}.zarr"
        if target.exists():
            skipped += 1
            continue
        sample = dataset.sample(index)
        affine = getattr(sample, "affine", None) if "affine" in sample._fields else None
        arrays = {name: getattr(sample, name) for name, kind in kinds.items() if kind == "volume"}
        written += _write(target, arrays, chunk, None if affine is None else affine.tolist())
    return VolumeReport(len(dataset), skipped, written, chunk)


def _write(target: Path, arrays: dict[str, Any], chunk: tuple[int, ...], affine: Any) -> int:
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        temporary.mkdir(parents=True)
        (temporary / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))
        written = sum(
            _write_array(temporary / name, array, chunk, affine if number == 0 else None)
            for number, (name, array) in enumerate(arrays.items())
        )
        temporary.replace(target)
    except OSError as error:
        raise StorageError(f"cannot write {str(target)!r}: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return written


def _write_array(folder: Path, array: numpy.ndarray[Any, Any], chunk: tuple[int, ...], affine: Any) -> int:
    if len(chunk) > array.ndim:
        raise ConfigError(f"{_WHERE}: patch has {len(chunk)} axes, but the volume has the shape {array.shape}")
    leading = (1,) * (array.ndim - len(chunk))
    inner = leading + chunk
    shard = leading + tuple(
        size * math.ceil(min(extent, _MOST_SHARD) / size)
        for size, extent in zip(chunk, array.shape[len(leading) :], strict=True)
    )
    codec, compress = _compressor()
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    sharding = {
        "chunk_shape": inner,
        "codecs": [little, codec],
        "index_codecs": [little, {"name": "crc32c"}],
        "index_location": "end",
    }
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": array.shape,
        "data_type": array.dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": False if array.dtype.kind == "b" else 0,
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        "attributes": {} if affine is None else {"affine": affine},
    }
    folder.mkdir()
    (folder / "zarr.json").write_text(json.dumps(metadata))
    written = 0
    for at, part in _parts(array, shard):
        data = _shard(part, shard, inner, compress)
        if data is None:
            continue
        path = folder.joinpath("c", *map(str, at))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written += len(data)
    return written


def _parts(array: Any, size: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The parts of a grid, with their indexes; the last ones may be smaller."""
    counts = [math.ceil(extent / along) for extent, along in zip(array.shape, size, strict=True)]
    for at in itertools.product(*map(range, counts)):
        yield at, array[tuple(slice(i * along, (i + 1) * along) for i, along in zip(at, size, strict=True))]


def _shard(part: Any, shard: Sequence[int], inner: Sequence[int], compress: Callable[[bytes], bytes]) -> bytes | None:
    """Returns the shard, or None if all of its elements are zero."""
    import numpy

    counts = [along // size for along, size in zip(shard, inner, strict=True)]
    index = dict.fromkeys(itertools.product(*map(range, counts)), _NOT_STORED)
    body = bytearray()
    for at, chunk in _parts(part, inner):
        if not chunk.any():
            continue
        whole = numpy.zeros(inner, part.dtype.newbyteorder("<"))
        whole[tuple(map(slice, chunk.shape))] = chunk
        stored = compress(whole.tobytes())
        index[at] = (len(body), len(stored))
        body += stored
    if not body:
        return None
    table = b"".join(struct.pack("<QQ", *place) for place in index.values())
    return bytes(body) + table + struct.pack("<I", _engine.crc32c(table))


def _compressor() -> tuple[dict[str, Any], Callable[[bytes], bytes]]:
    try:
        import zstandard
    except ImportError:
        return {"name": "gzip", "configuration": {"level": 5}}, lambda data: gzip.compress(data, 5, mtime=0)
    return {"name": "zstd", "configuration": {"level": 3, "checksum": False}}, zstandard.ZstdCompressor(3).compress
