# SPDX-License-Identifier: Apache-2.0
"""The documents of a source in parts: samples of a dataset, or lines of JSONL files. A document is a text or a
conversation.

JSONL files are read line by line as ranges of bytes, without an index: a dataset of tables would hold all text in
memory.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .. import _engine
from ..data.dataset import Dataset
from ..data.sources import shown_source
from ..data.text.tokenizing import Conversation, Tokens
from ..errors import ConfigError, DataError, Error
from ..machine.storage import local_path

_LINES = re.compile(r"\.(jsonl|ndjson)(\.(gz|bz2|zst))?$", re.IGNORECASE)
_BLOCK = 4 << 20  # bytes per read
BYTES_PER_PART = 64 << 20  # of a JSONL file: seconds of work, and at most a few thousand parts per 100 GB
_MOST_PARTS = 4096  # of a dataset
FEWEST_PER_PART = 1024  # samples


@dataclass(frozen=True)
class Part:
    """A range of documents: samples of a dataset, or, of file number ``file``, lines that begin in a range of bytes."""

    number: int
    file: int
    begin: int
    end: int


@dataclass(frozen=True)
class Document:
    """The value of a document, or the error. ``key`` names the document in messages."""

    key: str
    value: str | Conversation | Tokens = ""
    error: Error | None = None


@dataclass(frozen=True)
class Wanted:
    """The field of a document's text, or of its messages and, if the document has this field, its tools."""

    field: str
    is_chat: bool = False
    tools: str | None = None

    def value(self, look_up: Callable[[str], Any]) -> str | Conversation:
        """Returns a document's value. Raises the exception of `look_up`, or ValueError if the value is not a text."""
        value = look_up(self.field)
        if self.is_chat:
            tools = None
            if self.tools is not None:
                with contextlib.suppress(KeyError):
                    tools = look_up(self.tools)
            return Conversation(value, tools)
        if not isinstance(value, str):
            raise ValueError("the text is missing" if value is None else f"the value is not text but {_kind(value)}")
        return value


def _kind(value: Any) -> str:
    return type(value).__name__


class Documents(Protocol):
    """A source of documents. A pickle of it opens the source again."""

    shown: str
    fingerprint: str  # differs if the documents or the parts differ

    def parts(self) -> list[Part]: ...

    def read(self, part: Part) -> Iterator[Document]:
        """Yields the documents of a part. Errors of a document are in its result; others are raised."""

    def error(self, key: str, field: str, why: str) -> DataError:
        """Returns an error of a document."""


def part_size(samples: int) -> int:
    """Returns the samples per part of a dataset."""
    return max(FEWEST_PER_PART, -(-samples // _MOST_PARTS))


def parts_of(samples: int, per_part: int) -> list[Part]:
    """Divides the samples of a dataset."""
    begins = range(0, samples, per_part)
    return [Part(i, 0, begin, min(begin + per_part, samples)) for i, begin in enumerate(begins)]


class Samples:
    """The samples of an opened dataset."""

    def __init__(self, dataset: Dataset, wanted: Wanted) -> None:
        self._dataset, self._wanted = dataset, wanted
        self.shown = dataset.source
        self._per_part = part_size(len(dataset))
        described = (dataset.fingerprint, wanted.field, dataset.operations, self._per_part)
        self.fingerprint = hashlib.sha256(repr(described).encode()).hexdigest()

    def parts(self) -> list[Part]:
        return parts_of(len(self._dataset), self._per_part)

    def read(self, part: Part) -> Iterator[Document]:
        for index in range(part.begin, part.end):
            yield self._document(index)

    def _document(self, index: int) -> Document:
        key = self._dataset.key(index)
        try:
            sample = dict(self._dataset._engine.sample(index, 0, 0))
        except DataError as error:
            return Document(key, error=error)
        try:
            return Document(key, self._wanted.value(sample.__getitem__))
        except KeyError:
            option = "messages (--messages)" if self._wanted.is_chat else "field (--field)"
            raise ConfigError(
                f"tokenize: field '{self._wanted.field}' does not exist; the fields are {', '.join(sample)}; pass one "
                f"as {option} [dataset {self.shown}]"
            ) from None
        except ValueError as error:
            return Document(key, error=self.error(key, self._wanted.field, str(error)))

    def error(self, key: str, field: str, why: str) -> DataError:
        return DataError(
            f"tokenize: field '{field}': {why} [dataset {self.shown}, key {key}]", dataset=self.shown, key=key
        )


class Lines:
    """The lines of JSONL files, local or remote, also compressed."""

    def __init__(self, shown: str, names: Sequence[str], wanted: Wanted) -> None:
        self.shown, self._names, self._wanted = shown, list(names), wanted
        self._source = _engine.StoredSource("::".join(self._names))
        objects = [self._source.object(os.fsencode(name)) for name in self._names]
        self._sizes = [stored.size for stored in objects]
        described = (self._names, self._sizes, [stored.stamp for stored in objects], wanted.field, BYTES_PER_PART)
        self.fingerprint = hashlib.sha256(repr(described).encode()).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return Lines, (self.shown, self._names, self._wanted)

    def parts(self) -> list[Part]:
        parts: list[Part] = []
        for file, (name, size) in enumerate(zip(self._names, self._sizes, strict=True)):
            step = BYTES_PER_PART if _compression(name) == "" else max(size, 1)
            for begin in range(0, size, step):
                parts.append(Part(len(parts), file, begin, min(begin + step, size)))
        return parts

    def read(self, part: Part) -> Iterator[Document]:
        name = self._names[part.file]
        stored = self._source.object(os.fsencode(name))
        compression = _compression(name)
        if compression:
            lines = _compressed_lines(shown_source(name), stored, compression)
        else:
            lines = _lines(stored, part.begin, part.end)
        for offset, line in lines:
            if line and not line.isspace():
                yield self._document(f"{name}:{offset}", line)
        stored.check_unchanged()

    def _document(self, key: str, line: bytes) -> Document:
        try:
            record = json.loads(line.decode("utf-8-sig" if key.endswith(":0") else "utf-8"))
        except ValueError as error:  # also of the encoding
            return Document(key, error=self.error(key, self._wanted.field, f"the line is not valid JSON: {error}"))
        try:
            return Document(key, self._wanted.value(lambda field: _looked_up(record, field)))
        except KeyError:
            has = ", ".join(record) if isinstance(record, dict) else f"none: the line is a {_kind(record)}"
            why = f"the line has no such field; it has {has}"
        except ValueError as error:
            why = str(error)
        return Document(key, error=self.error(key, self._wanted.field, why))

    def error(self, key: str, field: str, why: str) -> DataError:
        name, _, offset = key.rpartition(":")
        name = shown_source(name)
        return DataError(
            f"tokenize: field '{field}': {why} [dataset {self.shown}, shard {name}, offset {offset}]",
            dataset=self.shown,
            shard=name,
            offset=int(offset),
        )


def lines_of(source: Any) -> list[str] | None:
    """Returns the names of the source's JSONL files, in the order of :func:`feedline.open`; None if it has others."""
    given = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(given, list | tuple) or not all(isinstance(one, str | os.PathLike) for one in given):
        return None
    names: list[str] = []
    for one in given:
        path = os.fspath(one)
        if not isinstance(path, str) or path.startswith("pipe:"):
            return None
        folder = Path(local_path(path))
        if "://" not in path and os.path.isdir(folder):
            names += sorted(str(file) for file in folder.rglob("*") if file.is_file() and _is_visible(file, folder))
        else:
            names += [os.fsdecode(name) for name in _engine.StoredSource(path).shards().names]
    return names if names and all(_LINES.search(name) for name in names) else None


def _is_visible(file: Path, folder: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _compression(name: str) -> str:
    found = _LINES.search(name)
    return (found[3] or "").lower() if found else ""


def _looked_up(record: Any, field: str) -> Any:
    """Returns a field of an object, or of an object in it, as in ``meta.text``."""
    if isinstance(record, dict) and field in record:
        return record[field]
    first, dot, rest = field.partition(".")
    if not dot or not isinstance(record, dict):
        raise KeyError(field)
    return _looked_up(record[first], rest)


def _lines(stored: Any, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yields (byte offset, line) for lines that begin in [begin, end), without their line feeds."""
    before = max(begin - 1, 0)
    lines = _split(_blocks(_Stream(stored, before).read), before)
    if begin > 0:
        next(lines, None)  # what ends with the first line feed from `before` on belongs to an earlier part
    for offset, line in lines:
        if offset >= end:
            return
        yield offset, line


def _compressed_lines(name: str, stored: Any, compression: str) -> Iterator[tuple[int, bytes]]:
    """Yields (offset in the decompressed file, line) for all lines."""
    raw: Any = io.BufferedReader(_Stream(stored, 0), _BLOCK)
    if compression == "zst":
        blocks = _zstd_blocks(name, raw)
    else:
        blocks = _blocks((gzip.GzipFile(fileobj=raw) if compression == "gz" else bz2.BZ2File(raw)).read)
    read = 0
    try:
        for offset, line in _split(blocks, 0):
            yield offset, line
            read = offset + len(line)
    except (EOFError, OSError, ValueError, RuntimeError, zlib.error) as error:
        raise DataError(
            f"tokenize: {name} is damaged or truncated after {read:,} decompressed bytes: {error}", shard=name
        ) from None


def _split(blocks: Iterable[bytes], offset: int) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a file whose first byte is at ``offset``, and their offsets."""
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield offset, line
            offset += len(line) + 1
    if rest:
        yield offset, rest


def _blocks(read: Callable[[int], bytes | None]) -> Iterator[bytes]:
    while block := read(_BLOCK):
        yield block


def _zstd_blocks(name: str, raw: Any) -> Iterator[bytes]:
    """Decompresses frames. The library's own reader treats a truncated frame as the end of the file."""
    try:
        import zstandard
    except ImportError:
        raise ConfigError(f'tokenize: {name} needs zstandard: pip install "feedline[mds]"') from None
    frame = None
    for block in _blocks(raw.read):
        while block:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                yield frame.decompress(block)
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from None
            block = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("the last frame is incomplete")


class _Stream(io.RawIOBase):
    """The bytes of a stored object from an offset on."""

    def __init__(self, stored: Any, offset: int) -> None:
        super().__init__()
        self._stored, self._at, self._size = stored, offset, stored.size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stored.read(self._at, min(len(buffer), self._size - self._at))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)
