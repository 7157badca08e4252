# SPDX-License-Identifier: Apache-2.0
"""Reads Chrome traces event by event, so that a file of gigabytes needs the memory of one event.

A trace is either an object with a list ``traceEvents`` among other keys, or the bare list, plain or gzipped. torch
leaves files without their end when it is killed, and has written some that are not JSON inside; both give the events
that can be read, and :attr:`Reader.damage` says what could not.
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

_CHUNK = 1 << 20  # bytes read at a time: larger is no faster
_LARGEST_VALUE = 64 << 20  # characters; what does not end within them is damaged
_DEFINITE_DAMAGE = 1 << 20  # characters behind an event that does not parse: no event of torch's is so long
_EVENT_START = re.compile(r'\{\s*"(?:ph|name|cat|pid|tid|ts|args|id|s|dur|bp)"\s*:')
_GZIP = 31  # zlib's word for gzip headers and the largest window
_NUMBER_GOES_ON = "0123456789.eE+-"  # or the empty string, the end of what is here
_SPACE = re.compile(r"[\s,]*")


class Reader:
    """One pass over a trace file.

    Attributes:
        header: every top-level value but the events; complete after the pass.
        damage: one sentence for each thing that could not be read.
        complete: the list of events had an end.

    Args:
        path: a ``.json`` or ``.json.gz`` file; what it is, is seen from its bytes.
        advance: called with the number of bytes of the file that were read since the last call.

    Raises:
        StorageError: the file cannot be read.
        DataError: while iterating: there is no list of events in it.
    """

    def __init__(self, path: str | os.PathLike[str], advance: Callable[[int], None] | None = None) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = {}
        self.damage: list[str] = []
        self.complete = False
        self._advance = advance
        self._decoder = json.JSONDecoder(strict=False)  # names of kernels and files may hold control characters
        self._text, self._at, self._before = "", 0, 0
        self._skipped = 0
        try:
            self._file = self.path.open("rb")
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}", errno=error.errno, shard=str(path)) from None
        self._more = self._chunks()
        self._ended = False

    def events(self) -> Iterator[dict[str, Any]]:
        """Every event, in the file's order."""
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
            self.damage.append(f"{self._skipped} damaged events were left out")

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
                self.damage.append(f"not JSON at character {self._before + self._at:,}; what follows was not read")
                break
        if not found:
            raise DataError(f"{self.path}: not a Chrome trace: it has no list traceEvents", shard=str(self.path))

    def _list(self) -> Iterator[dict[str, Any]]:
        while True:
            following = self._peek()
            if following == "]":
                self._at += 1
                self.complete = True
                return
            if following == "":
                self.damage.append("the file ends within the list of events, as when the program was killed")
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
        """Goes on behind an event that does not parse, at what looks like the next one."""
        while True:
            found = _EVENT_START.search(self._text, self._at + 1)
            if found:
                self._skipped += 1
                self._at = found.start()
                return True
            # a start that is cut by the end of the text is at most this long
            self._at = max(self._at, len(self._text) - 64)
            if not self._fill():
                self.damage.append("the file ends within an event, as when the program was killed")
                self._at = len(self._text)
                return False

    def _peek(self) -> str:
        """The next character that is neither space nor comma; empty at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # matches nothing as well
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill():
                return ""

    def _value(self, patience: int = _LARGEST_VALUE) -> Any:
        """The JSON value that begins here; ValueError where it is none, or does not end within `patience`."""
        self._peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
                # a number may go on behind what is here: "1." has "1" in it
                if self._text[end : end + 1] not in _NUMBER_GOES_ON or not self._fill():
                    self._at = end
                    return value
            except (ValueError, RecursionError) as error:
                if len(self._text) - self._at > patience or not self._fill():
                    raise ValueError("damaged") from error

    def _fill(self) -> bool:
        """Reads on, and forgets the text before the place. False at the end of the file."""
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
        """The file's bytes, unpacked. A gzip file's end may be missing."""
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
            yield unpack.decompress(data, _CHUNK)  # no more at once, however well it was packed
            data = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
            data = data or self._read()
            if data and unpack.eof:  # members may follow each other
                unpack = zlib.decompressobj(wbits=_GZIP)
        if not unpack.eof:
            self.damage.append("the gzip stream has no end")
            yield unpack.flush()

    def _read(self) -> bytes:
        try:
            data = self._file.read(_CHUNK)
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}", errno=error.errno, shard=str(self.path)) from None
        if self._advance is not None:
            self._advance(len(data))
        return data
