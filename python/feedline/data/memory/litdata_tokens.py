# SPDX-License-Identifier: Apache-2.0
"""Reads LitData's token datasets (for its TokensLoader) as token files. A chunk consists of a table of its documents,
followed by their concatenated tokens.

    documents (uint32) | their offsets, and the end (uint32 each) | tokens
"""

from __future__ import annotations

import json
import os
import re
import struct
from typing import Any

from ...errors import ConfigError, DataError, StorageError

_INDEX = "index.json"
_FORMAT = re.compile(r"no_header_tensor:(\d+)")
# Integer dtypes, by LitData's numbers for torch's dtypes.
_DTYPES = {
    11: ("uint8", 1),
    13: ("int16", 2),
    14: ("int16", 2),
    15: ("int32", 4),
    16: ("int32", 4),
    17: ("int64", 8),
    18: ("int64", 8),
    20: ("uint16", 2),
}


def is_one(path: str) -> bool:
    """Whether the path is a folder with LitData's index, or the index itself."""
    return os.path.basename(path) == _INDEX or os.path.isfile(os.path.join(path, _INDEX))


def files_of(where: str, path: str) -> list[tuple[str, int, str]]:
    """Returns the path, the number of bytes before the first token, and the dtype of each chunk, in the index's order.

    Args:
        where: the caller's name, for messages.
        path: a local folder, or its index.

    Raises:
        ConfigError: the folder is not a token dataset, or its tokens are compressed, encrypted, or not integers.
        DataError: a chunk's size does not match the index.
        StorageError: the index or a chunk cannot be opened.
    """
    index = path if os.path.basename(path) == _INDEX else os.path.join(path, _INDEX)
    config, chunks = _read(where, index)
    if config.get("item_loader") != "TokensLoader":
        raise ConfigError(f"{where}: {index} is not an index of LitData's TokensLoader")
    for what in ("compression", "encryption"):
        if config.get(what):
            raise ConfigError(f"{where}: the chunks of {index} have a {what} ({config[what]}), which is not supported")
    dtype, size = _dtype_of(where, index, config)
    folder = os.path.dirname(index)
    return [
        (*_place_of(os.path.join(folder, name), documents, tokens * size), dtype) for name, documents, tokens in chunks
    ]


def documents_of(where: str, path: str) -> int:
    """Returns the number of documents. Raises as :func:`files_of`."""
    index = path if os.path.basename(path) == _INDEX else os.path.join(path, _INDEX)
    return sum(documents for _, documents, _ in _read(where, index)[1])


def _read(where: str, index: str) -> tuple[dict[str, Any], list[tuple[str, int, int]]]:
    """Returns the settings, and for each chunk the file name and the numbers of documents and tokens."""
    try:
        with open(index, encoding="utf-8") as file:
            found = json.load(file)
    except OSError as error:
        raise StorageError(f"{where}: cannot open {index}: {error.strerror or error}", errno=error.errno) from None
    except ValueError as error:
        raise DataError(f"{where}: {index} is not valid JSON: {error}", shard=index) from None
    try:
        chunks = [(one["filename"], int(one["chunk_size"]), int(one["dim"] or 0)) for one in found["chunks"]]
        config = dict(found["config"])
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"{where}: {index} is not an index of LitData's chunks") from None
    wrong = next((name for name, *_ in chunks if not isinstance(name, str) or os.path.basename(name) != name), None)
    if wrong is not None:
        raise DataError(f"{where}: {wrong!r} is not the name of a chunk in the folder of {index}", shard=index)
    return config, chunks


def _dtype_of(where: str, index: str, config: dict[str, Any]) -> tuple[str, int]:
    formats = config.get("data_format")
    match = _FORMAT.fullmatch(str(formats[0])) if isinstance(formats, list) and len(formats) == 1 else None
    dtype = _DTYPES.get(int(match[1])) if match else None
    if dtype is None:
        raise ConfigError(f"{where}: the values of {index} are {formats}, which are not supported as tokens")
    return dtype


def _place_of(path: str, documents: int, expected: int) -> tuple[str, int]:
    """Returns the chunk's path and the offset of its tokens."""
    begin = 4 * (documents + 2)
    try:
        with open(path, "rb") as file:
            size, head = os.fstat(file.fileno()).st_size, file.read(4)
    except OSError as error:
        raise StorageError(f"cannot open {path}: {error.strerror or error}", errno=error.errno) from None
    if len(head) < 4 or struct.unpack("<I", head)[0] != documents or size != begin + expected:
        says = f"{documents} documents of {expected} bytes after {begin}"
        raise DataError(f"{path} has {size} bytes, but its index requires a chunk of {says}", shard=path)
    return path, begin
