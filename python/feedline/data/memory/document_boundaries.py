# SPDX-License-Identifier: Apache-2.0
"""Files with the boundaries of documents in token files, as OLMo-core's tools write them."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from array import array
from collections.abc import Iterator

from ...errors import ConfigError, DataError, StorageError


def ends_of(where: str, path: str) -> bytes:
    """Returns the ends of the documents as little-endian u64.

    A line has the first token of a document and the one after its last, both counted in the token file from 0:
    ``START,END`` with any further columns (``.csv``, ``write_document_indices`` in ``src/olmo_core/data/utils.py`` at
    fa6c501), or an object with ``start`` and ``end`` (``.jsonl``); both may be compressed (``.gz``).

    Raises:
        ConfigError: the name has another ending.
        StorageError: the file cannot be read.
        DataError: a line is not valid, or the documents do not follow one another from token 0 on.
    """
    name = path.removesuffix(".gz")
    if not name.endswith((".csv", ".jsonl", ".ndjson")):
        raise ConfigError(f"{where}: boundaries must be .csv or .jsonl files, also with .gz, not {path!r}")
    parse = _of_row if name.endswith(".csv") else _of_object
    ends, last = array("Q"), 0
    try:
        for number, line in enumerate(_lines(path), 1):
            if line.isspace() or (number == 1 and line.startswith(b"start,end")):
                continue
            try:
                start, end = parse(line)
            except (ValueError, KeyError, TypeError):
                why = f"expected the start and end of a document, not {line[:80]!r}"
                raise _damaged(where, path, number, why) from None
            if start != last or end < start:
                why = f"the document from token {start} to {end} does not follow the previous one, which ends at {last}"
                raise _damaged(where, path, number, why)
            if end >= 2**63:
                raise _damaged(where, path, number, f"a document cannot end at token {end}: no file is that large")
            ends.append(end)
            last = end
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{where}: {path} is damaged or truncated: {error}", shard=path) from None
    except OSError as error:
        raise StorageError(f"{where}: cannot read {path}: {error.strerror}", errno=error.errno, shard=path) from None
    if sys.byteorder == "big":
        ends.byteswap()
    return ends.tobytes()


def _lines(path: str) -> Iterator[bytes]:
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        yield from file


def _of_row(line: bytes) -> tuple[int, int]:
    start, end, *_ = line.split(b",", 2)
    return int(start), int(end)


def _of_object(line: bytes) -> tuple[int, int]:
    record = json.loads(line)
    start, end = record["start"], record["end"]
    if type(start) is not int or type(end) is not int:
        raise TypeError
    return start, end


def _damaged(where: str, path: str, line: int, why: str) -> DataError:
    return DataError(f"{where}: line {line} of {path}: {why}", shard=path)
