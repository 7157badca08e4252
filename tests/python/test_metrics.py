# SPDX-License-Identifier: Apache-2.0
"""Metrics over HTTP: the values that a strict parser reads equal those of stats()."""

from __future__ import annotations

import gc
import logging
import os
import re
import socket
import sys
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest
from running_processes import HANG_S, until

pytest.importorskip("prometheus_client", reason="prometheus_client, which writes metrics, is not installed")

import feedline
from feedline.loader import statistics
from feedline.serving import exposition, metrics

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
SAMPLE = re.compile(r'([a-z_][a-z0-9_]*)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$')


def get(url: str, accept: str = OPEN_METRICS, answered: str = OPEN_METRICS) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=HANG_S) as answer:
        assert answer.headers["Content-Type"].startswith(answered)
        return str(answer.read().decode())


def parsed(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Returns samples by name and labels, with the rules of OpenMetrics 1.0 that its own parsers enforce."""
    assert text.endswith("\n# EOF\n")
    kinds: dict[str, str] = {}
    family = ""
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for line in text.removesuffix("# EOF\n").splitlines():
        if line.startswith("# "):
            _, keyword, name, *rest = line.split(" ", 3)
            assert name == family or name not in kinds, "a family's lines follow each other"
            family = name
            if keyword == "TYPE":
                kinds[name] = rest[0]
                assert rest[0] in ("counter", "gauge", "histogram")
            elif keyword == "UNIT":
                assert name.endswith("_" + rest[0])
            else:
                assert keyword == "HELP"
            continue
        match = SAMPLE.match(line)
        assert match, line
        name, given, value = match.groups()
        suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_count", "_sum"]}[kinds[family]]
        assert name in [family + suffix for suffix in suffixes], line
        labels = tuple(sorted(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', given or ""), key=lambda one: one[0] == "le"))
        assert labels not in samples.get(name, {}), "no sample twice"
        samples.setdefault(name, {})[labels] = float(value)
    return samples


def label(loader: str, **more: str) -> tuple[tuple[str, str], ...]:
    return (("loader", loader), *more.items())


def test_what_is_served_is_what_stats_reports(train: feedline.Dataset) -> None:
    with train.loader(4, output="numpy") as loader:
        url = loader.metrics(name="train")
        assert url.startswith("http://127.0.0.1:")
        list(loader)
        stats = loader.stats()
        found = parsed(get(url))
    assert found["feedline_samples_total"][label("train")] == stats["samples"] == 21
    assert found["feedline_batches_total"][label("train")] == 6
    assert found["feedline_budget_bytes"][label("train")] == stats["budget_bytes"]
    for stage in ("storage", "decode", "transform"):
        labels = label("train", stage=stage)
        items = stats["stages"][stage]["items"]
        assert found["feedline_stage_items_total"][labels] >= items  # the next epoch begins in the meantime
        buckets = [v for k, v in found["feedline_stage_latency_seconds_bucket"].items() if k[:2] == labels]
        bounds = [float(dict(k)["le"]) for k in found["feedline_stage_latency_seconds_bucket"] if k[:2] == labels]
        assert bounds == sorted(bounds) and bounds[-1] == float("inf")
        assert buckets == sorted(buckets)
        assert buckets[-1] == found["feedline_stage_latency_seconds_count"][labels]
        assert found["feedline_stage_latency_seconds_sum"][labels] > 0


def test_an_independent_parser_accepts_it(train: feedline.Dataset) -> None:
    from prometheus_client.openmetrics import exposition as written
    from prometheus_client.openmetrics import parser

    with train.loader(4, output="numpy") as loader:
        list(loader)
        loaders = {'odd "name"\\\n': loader._counters(), "b": loader._counters()}
        text = written.generate_latest(exposition.registry(lambda: loaders)).decode()
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    assert families["feedline_samples"].type == "counter"
    assert families["feedline_stage_latency_seconds"].unit == "seconds"
    assert {sample.labels["loader"] for sample in families["feedline_samples"].samples} == {'odd "name"\\\n', "b"}


def test_who_does_not_ask_for_open_metrics_gets_prometheus_text(train: feedline.Dataset) -> None:
    with train.loader(4, output="numpy") as loader:
        url = loader.metrics(name="train")
        list(loader)
        text = get(url, accept="*/*", answered="text/plain; version=0.0.4")
    assert "# TYPE feedline_samples_total counter\n" in text and "# EOF" not in text
    assert 'feedline_samples_total{loader="train"} 21.0\n' in text


def test_a_part_may_be_asked_for_by_name(train: feedline.Dataset) -> None:
    with train.loader(4, output="numpy") as loader:
        found = parsed(get(loader.metrics(name="train") + "?name[]=feedline_threads"))
    assert found.keys() == {"feedline_threads"}


def test_names_types_and_units_are_those_that_dashboards_know(train: feedline.Dataset) -> None:
    with train.loader(4, output="numpy") as loader:
        list(loader)
        lines = get(loader.metrics()).splitlines()
    assert [line[2:] for line in lines if line.startswith("# TYPE")] == [
        "TYPE feedline_batches counter",
        "TYPE feedline_samples counter",
        "TYPE feedline_bad_samples counter",
        "TYPE feedline_running_seconds counter",
        "TYPE feedline_wait_seconds counter",
        "TYPE feedline_threads gauge",
        "TYPE feedline_ready_batches gauge",
        "TYPE feedline_held_bytes gauge",
        "TYPE feedline_held_peak_bytes gauge",
        "TYPE feedline_budget_bytes gauge",
        "TYPE feedline_stage_items counter",
        "TYPE feedline_stage_output_bytes counter",
        "TYPE feedline_stage_busy_seconds counter",
        "TYPE feedline_stage_blocked_seconds counter",
        "TYPE feedline_stage_starved_seconds counter",
        "TYPE feedline_stage_latency_seconds histogram",
    ]
    units = [line.split()[2:] for line in lines if line.startswith("# UNIT")]
    assert len(units) == 10 and all(name.endswith("_" + unit) for name, unit in units)


def test_without_prometheus_client_it_reports_what_to_install(
    train: feedline.Dataset, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with train.loader(4, output="numpy") as loader, pytest.raises(feedline.ConfigError, match=r"feedline\[metrics\]"):
        loader.metrics()
    assert not metrics._servers
    monkeypatch.setenv("FEEDLINE_METRICS_PORT", "0")
    with caplog.at_level(logging.WARNING), train.loader(4, output="numpy") as loader:
        assert len(list(loader)) == 6
    assert "feedline[metrics]" in caplog.text


def test_loaders_share_a_port_and_the_last_one_frees_it(train: feedline.Dataset) -> None:
    with train.loader(4, output="numpy") as first, train.loader(7, output="numpy") as second:
        url = first.metrics()
        port = int(url.split(":")[2].split("/")[0])
        assert second.metrics(port, name="second") == url
        list(second)
        with pytest.raises(feedline.ConfigError, match="'second'"):
            first.metrics(port, name="second")
        found = parsed(get(url))["feedline_batches_total"]
        assert sorted(found.values()) == [0, 3]
        first.close()
        assert list(parsed(get(url))["feedline_batches_total"]) == [label("second")]
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "feedline-metrics"])
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
    with pytest.raises(feedline.Error, match="closed"):
        first.metrics()


def test_a_forgotten_loader_ends_its_thread(train: feedline.Dataset) -> None:
    loader = train.loader(4, output="numpy")
    loader.metrics()
    del loader
    gc.collect()
    until(lambda: not any(thread.name == "feedline-metrics" for thread in threading.enumerate()))


def test_only_this_machine_is_listened_to(train: feedline.Dataset) -> None:
    with train.loader(4, output="numpy") as loader:
        loader.metrics()
        assert {server.server_address[0] for server in metrics._servers.values()} == {"127.0.0.1"}


def test_nothing_listens_unasked(train: feedline.Dataset) -> None:
    with train.loader(4, output="numpy") as loader:
        list(loader)
        assert not metrics._servers


def test_a_taken_port_is_an_error_or_a_warning(
    train: feedline.Dataset, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with train.loader(4, output="numpy") as loader, pytest.raises(feedline.ConfigError, match=f"port {port}"):
            loader.metrics(port)
        monkeypatch.setenv("FEEDLINE_METRICS_PORT", str(port))
        with caplog.at_level(logging.WARNING), train.loader(4, output="numpy") as loader:
            assert len(list(loader)) == 6
        assert f"port {port}" in caplog.text
    monkeypatch.setenv("FEEDLINE_METRICS_PORT", "many")
    with train.loader(4, output="numpy"):
        assert "FEEDLINE_METRICS_PORT=many" in caplog.text


@pytest.mark.parametrize("port", [-1, 70000, "80", True])
def test_ports_are_checked(train: feedline.Dataset, port: Any) -> None:
    with train.loader(4, output="numpy") as loader, pytest.raises(feedline.ConfigError, match="port"):
        loader.metrics(port)


def test_the_environment_serves_every_loader(train: feedline.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDLINE_METRICS_PORT", "0")
    with train.loader(4, output="numpy"):
        (server,) = metrics._servers.values()
        assert len(parsed(get(server.url))["feedline_batches_total"]) == 1


def test_ranks_of_a_machine_take_ports_one_after_the_other(
    train: feedline.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    for _ in range(5):  # another program may use the port in between
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        monkeypatch.setenv("FEEDLINE_METRICS_PORT", str(port - 1))
        with train.loader(4, output="numpy"):
            served = port in metrics._servers
        if served:
            break
    assert served


def test_other_pages_and_rude_clients_do_no_harm(train: feedline.Dataset, capfd: pytest.CaptureFixture[str]) -> None:
    with train.loader(4, output="numpy") as loader:
        url = loader.metrics()
        port = int(url.split(":")[2].split("/")[0])
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url + "x", timeout=HANG_S)
        for rude in (b"", b"\x00\xff\r\n\r\n", b"GET /metrics HTTP/1.1\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(rude)
        assert parsed(get(url))
    assert capfd.readouterr() == ("", "")


def test_a_forked_child_neither_serves_nor_holds_the_port(train: feedline.Dataset) -> None:
    with train.loader(4, output="numpy") as loader:
        url = loader.metrics()
        port = int(url.split(":")[2].split("/")[0])
        forked, looked = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:  # the server's work after a fork is complete before fork() returns here
            os.write(forked[1], b"x")
            os.close(looked[1])
            os.read(looked[0], 1)
            os._exit(3 if metrics._servers else 0)
        try:
            os.read(forked[0], 1)
            assert parsed(get(url))
            loader.close()
            with socket.socket() as free:
                free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                free.bind(("127.0.0.1", port))
                free.listen()
        finally:
            os.write(looked[1], b"x")
            _, status = os.waitpid(child, 0)
            for end in (*forked, *looked):
                os.close(end)
        assert status == 0


def test_many_readers_while_it_loads(train: feedline.Dataset) -> None:
    with train.loader(2, output="numpy", epochs=10) as loader:
        url = loader.metrics()
        seen: list[list[float]] = []

        def scrape() -> None:
            rows = [parsed(get(url))["feedline_samples_total"] for _ in range(10)]
            seen.append([next(iter(row.values())) for row in rows])

        threads = [threading.Thread(target=scrape) for _ in range(3)]
        for thread in threads:
            thread.start()
        list(loader)
        for thread in threads:
            thread.join()
    assert len(seen) == 3
    for counts in seen:
        assert counts == sorted(counts), "a counter never goes back"


def test_the_drop_in_has_metrics_too(train: feedline.Dataset) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    loader = feedline.DataLoader(torch.utils.data.TensorDataset(torch.arange(10)), 2, num_workers=0)
    url = loader.metrics(name="drop-in")
    list(loader)
    assert parsed(get(url))["feedline_batches_total"] == {label("drop-in"): 5}
    numbers = loader.stats().as_dict()
    assert numbers["loader/batches"] == 5
    del loader
    gc.collect()


def test_statistics_as_a_flat_dict(train: feedline.Dataset) -> None:
    with train.loader(4, output="numpy") as loader:
        before = loader.stats().as_dict()
        list(loader)
        stats = loader.stats()
    flat = stats.as_dict()
    assert set(map(type, flat.values())) <= {int, float}
    assert flat["loader/samples"] == 21
    assert flat["loader/decode/items"] == stats["stages"]["decode"]["items"]
    assert flat["loader/decode/latency_p99_ms"] == stats["stages"]["decode"]["latency_ms"]["p99"]
    assert "loader/decode/latency_p99_ms" not in before, "unknown as yet"
    assert stats.as_dict("feed.")["feed.samples"] == 21
    assert dict(stats) == stats, "still the dict that it was"
    assert statistics.Statistics({"a": None, "b": "text", "c": 1}).as_dict("") == {"c": 1}
