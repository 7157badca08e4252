# SPDX-License-Identifier: Apache-2.0
"""Metrics of all loaders of the process on one address: other hosts, tokens, unix sockets, and bad addresses."""

from __future__ import annotations

import gc
import os
import socket
import stat
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from running_processes import HANG_S, until

pytest.importorskip("prometheus_client", reason="prometheus_client, which writes metrics, is not installed")

import numpy as np

import feedline
from feedline.serving import live_loaders


def get(url: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=HANG_S) as answer:
        return str(answer.read().decode())


def get_unix(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(HANG_S)
        client.connect(path)
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        return b"".join(iter(lambda: client.recv(1 << 16), b"")).decode()


def batches(text: str) -> list[float]:
    lines = (line for line in text.splitlines() if line.startswith("feedline_batches_total{"))
    return [float(line.split()[-1]) for line in lines]


@pytest.fixture(autouse=True)
def no_other_loaders() -> None:
    gc.collect()
    live_loaders._loaders.clear()


def rows() -> feedline.Dataset:
    return feedline.arrays(y=np.arange(12))


def test_all_loaders_of_the_process_are_served() -> None:
    with feedline.serve_metrics() as server, rows().loader(4, output="numpy") as first:
        assert server.url == f"http://127.0.0.1:{server.port}/metrics"
        assert batches(get(server.url)) == [], "no loader has begun an epoch"
        list(first)
        with rows().loader(6, output="numpy") as second:
            list(second)
            assert batches(get(server.url)) == [3, 2]
            list(first)
            assert batches(get(server.url)) == [6, 2], "a later epoch adds to the same loader"
        assert batches(get(server.url)) == [6]
    until(lambda: not any(thread.name == "feedline-metrics" for thread in threading.enumerate()))
    with pytest.raises(urllib.error.URLError):
        get(server.url)
    server.close()  # idempotent


def test_the_drop_in_and_forgotten_loaders() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    loader = feedline.DataLoader(torch.utils.data.TensorDataset(torch.arange(10)), 2, num_workers=0)
    with feedline.serve_metrics() as server:
        list(loader)
        assert batches(get(server.url)) == [5]
        del loader
        gc.collect()
        assert batches(get(server.url)) == []


def test_other_machines_only_if_requested() -> None:
    def addresses(server: feedline.MetricsServer) -> Any:
        return server._server.server_address[0]

    with feedline.serve_metrics() as here, feedline.serve_metrics("0.0.0.0", token="secret") as everywhere:
        assert addresses(here) == "127.0.0.1" and addresses(everywhere) == "0.0.0.0"
        assert everywhere.url.startswith("http://0.0.0.0:")


@pytest.mark.skipif(not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"), reason="no IPv6")
def test_an_ipv6_address() -> None:
    with feedline.serve_metrics("::1") as server:
        assert server.url.startswith("http://[::1]:") and get(server.url) is not None


def test_a_token_is_required_from_clients() -> None:
    with feedline.serve_metrics(token="secret") as server:
        for headers in ({}, {"Authorization": "Bearer secre"}, {"Authorization": "secret"}):
            with pytest.raises(urllib.error.HTTPError, match="401") as refused:
                get(server.url, **headers)
            assert refused.value.headers["WWW-Authenticate"] == "Bearer"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(server.url.replace("/metrics", "/"), Authorization="Bearer other")
        assert get(server.url, Authorization="Bearer secret") is not None
        assert "secret" not in repr(server)


def test_a_unix_socket_of_this_user(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sock"
    with rows().loader(4, output="numpy") as loader, feedline.serve_metrics(unix_socket=path) as server:
        list(loader)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert server.url == f"unix:{path}" and server.port == 0
        answer = get_unix(str(path))
        assert answer.startswith("HTTP/1.0 200") and batches(answer) == [3]
        with pytest.raises(feedline.ConfigError, match=r"metrics.sock.*in use"):
            feedline.serve_metrics(unix_socket=path)
        assert batches(get_unix(str(path))) == [3], "the refused server must not remove the socket"
    assert not path.exists()


def test_a_dead_process_socket_is_replaced_and_other_files_are_not(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with feedline.serve_metrics(unix_socket=path):
        assert get_unix(str(path))
    path.write_text("data")
    with pytest.raises(feedline.ConfigError, match="in use"):
        feedline.serve_metrics(unix_socket=path)
    assert path.read_text() == "data"
    with pytest.raises(feedline.ConfigError, match="too long"):
        feedline.serve_metrics(unix_socket=tmp_path / ("x" * 200))


def test_a_port_in_use_is_a_clear_error() -> None:
    with (
        feedline.serve_metrics() as server,
        pytest.raises(feedline.ConfigError, match=f"port {server.port} of 127.0.0.1: Address already in use"),
    ):
        feedline.serve_metrics(port=server.port)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"port": -1}, "port"),
        ({"port": True}, "port"),
        ({"host": ""}, "host"),
        ({"host": "no such host.invalid"}, "no such host.invalid"),
        ({"token": ""}, "token"),
        ({"token": "a\nb"}, "token"),
        ({"unix_socket": "x", "port": 1}, "not both"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(feedline.ConfigError, match=message):
        feedline.serve_metrics(**arguments)


def test_a_forked_child_neither_serves_nor_holds_the_port() -> None:
    with rows().loader(4, output="numpy") as loader:
        server = feedline.serve_metrics()
        list(loader)
        child = os.fork()
        if child == 0:
            server.close()
            os._exit(1 if live_loaders.statistics() else 0)
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert batches(get(server.url)) == [3], "the parent's server still runs"
        server.close()
    with feedline.serve_metrics(port=server.port):
        pass


def test_many_clients_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feedline.serving.http_server._MOST_CLIENTS", 2)
    with feedline.serve_metrics() as server:
        silent = [socket.create_connection(("127.0.0.1", server.port), HANG_S) for _ in range(3)]
        assert silent[2].recv(1) == b"", "disconnected, while two others are served"
        for client in silent:
            client.close()
        until(lambda: server._server._clients._value == 2)
        assert get(server.url) is not None


def test_the_environment_selects_host_and_token(monkeypatch: pytest.MonkeyPatch) -> None:
    from feedline.serving import metrics

    monkeypatch.setenv("FEEDLINE_METRICS_PORT", "0")
    monkeypatch.setenv("FEEDLINE_METRICS_HOST", "0.0.0.0")
    monkeypatch.setenv("FEEDLINE_METRICS_TOKEN", "secret")
    with rows().loader(4, output="numpy"):
        (server,) = metrics._servers.values()
        assert server.server_address[0] == "0.0.0.0"
        url = f"http://127.0.0.1:{server.port}/metrics"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(url)
        assert batches(get(url, Authorization="Bearer secret")) == [0]


@pytest.mark.measures
def test_a_scrape_each_second_costs_less_than_half_a_percent_of_a_cpu(train: feedline.Dataset) -> None:
    with feedline.serve_metrics() as server, train.loader(4, output="numpy") as loader:
        list(loader)
        get(server.url)
        before_s = time.process_time()  # also of this test's client
        for _ in range(200):
            get(server.url)
        assert (time.process_time() - before_s) / 200 < 0.005
