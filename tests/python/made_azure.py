# SPDX-License-Identifier: Apache-2.0
"""A simulated Azure blob server for reading: blobs, ranges, and listings in pages."""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

ACCOUNT = "someone"
_PAGE = 5  # number of names in a page; it is small so that small folders have several pages
_DATE = "Thu, 01 Jan 2026 00:00:00 GMT"


class BlobServer(http.server.ThreadingHTTPServer):
    """`blobs`: by container and key; may be changed while the server runs."""

    daemon_threads = True

    def __init__(self, blobs: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.blobs = blobs
        self.requests: list[str] = []

    @property
    def environment(self) -> dict[str, str]:
        """The settings with which obstore finds the server."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{self.server_address[1]}/{ACCOUNT}",
            "AZURE_STORAGE_SAS_TOKEN": "sv=2026-01-01&sig=hunter2",
            "AZURE_ALLOW_HTTP": "true",
        }

    @property
    def connection(self) -> str:
        """The settings with which adlfs finds the server."""
        found = self.environment
        return "BlobEndpoint={AZURE_STORAGE_ENDPOINT};SharedAccessSignature={AZURE_STORAGE_SAS_TOKEN}".format(**found)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # see range_server.py
    server: BlobServer

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        _, account, name = unquote(parts.path).split("/", 2)
        self.server.requests.append(f"{self.command} {name}")
        if account != ACCOUNT or asked.get("sig") != "hunter2":
            return self._answer(403)
        if asked.get("comp") == "list":
            return self._answer(200, _listing(self.server.blobs, name, asked).encode(), Content_Type="application/xml")
        data = self.server.blobs.get(name)
        if data is None:
            return self._answer(404)
        said = {"ETag": _etag(data), "Last_Modified": _DATE}
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", self.headers.get("x-ms-range", "")))
        if not found:
            return self._answer(200, data, **said)
        first, last = int(found[1]), int(found[2] or len(data) - 1)
        body = data[first : last + 1]
        return self._answer(206, body, Content_Range=f"bytes {first}-{first + len(body) - 1}/{len(data)}", **said)


def _etag(data: bytes) -> str:
    return '"' + hashlib.sha256(data).hexdigest()[:16] + '"'


def _listing(blobs: dict[str, bytes], container: str, asked: dict[str, str]) -> str:
    front, cut = asked.get("prefix", ""), asked.get("delimiter")
    entries: dict[str, str] = {}
    for name, data in sorted(blobs.items()):
        key = name.removeprefix(container + "/")
        if not name.startswith(container + "/") or not key.startswith(front):
            continue
        rest = key[len(front) :]
        if cut and cut in rest:
            folder = front + rest.partition(cut)[0] + cut
            entries[folder] = f"<BlobPrefix><Name>{escape(folder)}</Name></BlobPrefix>"
            continue
        entries[key] = (
            f"<Blob><Name>{escape(key)}</Name><Properties><Last-Modified>{_DATE}</Last-Modified>"
            f"<Content-Length>{len(data)}</Content-Length><Etag>{escape(_etag(data))}</Etag>"
            "<Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType></Properties></Blob>"
        )
    begin = int(asked.get("marker") or 0)
    page = list(entries.values())[begin : begin + _PAGE]
    following = str(begin + _PAGE) if begin + _PAGE < len(entries) else ""
    return (
        f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="{container}">'
        f"<Blobs>{''.join(page)}</Blobs><NextMarker>{following}</NextMarker></EnumerationResults>"
    )


@contextmanager
def serving_blobs(blobs: dict[str, bytes]) -> Iterator[BlobServer]:
    server = BlobServer(blobs)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
