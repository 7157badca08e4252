# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 requests and responses, as the tests' servers read and write them."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, cast


@dataclass
class Request:
    number: int  # of the proxy
    method: str
    target: str
    headers: dict[str, str]  # names in lower case
    head: bytes = b""
    body: bytes = b""

    @property
    def first_byte(self) -> int:
        found = re.match(r"bytes=(\d+)-", self.headers.get("range", ""))
        return int(found[1]) if found else 0

    @property
    def place(self) -> tuple[str, str]:
        """Returns what is requested: the object, and the range of its bytes."""
        return self.target, self.headers.get("range", "")

    def of_the_whole(self) -> Request:
        """Returns the same request without a range."""
        lines = [line for line in self.head.split(b"\r\n") if not line.lower().startswith(b"range:")]
        headers = {name: value for name, value in self.headers.items() if name != "range"}
        return Request(self.number, self.method, self.target, headers, b"\r\n".join(lines), self.body)


@dataclass
class Answer:
    status_line: bytes
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def set(self, name: str, value: str) -> None:
        self.remove(name)
        self.headers.append((name, value))

    def remove(self, name: str) -> None:
        self.headers = [pair for pair in self.headers if pair[0].lower() != name.lower()]

    def get(self, name: str) -> str:
        return next((value for own, value in self.headers if own.lower() == name.lower()), "")

    def head(self) -> bytes:
        lines = [self.status_line, *(f"{name}: {value}".encode("latin-1") for name, value in self.headers)]
        return b"\r\n".join([*lines, b"", b""])


def refusal(status: int, words: str, body: bytes = b"", **headers: str) -> Answer:
    answer = Answer(f"HTTP/1.1 {status} {words}".encode())
    for name, value in headers.items():
        answer.set(name.replace("_", "-"), value)
    answer.body = body
    answer.set("Content-Length", str(len(body)))
    return answer


def read_request(stream: BinaryIO) -> Request | None:
    try:
        first, pairs = _read_head(stream)
    except (EOFError, OSError):
        return None
    method, target, _ = first.decode("latin-1").split(" ", 2)
    headers = {name.lower(): value for name, value in pairs}
    head = b"\r\n".join([first, *(f"{name}: {value}".encode("latin-1") for name, value in pairs), b"", b""])
    body = _exactly(stream, int(headers.get("content-length", 0)))
    return Request(0, method, target, headers, head, body)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _read_head(stream: BinaryIO) -> tuple[bytes, list[tuple[str, str]]]:
    first = stream.readline()
    if not first:
        raise EOFError
    headers = []
    while line := stream.readline().strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name.strip(), value.strip()))
    return first.strip(), headers


class Upstream:
    """A connection to a server, opened when it is needed."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._socket: socket.socket | None = None

    def ask(self, request: Request) -> Answer:
        for is_last in (False, True):
            if self._socket is None:
                self._socket = socket.create_connection(self._address)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._stream = cast(BinaryIO, self._socket.makefile("rb"))
            try:
                self._socket.sendall(request.head + request.body)
                return self._read(request.method)
            except (OSError, EOFError):
                self.close()  # the server had closed an idle connection
                if is_last:
                    raise
        raise AssertionError

    def close(self) -> None:
        if self._socket is not None:
            self._stream.close()
            self._socket.close()
            self._socket = None

    def _read(self, method: str) -> Answer:
        status_line, headers = _read_head(self._stream)
        answer = Answer(status_line, headers)
        if method == "HEAD" or status_line.split()[1] in (b"204", b"304"):
            return answer
        if "chunked" in answer.get("Transfer-Encoding").lower():
            answer.body = b"".join(self._chunks())
            answer.remove("Transfer-Encoding")
            answer.set("Content-Length", str(len(answer.body)))
        else:
            answer.body = _exactly(self._stream, int(answer.get("Content-Length") or 0))
        return answer

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._stream.readline().split(b";")[0], 16):
            yield _exactly(self._stream, size)
            self._stream.readline()
        while self._stream.readline().strip():
            pass
