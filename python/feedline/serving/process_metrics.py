# SPDX-License-Identifier: Apache-2.0
"""Serves metrics of all loaders of this process on one address."""

from __future__ import annotations

import os
from types import TracebackType

from ..errors import ConfigError
from . import live_loaders
from .http_server import LOOPBACK, HttpServer


class MetricsServer:
    """A running server of metrics, until :meth:`close` is called, the ``with`` block ends, or the process ends.
    Created by :func:`feedline.serve_metrics`.

    Attributes:
        url: address of the metrics, such as ``http://127.0.0.1:9464/metrics`` or ``unix:/run/feedline.sock``.
        port: the port number; 0 for a unix socket.
    """

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self.url, self.port = server.url, server.port

    def close(self) -> None:
        """Ends the server and frees its port or socket. Idempotent."""
        self._server.stop()

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<feedline.MetricsServer {self.url}{', closed' if self._server.ended else ''}>"


def serve_metrics(
    host: str = LOOPBACK,
    port: int = 0,
    *,
    token: str | None = None,
    unix_socket: str | os.PathLike[str] | None = None,
) -> MetricsServer:
    """Serves metrics of all loaders of this process, as OpenMetrics or Prometheus text.

    ::

        feedline.serve_metrics(host="0.0.0.0", port=9464, token=os.environ["METRICS_TOKEN"])

    A loader is included from its first ``iter()`` until it is closed; the label ``loader`` is its serial number.
    Requires ``feedline[metrics]``. docs/operating.md lists the metrics.

    Args:
        host: the address to listen on. The default accepts only clients on this machine; ``"0.0.0.0"`` or ``"::"``
            accepts clients of other machines and pods.
        port: port number; 0 selects a free one. Ranks on one machine need different ports.
        token: clients must send it in the header ``Authorization: Bearer TOKEN``. The connection is not encrypted.
        unix_socket: path of a socket to listen on instead of a port. Only this user can connect to it.

    Raises:
        ConfigError: an argument is invalid, prometheus_client is not installed, or the port or socket is in use.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ConfigError(f"serve_metrics: port must be an integer from 0 to 65535, not {port!r}")
    if not isinstance(host, str) or not host:
        raise ConfigError(f'serve_metrics: host must be an address such as "127.0.0.1" or "0.0.0.0", not {host!r}')
    path = None if unix_socket is None else os.fspath(unix_socket)
    if path is not None and (host, port) != (LOOPBACK, 0):
        raise ConfigError("serve_metrics: pass unix_socket, or host and port, not both")
    server = HttpServer(live_loaders.statistics, host, port, token=token, unix_socket=path)
    server.start()
    return MetricsServer(server)
