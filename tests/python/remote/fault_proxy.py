# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy that imitates faults of networks and servers, request by request.

It is a reverse proxy: `FaultProxy(upstream, plan)` calls `plan` for each request, which returns the fault of the
response. Faults: after `HEALED`, a correct client has the right bytes; `HEALED_TLS` are the same for encrypted
connections; after `FATAL`, it has an error, because the response contains other bytes than those requested.
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
from email.utils import formatdate
from typing import BinaryIO, cast

from http_messages import Answer, Request, Upstream, read_request, refusal

__all__ = ["FATAL", "HEALED", "HEALED_TLS", "FaultProxy", "Request", "free_port", "proxied", "refusal"]

HEALED = (
    "cut",  # inside the body
    "cut_at_border",  # before a member of the tar
    "cut_in_head",
    "closed",  # before the answer
    "reset",
    "reset_in_body",
    "stall",  # in the body, until the client disconnects
    "silence",  # no byte of a response
    "429",
    "503",
    "busy",  # synonyms of it
    "garbage",
    "slow_start",
    "whole_200",  # the whole object in place of a range
    "too_short",  # a Content-Length that contradicts the Content-Range
    "too_long",
)
HEALED_TLS = (
    "cut_in_record",
    "broken_record",  # bytes that nobody with the keys has sent
)
FATAL = ("empty_200", "no_length", "other_etag", "other_range", "412")

_BUSY = {408: "Request Timeout", 425: "Too Early", 500: "Internal Server Error", 502: "Bad Gateway", 504: "Timeout"}
_WITHOUT_THE_SERVER = ("closed", "silence", "reset", "429", "503", "busy", "garbage", "412")

Plan = Callable[[Request], str]  # the fault; "": none
Borders = Callable[[str], list[int]]  # of a target: where its members begin
Origin = Callable[[Request], Answer]  # a server that is a function


class FaultProxy:
    """Serves until `stop()`. `plan` runs under a lock, for one request at a time. With the same seed, the same request
    with the same number (the first, the second with these bytes) has the same fault.
    """

    def __init__(
        self,
        upstream: tuple[str, int] | Origin,
        plan: Plan = lambda request: "",
        *,
        tls: ssl.SSLContext | None = None,
        borders: Borders = lambda target: [],
        answers: Callable[[Request], Answer | None] = lambda request: None,
        handshakes: Callable[[int], bool] = lambda number: False,
        delay_s: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.upstream, self.plan, self.tls, self.borders, self.answers = upstream, plan, tls, borders, answers
        self.handshakes = handshakes  # whether this connection ends with the fault of TLS
        self.delay_s = delay_s  # before each answer
        self.faults: Counter[str] = Counter()
        self.requests = self.connections = 0
        self.body_bytes = 0  # of responses that were forwarded
        self._seed = seed
        self._asked: Counter[tuple[str, str]] = Counter()
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
                with suppress(OSError):  # it is already closed
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
        server = Upstream(self.upstream) if isinstance(self.upstream, tuple) else None
        ask: Origin = server.ask if server else cast(Origin, self.upstream)
        try:
            if self.tls:
                raw = connection
                if self._cuts_handshake(raw):
                    return
                connection = self.tls.wrap_socket(raw, server_side=True)
                with self._lock:
                    self._open.discard(raw)
                    self._open.add(connection)
            with connection.makefile("rb") as stream:  # an open one would keep the connection alive
                while request := read_request(cast(BinaryIO, stream)):
                    if not self._answer(request, connection, ask):
                        break
        except (OSError, EOFError, ValueError):
            pass  # one of the two has ended
        finally:
            with self._lock:
                self._open.discard(connection)
            if server:
                server.close()
            connection.close()

    def _cuts_handshake(self, connection: socket.socket) -> bool:
        with self._lock:
            number, self.connections = self.connections, self.connections + 1
            cuts = self.handshakes(number)
            if cuts:
                self.faults["cut_in_handshake"] += 1
        if cuts:
            connection.recv(4096)  # its first bytes
        return cuts

    def _answer(self, request: Request, connection: socket.socket, ask: Origin) -> bool:
        """False: the connection has ended."""
        with self._lock:
            request.number, self.requests = self.requests, self.requests + 1
            made = self.answers(request)
            fault = "" if made else self.plan(request)
            self._asked[request.place] += 1
            chance = random.Random(f"{self._seed} {request.place} {self._asked[request.place]}").random()
            if fault:
                self.faults[fault] += 1
        if self.delay_s:
            self._stopping.wait(self.delay_s)
        if made:
            connection.sendall(made.head() + made.body)
            return True
        if fault in _WITHOUT_THE_SERVER:
            return _answer_by_itself(fault, chance, connection)
        answer = ask(request.of_the_whole() if fault == "whole_200" else request)
        with self._lock:
            self.body_bytes += len(answer.body)
        return self._spoil(fault, chance, request, answer, connection)

    def _spoil(self, fault: str, chance: float, request: Request, answer: Answer, connection: socket.socket) -> bool:
        body = answer.body
        if fault == "cut_in_head":
            head = answer.head()
            connection.sendall(head[: 1 + int(chance * (len(head) - 2))])
            return False
        if fault in ("cut", "cut_at_border", "reset_in_body", "stall", *HEALED_TLS):
            end = int(chance * len(body))
            if fault == "cut_at_border":
                end = self._border(request, chance, len(body))
            connection.sendall(answer.head() + body[:end])
            if fault == "stall":
                _wait_until_closed(connection)
            if fault == "reset_in_body":
                _reset(connection)
            if fault in HEALED_TLS:
                _send_record(connection, is_whole=fault == "broken_record")
            return False
        if fault == "slow_start":
            for byte in answer.head()[:20]:
                connection.sendall(bytes([byte]))
            connection.sendall(answer.head()[20:] + body)
            return True
        return _lie(fault, answer, connection)

    def _border(self, request: Request, chance: float, size: int) -> int:
        first = request.first_byte
        inside = [border - first for border in self.borders(request.target) if first < border < first + size]
        return inside[int(chance * len(inside))] if inside else int(chance * size) & ~511


def _answer_by_itself(fault: str, chance: float, connection: socket.socket) -> bool:
    if fault in ("429", "503", "busy"):
        status, words = (429, "Too Many Requests") if fault == "429" else (503, "Slow Down")
        after = "1" if chance < 0.02 else "0" if chance < 0.5 else formatdate(usegmt=True)
        if fault == "busy":
            status, words = list(_BUSY.items())[int(chance * len(_BUSY))]
        answer = refusal(status, words, b"not now", **({} if fault == "busy" else {"Retry_After": after}))
        connection.sendall(answer.head() + answer.body)
        return True
    if fault == "412":
        connection.sendall(refusal(412, "Precondition Failed").head())
        return True
    if fault == "garbage":
        connection.sendall(random.Random(chance).randbytes(200))
    elif fault == "silence":
        _wait_until_closed(connection)
    elif fault == "reset":
        _reset(connection)
    return False


def _lie(fault: str, answer: Answer, connection: socket.socket) -> bool:
    body = answer.body
    if fault == "empty_200":
        answer.status_line, body = b"HTTP/1.1 200 OK", b""
        answer.remove("Content-Range")
        answer.set("Content-Length", "0")
    elif fault == "too_short":  # by one of its two lengths, and by its real length
        body = body[:-7]
        answer.set("Content-Length", str(len(body)))
    elif fault == "too_long":
        body += b"7 more."
        answer.set("Content-Length", str(len(body)))
    elif fault == "no_length":  # only the range, as if it were the whole object
        answer.status_line = b"HTTP/1.1 200 OK"
        answer.remove("Content-Range")
        answer.remove("Content-Length")
    elif fault == "other_etag":
        answer.set("ETag", '"another"')
    elif fault == "other_range":
        answer.set("Content-Range", _moved(answer.get("Content-Range")))
    else:
        assert fault in ("", "whole_200"), fault
    connection.sendall(answer.head() + body)
    return fault != "no_length"


def _wait_until_closed(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _send_record(connection: socket.socket, is_whole: bool) -> None:
    """Forwards a record of TLS after the handshake: completely, or truncated."""
    assert isinstance(connection, ssl.SSLSocket)
    size = 512
    record = struct.pack(">BHH", 23, 0x303, size) + bytes(size)
    with socket.socket(fileno=socket.dup(connection.fileno())) as raw:
        raw.sendall(record if is_whole else record[: size // 2])


def _moved(content_range: str) -> str:
    """Returns the same number of bytes, from one byte later."""
    found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", content_range)
    return f"bytes {int(found[1]) + 1}-{int(found[2]) + 1}/{int(found[3]) + 1}" if found else "bytes none"


@contextmanager
def proxied(
    upstream: tuple[str, int] | Origin, plan: Plan = lambda request: "", **options: object
) -> Iterator[FaultProxy]:
    proxy = FaultProxy(upstream, plan, **options)  # type: ignore[arg-type]
    try:
        yield proxy
    finally:
        proxy.stop()


def free_port() -> int:
    """Returns an unused port, for servers that do not support port 0."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port
