# SPDX-License-Identifier: Apache-2.0
"""Statistics of running loaders over HTTP, for Prometheus and others that read its text or OpenMetrics.

Off unless asked for, by :meth:`feedline.Loader.metrics` or by the environment variable ``FEEDLINE_METRICS_PORT``. It
listens on 127.0.0.1 alone. One thread serves all loaders of a port, and ends with the last of them.

prometheus_client (``feedline[metrics]``) writes the answer: OpenMetrics for clients that ask for it, Prometheus' own
text for others. The server is ours, because it ends with its loaders, is left behind at a fork and prints nothing
(docs/decisions/tools-libraries.md).
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import socket
import socketserver
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from ..errors import ConfigError, Error

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

ADDRESS = "127.0.0.1"
_LOOK_S = 0.5  # how soon the thread sees that the last loader is gone without having been closed
_REQUEST_S = 5.0  # a client that sends nothing is given up

_lock = threading.Lock()
_servers: dict[int, _Server] = {}
_numbers = itertools.count()
_watches_forks = False


class CountingLoader(Protocol):
    """A loader whose statistics can be served."""

    def _counters(self) -> dict[str, Any]: ...


def serve(loader: CountingLoader, port: int = 0, name: str | None = None) -> str:
    """Serves the statistics of `loader` until it is closed; returns the URL.

    Args:
        port: 0 takes a free one. Several loaders may share one; they differ in the label ``loader``.
        name: value of that label; a running number by default.

    Raises:
        ConfigError: prometheus_client is not installed, the port is taken, or another loader there has that name.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ConfigError(f"metrics: port must be an integer from 0 to 65535, not {port!r}")
    label = str(next(_numbers)) if name is None else name
    with _lock:
        server = _servers.get(port)
        if server is None or server.ended:
            server = _start(port)
        if label in server.loaders:
            raise ConfigError(f"metrics: port {server.port} already serves a loader named {label!r}")
        server.loaders[label] = weakref.ref(loader)
    return server.url


def serve_by_environment(loader: CountingLoader) -> None:
    """Serves `loader` on the port of ``FEEDLINE_METRICS_PORT``; ranks of one machine on the ones after it.

    A port that is taken or makes no sense is a warning: nobody's training should stop for it.
    """
    given, local_rank = os.environ.get("FEEDLINE_METRICS_PORT", ""), os.environ.get("LOCAL_RANK", "0")
    try:
        serve(loader, int(given) + (int(local_rank) if int(given) else 0))
    except (ValueError, Error) as error:
        import logging

        logging.getLogger("feedline").warning("FEEDLINE_METRICS_PORT=%s: no metrics: %s", given, error)


def withdraw(loader: CountingLoader) -> None:
    """Ends serving `loader`; with the last loader of a port, its thread."""
    with _lock:
        idle = [server for server in _servers.values() if server.forget(loader)]
        for server in idle:
            _servers.pop(server.port, None)
    for server in idle:
        server.stop()


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, port: int) -> None:
        self._write = _writer(self.statistics)
        super().__init__((ADDRESS, port), _Handler)
        self.loaders: dict[str, weakref.ref[CountingLoader]] = {}
        self.port = int(self.server_address[1])
        self.url = f"http://{ADDRESS}:{self.port}/metrics"
        self.ended = False
        self.timeout = _LOOK_S
        self.set_app(self._application)
        self._thread = threading.Thread(target=self._run, name="feedline-metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def forget(self, loader: CountingLoader) -> bool:
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

    def statistics(self) -> dict[str, dict[str, Any]]:
        """Of every loader that is still there, by its label."""
        found: dict[str, dict[str, Any]] = {}
        for label, reference in list(self.loaders.items()):
            loader = reference()
            if loader is not None:
                found[label] = loader._counters()
        return found

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news for the training's output."""

    def _application(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/metrics":
            return self._write(environ, start_response)
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"see /metrics\n"]

    def _run(self) -> None:
        while not self.ended:
            self.handle_request()
            with _lock:
                self.ended = self.ended or not any(reference() for reference in list(self.loaders.values()))
                if self.ended:
                    _servers.pop(self.port, None)
                    self.server_close()


class _Handler(WSGIRequestHandler):
    timeout = _REQUEST_S

    def get_stderr(self) -> io.StringIO:
        """For tracebacks of what could not be answered: the terminal is the training's."""
        return io.StringIO()

    def log_message(self, format: str, *values: Any) -> None:
        """Says nothing, for the same reason."""


def _writer(statistics: Callable[[], dict[str, dict[str, Any]]]) -> WSGIApplication:
    try:
        from prometheus_client import make_wsgi_app

        from . import exposition
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "prometheus_client":
            raise
        raise ConfigError('metrics: prometheus_client is not installed; run: pip install "feedline[metrics]"') from None
    # compressing would cost CPU time of the training and saves nothing on the way to this machine
    return make_wsgi_app(exposition.registry(statistics), disable_compression=True)


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
