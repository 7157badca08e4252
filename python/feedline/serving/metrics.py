# SPDX-License-Identifier: Apache-2.0
"""Serves statistics of single loaders over HTTP, until they end.

Enabled by :meth:`feedline.Loader.metrics` or the environment variable ``FEEDLINE_METRICS_PORT``. The server listens
only on 127.0.0.1, unless ``FEEDLINE_METRICS_HOST`` is set. One thread serves all loaders on a port, and ends when the
last loader ends.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from typing import Any

from ..errors import ConfigError, Error
from .http_server import LOOPBACK, HttpServer
from .live_loaders import CountingLoader

_lock = threading.Lock()
_servers: dict[int, _Server] = {}
_numbers = itertools.count()
_watches_forks = False


def serve(
    loader: CountingLoader, port: int = 0, name: str | None = None, *, host: str = LOOPBACK, token: str | None = None
) -> str:
    """Serves the statistics of `loader` until it is closed; returns the URL.

    Args:
        port: port number; 0 selects a free one. Several loaders may share a port; they have different values of the
        label ``loader``.
        name: value of the label ``loader``; a serial number by default.
        host, token: as in :func:`feedline.serve_metrics`; ignored if another loader has opened the port.

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
            server = _start(host, port, token)
        if label in server.loaders:
            raise ConfigError(f"metrics: port {server.port} already serves a loader named {label!r}")
        server.loaders[label] = weakref.ref(loader)
    return server.url


def serve_by_environment(loader: CountingLoader) -> None:
    """Serves `loader` on the port in ``FEEDLINE_METRICS_PORT``; other ranks on the machine use the following ports.
    ``FEEDLINE_METRICS_HOST`` and ``FEEDLINE_METRICS_TOKEN`` are optional.

    An invalid port, or a port in use, causes only a warning, since a metrics error should not stop training.
    """
    given, local_rank = os.environ.get("FEEDLINE_METRICS_PORT", ""), os.environ.get("LOCAL_RANK", "0")
    host, token = os.environ.get("FEEDLINE_METRICS_HOST", LOOPBACK), os.environ.get("FEEDLINE_METRICS_TOKEN")
    try:
        serve(loader, int(given) + (int(local_rank) if int(given) else 0), host=host, token=token)
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


class _Server(HttpServer):
    """A server that ends with its last loader, closed or garbage collected."""

    def __init__(self, host: str, port: int, token: str | None) -> None:
        self.loaders: dict[str, weakref.ref[CountingLoader]] = {}
        super().__init__(self.statistics, host, port, token=token)

    def forget(self, loader: CountingLoader) -> bool:
        """Returns whether `loader` was served and was the last loader."""
        mine = [label for label, other in self.loaders.items() if other() is loader]
        for label in mine:
            del self.loaders[label]
        return bool(mine) and not self.loaders

    def statistics(self) -> dict[str, dict[str, Any]]:
        """Returns the statistics of every live loader by label."""
        found: dict[str, dict[str, Any]] = {}
        for label, reference in list(self.loaders.items()):
            loader = reference()
            if loader is not None:
                found[label] = loader._counters()
        return found

    def _should_end(self) -> bool:
        with _lock:
            ended = self.ended or not any(reference() for reference in list(self.loaders.values()))
            if ended:
                _servers.pop(self.port, None)
                self.server_close()  # under the lock: a loader that opens the port next must find it free
            return ended


def _start(host: str, port: int, token: str | None) -> _Server:
    global _watches_forks
    if not _watches_forks:
        os.register_at_fork(after_in_child=_forget_parent)
        _watches_forks = True
    server = _Server(host, port, token)
    _servers[server.port] = server
    server.start()
    return server


def _forget_parent() -> None:
    """Called in a forked child: the servers belong to the parent."""
    global _lock
    _lock = threading.Lock()
    _servers.clear()
