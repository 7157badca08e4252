# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face Hub for tests, with a second port as the host of large files.

Serves the requests that feedline, huggingface_hub and datasets send, and the errors of the Hub. Set `HF_ENDPOINT` to
`MadeHub.url`. Attributes switch faults on; `requests` lists what was received.
"""

from __future__ import annotations

import functools
import hashlib
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

TOKEN = "hf_made"
SMALL = 2_000  # bytes; larger files are on the other host, like those in LFS


class Request(NamedTuple):
    host: str  # "hub" or "cdn"
    method: str
    path: str  # with its query, decoded
    headers: dict[str, str]
    status: int
    sent: int  # bytes of the body


class Repository:
    """Commits of a dataset: `files` by path for each, and the branches that refer to them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.commits: dict[str, dict[str, bytes]] = {}
        self.branches: dict[str, str] = {}
        self.is_private = self.is_gated = False

    def commit(self, files: dict[str, bytes | str], branch: str = "main") -> str:
        stored = {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}
        digest = hashlib.sha1(repr((len(self.commits), sorted(stored))).encode())
        commit = digest.hexdigest()
        self.commits[commit] = stored
        self.branches[branch] = commit
        return commit


@functools.lru_cache
def etag_of(content: bytes) -> str:
    """The hash in the listing, which is the ETag of the Hub's answer."""
    if len(content) > SMALL:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class MadeHub:
    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.renamed: dict[str, str] = {}
        self.page = 1000  # entries of a listing's page
        self.lifetime = 3600.0  # seconds of signed URLs
        self.next_host = ""  # of Link: empty for this host
        self.cdn_refuses = 0  # so many signed URLs are answered with 403
        self.is_damaged = False  # the other host changes a byte
        self.whole_for_ranges = False  # the other host ignores Range
        self.small_by_redirect = False  # small files by a relative 307
        self.throttled: list[tuple[str, str, float]] = []  # (part of a path, style, seconds): one answer 429 for each
        self.requests: list[Request] = []
        self.blobs: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._servers = [_server(self, _HubHandler), _server(self, _CdnHandler)]
        self.url, self.cdn = (f"http://127.0.0.1:{server.server_port}" for server in self._servers)

    def repository(self, name: str, files: dict[str, bytes | str]) -> Repository:
        made = self.repositories[name] = Repository(name)
        made.commit(files)
        return made

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def note(self, request: Request) -> None:
        with self._lock:
            self.requests.append(request)

    def take_refusal(self) -> bool:
        with self._lock:
            is_refused = self.cdn_refuses > 0
            self.cdn_refuses -= is_refused
            return is_refused

    def take_throttle(self, path: str) -> tuple[str, float] | None:
        with self._lock:
            for i, (part, style, seconds) in enumerate(self.throttled):
                if part in path:
                    del self.throttled[i]
                    return style, seconds
        return None

    def count(self, part: str = "", host: str = "") -> int:
        """The number of requests whose path contains `part`."""
        return sum(part in request.path and host in request.host for request in self.requests)


@contextmanager
def serve() -> Iterator[MadeHub]:
    hub = MadeHub()
    try:
        yield hub
    finally:
        hub.close()


def _server(hub: MadeHub, handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *arguments: object) -> None:
            """A client that disconnects during a response is not an error."""

    server = Server(("127.0.0.1", 0), type(handler.__name__, (handler,), {"hub": hub}))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    hub: MadeHub
    host = ""

    def log_message(self, *_: Any) -> None: ...

    def answer(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        path = urllib.parse.unquote(self.path)
        sent = 0 if self.command == "HEAD" else len(body)
        self.hub.note(Request(self.host, self.command, path, dict(self.headers.items()), status, sent))
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if sent:
            self.wfile.write(body)

    def answer_content(self, content: bytes, headers: dict[str, str], ignores_range: bool = False) -> None:
        ranges = self.headers.get("Range", "")
        is_recoded = self.host == "hub" and "gzip" in self.headers.get("Accept-Encoding", "")
        if not ranges.startswith("bytes=") or ignores_range or is_recoded:
            return self.answer(200, headers, content)
        first, last = ranges.removeprefix("bytes=").split("-")
        begin = int(first) if first else max(0, len(content) - int(last))
        end = min(int(last) + 1 if last and first else len(content), len(content))
        if begin >= len(content):
            return self.answer(416, {"Content-Range": f"bytes */{len(content)}"})
        headers |= {"Content-Range": f"bytes {begin}-{end - 1}/{len(content)}"}
        return self.answer(206, headers, content[begin:end])


class _CdnHandler(_Handler):
    host = "cdn"

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        if "Authorization" in self.headers:
            return self.answer(400, body=b"the token was sent to another host")
        if "If-Match" in self.headers:
            return self.answer(412)
        if self.hub.take_refusal() or float(query["Expires"][0]) < time.time():
            return self.answer(403, body=b"<Error><Message>Request has expired</Message></Error>")
        content = self.hub.blobs[url.path.removeprefix("/blob/")]
        if self.hub.is_damaged:
            content = content[:100] + bytes([content[100] ^ 1]) + content[101:]
        etag = hashlib.sha256(url.path.encode()).hexdigest()  # another value than the Hub's
        return self.answer_content(content, {"ETag": f'"{etag}"'}, self.hub.whole_for_ranges)

    do_HEAD = do_GET


class _HubHandler(_Handler):
    host = "hub"

    def error(self, status: int, code: str, message: str) -> None:
        self.answer(status, {"X-Error-Code": code, "X-Error-Message": message}, message.encode())

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.form = urllib.parse.parse_qs(self.rfile.read(length).decode()) if length else {}
        if (throttle := self.hub.take_throttle(self.path)) is not None:
            style, seconds = throttle
            window = {"RateLimit": f'"resolvers";r=0;t={int(seconds)}'}
            return self.answer(429, window if style == "window" else {"Retry-After": str(int(seconds))}, b"slow down")
        url = urllib.parse.urlsplit(self.path)
        parts = [urllib.parse.unquote(part) for part in url.path.split("/")[1:]]
        query = urllib.parse.parse_qs(url.query)
        if parts[:2] == ["api", "datasets"]:
            return self.answer_api(parts[2:], query)
        if parts[:2] == ["api", "resolve-cache"]:
            repository, commit, path = "/".join(parts[2:4]), parts[4], "/".join(parts[5:])
            return self.answer_small(self.hub.repositories[repository].commits[commit][path], commit)
        if parts[0] == "datasets" and parts[3:4] == ["resolve"]:
            return self.answer_file("/".join(parts[1:3]), parts[4], "/".join(parts[5:]))
        return self.answer(404)

    do_HEAD = do_POST = do_GET

    def opened(self, name: str, revision: str) -> tuple[Repository, str] | None:
        """Returns the dataset and a commit; None after an error or a redirect was sent."""
        if name in self.hub.renamed:
            self.answer(307, {"Location": self.path.replace(name, self.hub.renamed[name], 1)})
            return None
        repository = self.hub.repositories.get(name)
        has_token = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if repository is None or (repository.is_private and not has_token):
            self.error(404 if has_token else 401, "RepoNotFound", "Repository not found")
            return None
        if repository.is_gated:
            self.error(403 if has_token else 401, "GatedRepo", f"Access to dataset {name} is restricted.")
            return None
        commit = repository.branches.get(revision, revision)
        if commit not in repository.commits:
            self.error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return repository, commit

    def answer_api(self, parts: list[str], query: dict[str, list[str]]) -> None:
        name, what, revision = (
            "/".join(parts[:2]),
            parts[2] if len(parts) > 2 else "revision",
            (parts[3:4] or ["main"])[0],
        )
        if (opened := self.opened(name, revision)) is None:
            return None
        repository, commit = opened
        files = repository.commits[commit]
        if what == "revision":
            siblings = [{"rfilename": path} for path in files]
            info = {"_id": "0", "id": name, "sha": commit, "private": False, "tags": [], "siblings": siblings}
            return self.answer(200, {"Content-Type": "application/json"}, json.dumps(info).encode())
        if what == "paths-info":
            found = [entry for path in self.form.get("paths", []) for entry in _entries(files, path, exact=True)]
            return self.answer(200, {"Content-Type": "application/json"}, json.dumps(found).encode())
        folder = "/".join(parts[4:])
        entries = _entries(files, folder, recursive=query.get("recursive", ["false"])[0].lower() in ("true", "1"))
        if folder and not entries:
            return self.error(404, "EntryNotFound", f"{folder} does not exist")
        begin = int(query.get("cursor", ["0"])[0])
        headers = {"Content-Type": "application/json"}
        if begin + self.hub.page < len(entries):
            rest = {key: values[0] for key, values in query.items() if key != "cursor"}
            target = urllib.parse.urlsplit(self.path).path
            target += "?" + urllib.parse.urlencode(rest | {"cursor": begin + self.hub.page})
            headers["Link"] = f'<{self.hub.next_host or self.hub.url}{target}>; rel="next"'
        return self.answer(200, headers, json.dumps(entries[begin : begin + self.hub.page]).encode())

    def answer_small(self, content: bytes, commit: str) -> None:
        self.answer_content(content, {"ETag": f'"{etag_of(content)}"', "X-Repo-Commit": commit})

    def answer_file(self, name: str, revision: str, path: str) -> None:
        if (opened := self.opened(name, revision)) is None:
            return None
        repository, commit = opened
        content = repository.commits[commit].get(path)
        if content is None:
            return self.error(404, "EntryNotFound", f"{path} does not exist")
        if len(content) <= SMALL and self.hub.small_by_redirect:
            target = f"/api/resolve-cache/{name}/{commit}/{urllib.parse.quote(path)}"
            return self.answer(307, {"Location": target, "ETag": f'"{etag_of(content)}"', "X-Repo-Commit": commit})
        if len(content) <= SMALL:
            return self.answer_small(content, commit)
        etag = etag_of(content)
        self.hub.blobs[etag] = content
        expires = (
            f"{time.time() + self.hub.lifetime:.3f}" if self.hub.lifetime < 60 else int(time.time() + self.hub.lifetime)
        )
        return self.answer(
            302,
            {
                "Location": f"{self.hub.cdn}/blob/{etag}?Expires={expires}&Signature={'s' * 1200}",
                "X-Linked-Size": str(len(content)),
                "X-Linked-ETag": f'"{etag}"',
                "X-Repo-Commit": commit,
            },
        )


def _entries(files: dict[str, bytes], folder: str, *, recursive: bool = False, exact: bool = False) -> list[dict]:
    """The entries of a listing, in the Hub's order."""
    found: dict[str, dict[str, Any]] = {}
    for path, content in sorted(files.items()):
        if exact and path == folder:
            return [_entry(path, content)]
        if exact and path.startswith(folder + "/"):
            return [{"type": "directory", "path": folder, "size": 0, "oid": "0" * 40}]
        if folder and not path.startswith(folder + "/"):
            continue
        depth = folder.count("/") + 1 if folder else 0
        parts = path.split("/")
        for end in range(depth + 1, len(parts)):
            above = "/".join(parts[:end])
            if recursive or end == depth + 1:
                found.setdefault(above, {"type": "directory", "path": above, "size": 0, "oid": "0" * 40})
        if recursive or len(parts) == depth + 1:
            found[path] = _entry(path, content)
    return list(found.values()) if not exact else []


def _entry(path: str, content: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": path, "size": len(content)}
    if len(content) <= SMALL:
        return entry | {"oid": etag_of(content)}
    lfs = {"oid": etag_of(content), "size": len(content), "pointerSize": 133}
    return entry | {"oid": hashlib.sha1(content).hexdigest(), "lfs": lfs}
