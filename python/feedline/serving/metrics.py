# SPDX-License-Identifier: Apache-2.0
"""Statistics of running loaders over HTTP, for Prometheus and whoever else reads OpenMetrics text.

Off unless asked for, by :meth:`feedline.Loader.metrics` or by the environment variable ``FEEDLINE_METRICS_PORT``. It
listens on 127.0.0.1 alone. One thread serves all loaders of a port, and ends with the last of them.
"""

from __future__ import annotations

import contextlib
import http.server
import itertools
import os
import socket
import threading
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from ..errors import ConfigError, Error
from . import exposition

if TYPE_CHECKING:
    from ..drop_in.data_loader import DataLoader
    from ..loader.loader import Loader


AnyLoader: TypeAlias = Union["Loader", "DataLoader[Any]"]
ADDRESS = "127.0.0.1"
_LOOK_S = 0.5  # how soon the thread sees that the last loader is gone without having been closed
_REQUEST_S = 5.0  # a client that sends nothing is given up

_lock = threading.Lock()
_servers: dict[int, _Server] = {}
_numbers = itertools.count()
_watches_forks = False


def serve(loader: AnyLoader, port: int = 0, name: str | None = None) -> str:
    """Serves the statistics of `loader` until it is closed; returns the URL.

    Args:
        port: 0 takes a free one. Several loaders may share one; they differ in the label ``loader``.
        name: value of that label; a running number by default.

    Raises:
        ConfigError: the port is taken, or another loader there has that name.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ConfigError(f"metrics: port must be an integer from 0 to 65535, not {port!r}")
    label = str(next(_numbers)) if name is None else name
    with _lock:
        server = _servers.get(port)
        if server is None or server.ended:
            server = _start(port)
        if label in server.loaders:
            raise ConfigError(f"metrics: port {server.port} already serves a loader of the name {label!r}")
        server.loaders[label] = weakref.ref(loader)
    return server.url


def serve_by_environment(loader: AnyLoader) -> None:
    """Serves `loader` on the port of ``FEEDLINE_METRICS_PORT``; ranks of one machine on the ones after it.

    A port that is taken or makes no sense is a warning: nobody's training should stop for it.
    """
    given, local_rank = os.environ.get("FEEDLINE_METRICS_PORT", ""), os.environ.get("LOCAL_RANK", "0")
    try:
        serve(loader, int(given) + (int(local_rank) if int(given) else 0))
    except (ValueError, Error) as error:
        import logging

        logging.getLogger("feedline").warning("FEEDLINE_METRICS_PORT=%s: no metrics: %s", given, error)


def withdraw(loader: AnyLoader) -> None:
    """Ends serving `loader`; with the last loader of a port, its thread."""
    with _lock:
        idle = [server for server in _servers.values() if server.forget(loader)]
        for server in idle:
            _servers.pop(server.port, None)
    for server in idle:
        server.stop()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.loaders: dict[str, weakref.ref[AnyLoader]] = {}
        self.port = int(self.server_address[1])
        self.url = f"http://{ADDRESS}:{self.port}/metrics"
        self.ended = False
        self.timeout = _LOOK_S
        self._thread = threading.Thread(target=self._run, name="feedline-metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def forget(self, loader: AnyLoader) -> bool:
        """Whether it served `loader`, and now serves none."""
        mine = [label for label, other in self.loaders.items() if other() is loader]
        for label in mine:
            del self.loaders[label]
        return bool(mine) and not self.loaders

    def stop(self) -> None:
        """Frees the port."""
        self.ended = True
        with contextlib.suppress(OSError):  # wakes the thread, which waits for a request
            socket.create_connection((ADDRESS, self.port), timeout=_LOOK_S).close()
        if threading.current_thread() is not self._thread:
            self._thread.join(_REQUEST_S)  # it closes the socket, which on a busy machine can take a while

    def text(self) -> str:
        """What a request is answered with."""
        statistics: dict[str, dict[str, Any]] = {}
        for label, reference in list(self.loaders.items()):
            loader = reference()
            if loader is not None:
                statistics[label] = loader._counters()
        return exposition.text(statistics)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news for the training's output."""

    def _run(self) -> None:
        while not self.ended:
            self.handle_request()
            with _lock:
                self.ended = self.ended or not any(reference() for reference in list(self.loaders.values()))
                if self.ended:
                    _servers.pop(self.port, None)
                    self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = _REQUEST_S
    server: _Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "see /metrics")
            return
        body = self.server.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", exposition.CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: Any) -> None:
        """Says nothing: the terminal is the training's."""


def _start(port: int) -> _Server:
    global _watches_forks
    if not _watches_forks:
        os.register_at_fork(after_in_child=_forget_parent)
        _watches_forks = True
    try:
        server = _Server(port)
    except OSError as error:
        raise ConfigError(f"metrics: port {port} of {ADDRESS}: {error.strerror}; give another, or 0") from None
    _servers[server.port] = server
    server.start()
    return server


def _forget_parent() -> None:
    """In a forked child: the thread is the parent's, and so is the port."""
    global _lock
    _lock = threading.Lock()
    for server in _servers.values():
        server.socket.close()
    _servers.clear()
