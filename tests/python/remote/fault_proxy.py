# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy that does, request by request, what networks and servers do wrong.

It stands before a server as that server (a reverse proxy): `FaultProxy(upstream, plan)` asks `plan` for each request
which fault its answer has. What faults there are: `HEALED`, after which a client that keeps its promises has the right
bytes, and `FATAL`, after which it has an error, as the answer is about other bytes than those asked for.
"""

from __future__ import annotations

import random
import re
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

HEALED = (
    "cut",  # inside the body
    "cut_at_border",  # before a member of the tar
    "cut_in_head",
    "closed",  # before the answer
    "reset",
    "reset_in_body",
    "stall",  # in the body; until the client goes
    "silence",  # no byte of an answer
    "429",
    "503",
    "garbage",
    "slow_start",
)
FATAL = ("empty_200", "too_short", "too_long", "other_etag", "other_range")


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


@dataclass
class Answer:
    status_line: bytes
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def set(self, name: str, value: str) -> None:
        self.headers = [pair for pair in self.headers if pair[0].lower() != name.lower()]
        self.headers.append((name, value))

    def get(self, name: str) -> str:
        return next((value for own, value in self.headers if own.lower() == name.lower()), "")

    def head(self) -> bytes:
        lines = [self.status_line, *(f"{name}: {value}".encode("latin-1") for name, value in self.headers)]
        return b"\r\n".join([*lines, b"", b""])


Plan = Callable[[Request], str]  # the fault; "": none
Borders = Callable[[str], list[int]]  # of a target: where its members begin


def refusal(status: int, words: str, body: bytes = b"", **headers: str) -> Answer:
    answer = Answer(f"HTTP/1.1 {status} {words}".encode())
    for name, value in headers.items():
        answer.set(name.replace("_", "-"), value)
    answer.body = body
    answer.set("Content-Length", str(len(body)))
    return answer


class FaultProxy:
    """Serves until `stop()`. `plan` runs under a lock: one request after the other."""

    def __init__(
        self,
        upstream: tuple[str, int],
        plan: Plan = lambda request: "",
        *,
        tls: ssl.SSLContext | None = None,
        borders: Borders = lambda target: [],
        answers: Callable[[Request], Answer | None] = lambda request: None,
        delay_s: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.upstream, self.plan, self.tls, self.borders, self.answers = upstream, plan, tls, borders, answers
        self.delay_s = delay_s  # before each answer
        self.faults: Counter[str] = Counter()
        self.requests = 0
        self.body_bytes = 0  # of answers that were sent on
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self.address = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def stop(self) -> None:
        self._stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):  # it is closed already
                    connection.shutdown(socket.SHUT_RDWR)
        self._accepting.join()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)
        server = _Upstream(self.upstream)
        try:
            if self.tls:
                raw = connection
                connection = self.tls.wrap_socket(raw, server_side=True)
                with self._lock:
                    self._open.discard(raw)
                    self._open.add(connection)
            with connection.makefile("rb") as stream:  # an open one would keep the connection
                while request := _read_request(stream):
                    if not self._answer(request, connection, server):
                        break
        except (OSError, EOFError, ValueError):
            pass  # one of the two has gone
        finally:
            with self._lock:
                self._open.discard(connection)
            server.close()
            connection.close()

    def _answer(self, request: Request, connection: socket.socket, server: _Upstream) -> bool:
        """False: the connection is over."""
        with self._lock:
            request.number, self.requests = self.requests, self.requests + 1
            made = self.answers(request)
            fault = "" if made else self.plan(request)
            chance = self._random.random()
            if fault:
                self.faults[fault] += 1
        if self.delay_s:
            self._stopping.wait(self.delay_s)
        if made:
            connection.sendall(made.head() + made.body)
            return True
        if fault in ("closed", "silence", "reset", "429", "503", "garbage"):
            return self._answer_by_itself(fault, chance, connection)
        answer = server.ask(request)
        with self._lock:
            self.body_bytes += len(answer.body)
        return self._spoil(fault, chance, request, answer, connection)

    def _answer_by_itself(self, fault: str, chance: float, connection: socket.socket) -> bool:
        if fault in ("429", "503"):
            words = "Too Many Requests" if fault == "429" else "Slow Down"
            after = "1" if chance < 0.02 else "0"
            connection.sendall(refusal(int(fault), words, b"not now", Retry_After=after).head() + b"not now")
            return True
        if fault == "garbage":
            connection.sendall(random.Random(chance).randbytes(200))
        elif fault == "silence":
            _wait_until_closed(connection)
        elif fault == "reset":
            _reset(connection)
        return False

    def _spoil(self, fault: str, chance: float, request: Request, answer: Answer, connection: socket.socket) -> bool:
        body = answer.body
        if fault == "cut_in_head":
            head = answer.head()
            connection.sendall(head[: 1 + int(chance * (len(head) - 2))])
            return False
        if fault in ("cut", "cut_at_border", "reset_in_body", "stall"):
            end = int(chance * len(body))
            if fault == "cut_at_border":
                end = self._border(request, chance, len(body))
            connection.sendall(answer.head() + body[:end])
            if fault == "stall":
                _wait_until_closed(connection)
            if fault == "reset_in_body":
                _reset(connection)
            return False
        if fault == "slow_start":
            for byte in answer.head()[:20]:
                connection.sendall(bytes([byte]))
            connection.sendall(answer.head()[20:] + body)
            return True
        return self._lie(fault, answer, connection)

    def _lie(self, fault: str, answer: Answer, connection: socket.socket) -> bool:
        body = answer.body
        if fault == "empty_200":
            answer.status_line, body = b"HTTP/1.1 200 OK", b""
            answer.headers = [pair for pair in answer.headers if pair[0].lower() != "content-range"]
            answer.set("Content-Length", "0")
        elif fault == "too_short":  # by one of the two lengths that it has, and in truth
            body = body[:-7]
            answer.set("Content-Length", str(len(body)))
        elif fault == "too_long":
            body += b"7 more."
            answer.set("Content-Length", str(len(body)))
        elif fault == "other_etag":
            answer.set("ETag", '"another"')
        elif fault == "other_range":
            answer.set("Content-Range", _moved(answer.get("Content-Range")))
        else:
            assert not fault, fault
        connection.sendall(answer.head() + body)
        return True

    def _border(self, request: Request, chance: float, size: int) -> int:
        first = request.first_byte
        inside = [border - first for border in self.borders(request.target) if first < border < first + size]
        return inside[int(chance * len(inside))] if inside else int(chance * size) & ~511


class _Upstream:
    """One connection to the server, opened when it is wanted."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._socket: socket.socket | None = None

    def ask(self, request: Request) -> Answer:
        for is_last in (False, True):
            if self._socket is None:
                self._socket = socket.create_connection(self._address)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._stream = self._socket.makefile("rb")
            try:
                self._socket.sendall(request.head + request.body)
                return self._read(request.method)
            except (OSError, EOFError):
                self.close()  # the server had ended an idle connection
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
            answer.headers = [pair for pair in answer.headers if pair[0].lower() != "transfer-encoding"]
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


def _exactly(stream: object, size: int) -> bytes:
    data: bytes = stream.read(size)  # type: ignore[attr-defined]
    if len(data) < size:
        raise EOFError
    return data


def _read_head(stream: object) -> tuple[bytes, list[tuple[str, str]]]:
    first: bytes = stream.readline()  # type: ignore[attr-defined]
    if not first:
        raise EOFError
    headers = []
    while line := stream.readline().strip():  # type: ignore[attr-defined]
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name.strip(), value.strip()))
    return first.strip(), headers


def _read_request(stream: object) -> Request | None:
    try:
        first, pairs = _read_head(stream)
    except (EOFError, OSError):
        return None
    method, target, _ = first.decode("latin-1").split(" ", 2)
    headers = {name.lower(): value for name, value in pairs}
    head = b"\r\n".join([first, *(f"{name}: {value}".encode("latin-1") for name, value in pairs), b"", b""])
    body = _exactly(stream, int(headers.get("content-length", 0)))
    return Request(0, method, target, headers, head, body)


def _wait_until_closed(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _moved(content_range: str) -> str:
    """The same number of bytes, a byte further on."""
    found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", content_range)
    return f"bytes {int(found[1]) + 1}-{int(found[2]) + 1}/{int(found[3]) + 1}" if found else "bytes none"


@contextmanager
def proxied(upstream: tuple[str, int], plan: Plan = lambda request: "", **options: object) -> Iterator[FaultProxy]:
    proxy = FaultProxy(upstream, plan, **options)  # type: ignore[arg-type]
    try:
        yield proxy
    finally:
        proxy.stop()


def free_port() -> int:
    """One that nobody uses now, for servers that take no port 0."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port
