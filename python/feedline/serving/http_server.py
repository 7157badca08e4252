# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of metrics: its address, its thread, its token, and its behavior at a fork.

prometheus_client (``feedline[metrics]``) formats responses: as OpenMetrics for clients that request it, otherwise in
the Prometheus text format. Feedline has its own server because it must end with its loaders, must not be inherited by
forked processes, and must not print anything (docs/decisions/tools-libraries.md).
"""

from __future__ import annotations

import contextlib
import hmac
import io
import os
import socket
import socketserver
import stat
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from ..errors import ConfigError
from .quantities import Statistics

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

LOOPBACK = "127.0.0.1"
LOOK_S = 0.5  # interval at which a server checks whether it should end
_REQUEST_S = 5.0  # timeout for clients that send nothing
_MOST_CLIENTS = 32  # that are served at a time; others are disconnected
_PLAIN = [("Content-Type", "text/plain")]

_running: weakref.WeakSet[HttpServer] | None = None


class HttpServer(socketserver.ThreadingMixIn, WSGIServer):
    """Serves ``/metrics`` from one thread. A subclass decides when it ends."""

    daemon_threads = True
    request_queue_size = _MOST_CLIENTS

    def __init__(
        self,
        statistics: Callable[[], Statistics],
        host: str = LOOPBACK,
        port: int = 0,
        *,
        token: str | None = None,
        unix_socket: str | None = None,
    ) -> None:
        """Binds the address. `token`: clients must send it as ``Authorization: Bearer TOKEN``.

        Raises:
            ConfigError: prometheus_client is not installed, the address is in use, or an argument is invalid.
        """
        if token is not None and not (isinstance(token, str) and token.isascii() and token.isprintable() and token):
            raise ConfigError("metrics: token must be text of printable ASCII characters")
        self._write = _writer(statistics)
        self._wanted = None if token is None else f"Bearer {token}".encode()
        self._path, self._is_bound = unix_socket, False
        self._clients = threading.BoundedSemaphore(_MOST_CLIENTS)
        self._process = os.getpid()
        if unix_socket is not None:
            self.address_family = socket.AF_UNIX
        elif ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port) if unix_socket is None else unix_socket, _Handler)  # type: ignore[arg-type]
        except (OSError, OverflowError) as error:
            raise ConfigError(_refusal(error, host, port, unix_socket)) from None
        self.port = 0 if unix_socket is not None else int(self.server_address[1])
        shown = f"[{host}]" if ":" in host else host
        self.url = f"unix:{unix_socket}" if unix_socket is not None else f"http://{shown}:{self.port}/metrics"
        self.ended = False
        self.timeout = LOOK_S
        self.set_app(self._application)
        self._thread = threading.Thread(target=self._run, name="feedline-metrics", daemon=True)
        _watch_forks(self)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Frees the address. Does nothing in a forked child, which has no thread."""
        self.ended = True
        if self._process != os.getpid():
            return
        with contextlib.suppress(OSError), socket.socket(self.address_family) as waker:
            waker.settimeout(LOOK_S)
            waker.connect(self.server_address)  # wakes the thread, which waits for a request
        if threading.current_thread() is not self._thread:
            self._thread.join(_REQUEST_S)  # the thread closes the socket, which may take a while on a busy machine

    def server_bind(self) -> None:
        """Binds without looking up the host's name, which may take seconds."""
        if self._path is not None:
            _remove_dead(self._path)
        socketserver.TCPServer.server_bind(self)
        if self._path is not None:
            os.chmod(self._path, 0o600)  # before listen(): no other user can have connected
        self._is_bound = True
        self.server_name, self.server_port = "feedline", 0
        self.setup_environ()

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        return connection, address or ("unix", 0)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._clients.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._clients.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that disconnected, so that they do not clutter the training's output."""

    def server_close(self) -> None:
        super().server_close()
        if self._path is not None and self._is_bound and self._process == os.getpid():
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def _should_end(self) -> bool:
        """Called in the server's thread, after a request and every half second. If it returns True, the server ends."""
        return self.ended

    def _run(self) -> None:
        while not self.ended:
            self.handle_request()
            self.ended = self._should_end()
        self.server_close()

    def _application(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if self._wanted is not None:
            given = environ.get("HTTP_AUTHORIZATION", "").encode("latin-1", "replace")
            if not hmac.compare_digest(given, self._wanted):
                start_response("401 Unauthorized", [*_PLAIN, ("WWW-Authenticate", "Bearer")])
                return [b"send the header Authorization: Bearer TOKEN\n"]
        if environ["PATH_INFO"] == "/metrics":
            return self._write(environ, start_response)
        start_response("404 Not Found", _PLAIN)
        return [b"see /metrics\n"]


class _Handler(WSGIRequestHandler):
    timeout = _REQUEST_S

    def get_stderr(self) -> io.StringIO:
        """Discards tracebacks of failed responses, since the terminal belongs to the training."""
        return io.StringIO()

    def log_message(self, format: str, *values: Any) -> None:
        """Discards log messages, since the terminal belongs to the training."""


def _writer(statistics: Callable[[], Statistics]) -> WSGIApplication:
    try:
        from prometheus_client import make_wsgi_app

        from . import exposition
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "prometheus_client":
            raise
        raise ConfigError('metrics: prometheus_client is not installed; run: pip install "feedline[metrics]"') from None
    # compression would cost the training CPU time and save nothing on a local connection
    return make_wsgi_app(exposition.registry(statistics), disable_compression=True)


def _refusal(error: Exception, host: str, port: int, unix_socket: str | None) -> str:
    why = getattr(error, "strerror", None) or str(error)
    if unix_socket is not None:
        return f"metrics: unix_socket {unix_socket!r}: {why}; choose another path"
    return f"metrics: port {port} of {host}: {why}; choose another port, or 0 for any free port"


def _remove_dead(path: str) -> None:
    """Removes a socket whose process has ended. Other files, and sockets in use, make bind() fail."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(path, follow_symlinks=False).st_mode):
            return
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(LOOK_S)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)


def _watch_forks(server: HttpServer) -> None:
    global _running
    if _running is None:
        _running = weakref.WeakSet()
        os.register_at_fork(after_in_child=_forget_parent)
    _running.add(server)


def _forget_parent() -> None:
    """Called in a forked child: the threads and the addresses belong to the parent."""
    for server in list(_running or ()):
        server.socket.close()
