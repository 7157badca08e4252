# SPDX-License-Identifier: Apache-2.0
"""Lists the chunks of HDF5 datasets with h5py, once; the engine reads the chunks. See src/format/volumes/hdf5_volume.h.

The list of a dataset is stored in the folder of indexes, or in the user's cache folder, and is used until the file's
size or modification time changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

from .. import _engine
from ..errors import ConfigError, StorageError

_MAGIC = b"FLh5chk1"
_NOT_STORED = 2**64 - 1


def list_of(path: str, array: str, index: str) -> str:
    """Returns the path of the list of a dataset's chunks, which is made if it does not exist.

    Raises:
        ConfigError: h5py is needed and not installed; the file is remote, or has no such dataset; or `array` is empty
            and the file has several.
        StorageError: the file cannot be opened, or the list cannot be written.
    """
    if "://" in path:
        raise ConfigError(f"open: {path!r} is remote, but HDF5 files must be local: copy it, or convert it to Zarr")
    try:
        stat = os.stat(path)
    except OSError as error:
        raise StorageError(f"cannot open {path!r}: {error.strerror}") from error
    digest = hashlib.sha256(f"{os.path.realpath(path)}\n{array}".encode(errors="surrogateescape")).hexdigest()[:32]
    stored = _folder(index) / f"{digest}.chunks"
    if _is_current(stored, stat):
        return str(stored)
    data = _listed(path, array, stat)
    try:
        stored.parent.mkdir(parents=True, exist_ok=True)
        temporary = stored.with_name(f"{stored.name}.{os.getpid()}")
        temporary.write_bytes(data)
        temporary.replace(stored)
    except OSError as error:
        raise StorageError(f"cannot store the list of the chunks of {path!r} in {stored}: {error.strerror}") from error
    return str(stored)


def _folder(index: str) -> Path:
    if index:
        return Path(index)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "feedline" / "hdf5"


def _is_current(stored: Path, stat: os.stat_result) -> bool:
    try:
        with open(stored, "rb") as file:
            head = file.read(24)
            if head[:8] != _MAGIC:
                return False
            facts = json.loads(file.read(struct.unpack("<Q", head[16:24])[0]))
    except (OSError, ValueError, struct.error):
        return False
    return bool(facts.get("bytes") == stat.st_size and facts.get("mtime_ns") == stat.st_mtime_ns)


def _listed(path: str, array: str, stat: os.stat_result) -> bytes:
    try:
        import h5py
    except ImportError:
        raise ConfigError(
            f"open: h5py lists the chunks of {path!r} when it is first opened, and is not installed: pip install h5py"
        ) from None
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise StorageError(f"cannot open {path!r} as HDF5: {error}") from error
    with file:
        dataset = _dataset(file, path, array, h5py)
        facts: dict[str, Any] = {
            "bytes": stat.st_size,
            "mtime_ns": stat.st_mtime_ns,
            "dtype": dataset.dtype.str,
            "shape": dataset.shape,
            "fill": _fill(dataset),
        }
        table = b""
        plist = dataset.id.get_create_plist()
        layout = plist.get_layout()
        if layout == h5py.h5d.CHUNKED:
            facts |= {
                "chunk": dataset.chunks,
                "filters": [plist.get_filter(i)[0] for i in range(plist.get_nfilters())],
            }
            table = _table(dataset)
        elif layout == h5py.h5d.CONTIGUOUS and not plist.get_external_count() and dataset.id.get_offset() is not None:
            facts["offset"] = dataset.id.get_offset()
        elif layout == h5py.h5d.CONTIGUOUS and not plist.get_external_count():
            facts |= {"chunk": dataset.shape, "filters": []}  # never written
            table = struct.pack("<QII", _NOT_STORED, 0, 0)
        else:
            raise ConfigError(
                f"open: the dataset {dataset.name!r} of {path!r} is stored compactly, externally or virtually, which "
                "is not supported; copy it with chunks"
            )
    text = json.dumps(facts).encode()
    rest = struct.pack("<Q", len(text)) + text + table
    return _MAGIC + struct.pack("<Q", _engine.crc32c(rest)) + rest


def _dataset(file: Any, path: str, array: str, h5py: Any) -> Any:
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    name = array.strip("/") or (names[0] if len(names) == 1 else "")
    dataset = file.get(name) if name else None  # follows soft links
    if not isinstance(dataset, h5py.Dataset) or dataset.file.filename != file.filename:
        what = f"has no dataset {array!r}" if array else 'has several datasets: name one with fields=, "image=PATH"'
        raise ConfigError(f"open: {path!r} {what}; it has {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}")
    if dataset.dtype.kind not in "biuf" or not dataset.shape or 0 in dataset.shape:
        raise ConfigError(
            f"open: the dataset {name!r} of {path!r} has the dtype {dataset.dtype} and shape {dataset.shape}; volumes "
            "are numbers of at least one axis"
        )
    return dataset


def _fill(dataset: Any) -> str:
    import numpy

    dtype = dataset.dtype.newbyteorder("<")
    return numpy.asarray(0 if dataset.fillvalue is None else dataset.fillvalue, dtype).tobytes().hex()


def _table(dataset: Any) -> bytes:
    import numpy

    counts = [-(-extent // chunk) for extent, chunk in zip(dataset.shape, dataset.chunks, strict=True)]
    total = int(numpy.prod(counts))
    table = numpy.zeros(total, [("offset", "<u8"), ("bytes", "<u4"), ("mask", "<u4")])
    table["offset"] = _NOT_STORED

    def note(chunk: Any) -> None:
        at = 0
        for offset, size, count in zip(chunk.chunk_offset, dataset.chunks, counts, strict=True):
            at = at * count + offset // size
        table[at] = (chunk.byte_offset, chunk.size, chunk.filter_mask)

    if hasattr(dataset.id, "chunk_iter"):
        dataset.id.chunk_iter(note)
    else:
        for i in range(dataset.id.get_num_chunks()):
            note(dataset.id.get_chunk_info(i))
    return table.tobytes()
