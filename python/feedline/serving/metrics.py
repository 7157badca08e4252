# SPDX-License-Identifier: Apache-2.0
"""Serves statistics of running loaders over HTTP, in the Prometheus text format and as OpenMetrics.

The server is enabled by :meth:`feedline.Loader.metrics` or the environment variable ``FEEDLINE_METRICS_PORT``. The
server listens only on 127.0.0.1. One thread serves all loaders on a port, and ends when the last loader ends.

prometheus_client (``feedline[metrics]``) formats the response: as OpenMetrics for clients that request it, otherwise in
the Prometheus text format. Feedline has its own server because it must end with its loaders, must not be inherited by
forked processes, and must not print anything (docs/decisions/tools-libraries.md).
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
_LOOK_S = 0.5  # interval for detecting that the last loader was garbage collected without being closed
_REQUEST_S = 5.0  # timeout for clients that send nothing

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
        port: port number; 0 selects a free one. Several loaders may share a port; they have different values of the
        label ``loader``.
        name: value of the label ``loader``; a serial number by default.

    Raises:
        ConfigError: prometheus_client is not installed, the port is in use, or another loader on the port has that
        name.
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
    """Serves `loader` on the port in ``FEEDLINE_METRICS_PORT``; other ranks on the machine use the following ports.

    An invalid port, or a port in use, causes only a warning, since a metrics error should not stop training.
    """
    given, local_rank = os.environ.get("FEEDLINE_METRICS_PORT", ""), os.environ.get("LOCAL_RANK", "0")
    try:
        serve(loader, int(given) + (int(local_rank) if int(given) else 0))
    except (ValueError, Error) as error:
        import logging

        logging.getLogger("feedline").warning("FEEDLINE_METRICS_PORT=%s: no metrics: %s", given, error)


def withdraw(loader: CountingLoader) -> None:
    """Stops serving `loader`, and ends the port's thread if it was the last loader."""
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
        """Returns whether `loader` was served and was the last loader."""
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
            self._thread.join(_REQUEST_S)  # the thread closes the socket, which may take a while on a busy machine

    def statistics(self) -> dict[str, dict[str, Any]]:
        """Returns the statistics of every live loader by label."""
        found: dict[str, dict[str, Any]] = {}
        for label, reference in list(self.loaders.items()):
            loader = reference()
            if loader is not None:
                found[label] = loader._counters()
        return found

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that disconnected, so that they do not clutter the training's output."""

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
        """Discards tracebacks of failed responses, since the terminal belongs to the training."""
        return io.StringIO()

    def log_message(self, format: str, *values: Any) -> None:
        """Discards log messages, since the terminal belongs to the training."""


def _writer(statistics: Callable[[], dict[str, dict[str, Any]]]) -> WSGIApplication:
    try:
        from prometheus_client import make_wsgi_app

        from . import exposition
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "prometheus_client":
            raise
        raise ConfigError('metrics: prometheus_client is not installed; run: pip install "feedline[metrics]"') from None
    # compression would cost the training CPU time and save nothing on a local connection
    return make_wsgi_app(exposition.registry(statistics), disable_compression=True)


def _start(port: int) -> _Server:
    global _watches_forks
    if not _watches_forks:
        os.register_at_fork(after_in_child=_forget_parent)
        _watches_forks = True
    try:
        server = _Server(port)
    except OSError as error:
        raise ConfigError(
            f"metrics: port {port} of {ADDRESS}: {error.strerror}; choose another port, or 0 for any free port"
        ) from None
    _servers[server.port] = server
    server.start()
    return server


def _forget_parent() -> None:
    """Called in a forked child: the thread and the port belong to the parent."""
    global _lock
    _lock = threading.Lock()
    for server in _servers.values():
        server.socket.close()
    _servers.clear()
