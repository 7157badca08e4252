# SPDX-License-Identifier: Apache-2.0
"""Reads Chrome traces event by event, so that files of several gigabytes need memory for only one event.

A trace is either an object with a list ``traceEvents`` among other keys, or just the list, plain or gzipped. torch
writes truncated files when it is killed, and some versions write invalid JSON; in both cases the readable events are
returned, and :attr:`Reader.damage` describes the rest.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..errors import DataError, StorageError

_CHUNK = 1 << 20  # bytes per read: more is not faster
_LARGEST_VALUE = 64 << 20  # maximum characters of a value; longer ones are damaged
_DEFINITE_DAMAGE = 1 << 20  # characters after an event that does not parse: torch's events are shorter
_EVENT_START = re.compile(r'\{\s*"(?:ph|name|cat|pid|tid|ts|args|id|s|dur|bp)"\s*:')
_GZIP = 31  # zlib's value for gzip headers and the largest window
_NUMBER_GOES_ON = "0123456789.eE+-"  # or the empty string, the end of the buffer
_SPACE = re.compile(r"[\s,]*")


class Reader:
    """One pass over a trace file.

    Attributes:
        header: all top-level values except the events; complete after all events have been read.
        damage: one sentence for each part that could not be read.
        complete: whether the end of the event list was found.

    Args:
        path: a ``.json`` or ``.json.gz`` file; the format is detected from its content.
        advance: called with the number of file bytes read since the last call.

    Raises:
        StorageError: the file cannot be read.
        DataError: raised during iteration if the file has no list of events.
    """

    def __init__(self, path: str | os.PathLike[str], advance: Callable[[int], None] | None = None) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = {}
        self.damage: list[str] = []
        self.complete = False
        self._advance = advance
        self._decoder = json.JSONDecoder(strict=False)  # names of kernels and files may contain control characters
        self._text, self._at, self._before = "", 0, 0
        self._skipped = 0
        try:
            self._file = self.path.open("rb")
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}", errno=error.errno, shard=str(path)) from None
        self._more = self._chunks()
        self._ended = False

    def events(self) -> Iterator[dict[str, Any]]:
        """Iterates over all events in file order."""
        with self._file:
            first = self._peek()
            if first == "[":
                self._at += 1
                yield from self._list()
            elif first == "{":
                self._at += 1
                yield from self._object()
            else:
                raise DataError(f"{self.path}: not a Chrome trace: it begins with {first!r}", shard=str(self.path))
        if self._skipped:
            self.damage.append(f"{self._skipped} damaged events were skipped")

    def _object(self) -> Iterator[dict[str, Any]]:
        found = False
        while True:
            try:
                after = self._peek()
                if after in ("}", ""):
                    break
                key = self._value()
                if self._peek() != ":":
                    raise ValueError("no colon")
                self._at += 1
                if key == "traceEvents" and self._peek() == "[":
                    found = True
                    self._at += 1
                    yield from self._list()
                else:
                    self.header[str(key)] = self._value()
            except ValueError:
                self.damage.append(f"not JSON at character {self._before + self._at:,}; the rest was not read")
                break
        if not found:
            raise DataError(f"{self.path}: not a Chrome trace: it has no list named traceEvents", shard=str(self.path))

    def _list(self) -> Iterator[dict[str, Any]]:
        while True:
            following = self._peek()
            if following == "]":
                self._at += 1
                self.complete = True
                return
            if following == "":
                self.damage.append("the file ends in the list of events; the program may have been killed")
                return
            try:
                value = self._value(_DEFINITE_DAMAGE)
            except ValueError:
                if not self._resynchronise():
                    return
                continue
            if isinstance(value, dict):
                yield value
            else:
                self._skipped += 1

    def _resynchronise(self) -> bool:
        """Resumes at the next likely event after one that cannot be parsed."""
        while True:
            found = _EVENT_START.search(self._text, self._at + 1)
            if found:
                self._skipped += 1
                self._at = found.start()
                return True
            # maximum length of an event's start that the end of the buffer truncates
            self._at = max(self._at, len(self._text) - 64)
            if not self._fill():
                self.damage.append("the file ends in the middle of an event; the program may have been killed")
                self._at = len(self._text)
                return False

    def _peek(self) -> str:
        """Returns the next character that is neither whitespace nor a comma; empty at the end of the file."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # matches nothing as well
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill():
                return ""

    def _value(self, patience: int = _LARGEST_VALUE) -> Any:
        """Parses the JSON value at the current position; raises ValueError if it is invalid or longer than
        `patience`.
        """
        self._peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
                # a number may continue after the buffer: "1." parses as "1"
                if self._text[end : end + 1] not in _NUMBER_GOES_ON or not self._fill():
                    self._at = end
                    return value
            except (ValueError, RecursionError) as error:
                if len(self._text) - self._at > patience or not self._fill():
                    raise ValueError("damaged") from error

    def _fill(self) -> bool:
        """Reads more text and discards the text before the current position. Returns False at the end of the file."""
        chunk = next(self._more, None)
        if chunk is None:
            return False
        self._before += self._at
        self._text, self._at = self._text[self._at :] + chunk, 0
        return True

    def _chunks(self) -> Iterator[str]:
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        for data in self._plain_bytes():
            text = decode(data)
            if text:
                yield text

    def _plain_bytes(self) -> Iterator[bytes]:
        """Iterates over the uncompressed content of the file. A gzip file may be truncated."""
        first = self._read()
        if not first.startswith(b"\x1f\x8b"):
            while first:
                yield first
                first = self._read()
            return
        try:
            yield from self._unpacked(first)
        except zlib.error as error:
            self.damage.append(f"the gzip stream is damaged: {error}")

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        unpack = zlib.decompressobj(wbits=_GZIP)
        while data:
            yield unpack.decompress(data, _CHUNK)  # limits the output even for highly compressed input
            data = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
            data = data or self._read()
            if data and unpack.eof:  # a gzip file may have several members
                unpack = zlib.decompressobj(wbits=_GZIP)
        if not unpack.eof:
            self.damage.append("the gzip stream is truncated")
            yield unpack.flush()

    def _read(self) -> bytes:
        try:
            data = self._file.read(_CHUNK)
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}", errno=error.errno, shard=str(self.path)) from None
        if self._advance is not None:
            self._advance(len(data))
        return data
