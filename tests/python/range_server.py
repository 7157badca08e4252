# SPDX-License-Identifier: Apache-2.0
"""An HTTP server for a folder, which supports ranges and conditions, and makes errors that a test requests."""

from __future__ import annotations

import functools
import hashlib
import http.server
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

Fault = Callable[[int, str], str]  # number of the request, its path -> "", "503", "cut", "wrong_range", "changed"


def etag_of(data: bytes) -> dict[str, str]:
    return {"ETag": '"' + hashlib.sha256(data).hexdigest()[:16] + '"'}


class RangeServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, root: Path, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        super().__init__(address, functools.partial(_Handler, self))
        self.root = root
        self.requests: list[tuple[str, str]] = []  # path and range
        self.fault: Fault = lambda number, path: ""
        self.credentials: set[str] = set()  # the signatures or authorisations of requests
        self.validators = etag_of  # the headers of a version
        self.sums: Callable[[bytes], dict[str, str]] = lambda data: {}  # headers of whole objects
        self.damage: Callable[[int, bytes], bytes] = lambda number, body: body  # number of the request
        self.lock = threading.Lock()

    def handle_error(self, *arguments: object) -> None:
        """A client that disconnects during a response is not an error."""

    def url(self, path: object) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = (
        True  # headers and body are two writes: without this, the second would wait 40 ms for an acknowledgement
    )

    def __init__(self, own: RangeServer, *arguments: object) -> None:
        self.own = own
        super().__init__(*arguments)  # type: ignore[arg-type]

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"", cut: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:cut])
        if cut is not None:
            self.close_connection = True

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        with self.own.lock:
            number = len(self.own.requests)
            self.own.requests.append((path, self.headers.get("Range", "")))
            self.own.credentials |= {self.path, *map(self.headers.get, ("Authorization", "x-amz-security-token"))} - {
                None
            }
        fault = self.own.fault(number, path)
        file = self.own.root / path.lstrip("/")
        if fault == "503":
            return self._answer(503, b"later", Retry_After="0")
        if not file.is_file():
            return self._answer(404, b"not here")
        data = file.read_bytes()
        version = self.own.validators(data + (b"x" if fault == "changed" else b""))
        if self.headers.get("If-Match", version.get("ETag")) != version.get("ETag"):
            return self._answer(412)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not asked:
            sums = self.own.sums(data)
            return self._answer(200, self.own.damage(number, data), 100 if fault == "cut" else None, **version, **sums)
        first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
        if first >= len(data):
            return self._answer(416, Content_Range=f"bytes */{len(data)}")
        body = self.own.damage(number, data[first : last + 1])
        said = first + 1 if fault == "wrong_range" else first
        return self._answer(
            206,
            body,
            len(body) // 2 if fault == "cut" else None,
            Content_Range=f"bytes {said}-{said + len(body) - 1}/{len(data)}",
            **version,
        )


@contextmanager
def serving(root: Path) -> Iterator[RangeServer]:
    server = RangeServer(root)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
