# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboard uses only metrics and labels that are served, and Prometheus accepts its expressions."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running_processes import HANG_S

pytest.importorskip("prometheus_client", reason="prometheus_client, which writes metrics, is not installed")

import feedline
from feedline.serving import exposition

DASHBOARD = Path(__file__).parents[2] / "examples/grafana/feedline.json"
PROMETHEUS = os.environ.get("FEEDLINE_PROMETHEUS") or shutil.which("prometheus")
# of Grafana, and of Prometheus' language
VARIABLES = {"$__rate_interval": "30s", "$__range": "1h", "$job": ".*", "$instance": ".*", "$loader": ".*"}


def dashboard() -> dict[str, Any]:
    return json.loads(DASHBOARD.read_text())


def expressions() -> list[tuple[str, str]]:
    """Returns (panel, expression), with Grafana's variables replaced."""
    found = [(panel["title"], target["expr"]) for panel in dashboard()["panels"] for target in panel["targets"]]
    for name, value in VARIABLES.items():
        found = [(title, text.replace(name, value)) for title, text in found]
    return found


def variables() -> list[str]:
    return [v["query"]["query"] for v in dashboard()["templating"]["list"] if v["type"] == "query"]


@pytest.fixture(scope="module")
def served(train_of_module: feedline.Dataset) -> dict[str, set[str]]:
    """Returns the labels of each served name."""
    with train_of_module.loader(4, output="numpy") as loader:
        list(loader)
        samples = [one for f in exposition.families({"0": loader._counters()}) for one in f.samples]
    return {
        name: set().union(*(one.labels for one in samples if one.name == name)) for name in {s.name for s in samples}
    }


@pytest.fixture(scope="module")
def train_of_module(folder: Path) -> feedline.Dataset:
    return feedline.open(folder).resize((32, 32))


@pytest.mark.parametrize("text", [*(text for _, text in expressions()), *variables()])
def test_expressions_use_names_and_labels_that_are_served(text: str, served: dict[str, set[str]]) -> None:
    used = re.findall(r"(feedline_\w+)(?:\{([^}]*)\})?", text)
    assert used, "an expression without a metric of ours"
    for name, selectors in used:
        assert name in served, f"{name} is not served"
        labels = set(re.findall(r"(\w+)=~?\"", selectors)) - {"job", "instance"}  # Prometheus adds these
        assert labels <= served[name], f"{name} has the labels {served[name]}"
        grouped = re.findall(r"by \(([^)]*)\)", text)
        for label in (label.strip() for group in grouped for label in group.split(",")):
            assert label in served[name] | {"job", "instance"}, f"{name} has no label {label}"


def test_the_main_metrics_are_shown() -> None:
    text = " ".join(text for _, text in expressions())
    for name in ("wait_seconds", "samples", "batches", "bad_samples", "stage_busy_seconds"):
        assert f"feedline_{name}_total" in text
    assert not re.search(r"\$\w+", text), "a variable without a value"


def test_the_form_is_grafanas() -> None:
    """Required by Grafana's dashboard schema: unique ids and reference ids, positions in 24 columns, a data source."""
    content = dashboard()
    assert content["title"] and content["schemaVersion"] >= 36 and "id" not in content
    panels = content["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert panel["type"] in ("timeseries", "stat") and place["x"] + place["w"] <= 24
        cells = {(place["x"] + dx, place["y"] + dy) for dx in range(place["w"]) for dy in range(place["h"])}
        assert not cells & taken, f"{panel['title']} overlaps another panel"
        taken |= cells
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for part in (panel, *panel["targets"]):
            assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    names = [one["name"] for one in content["templating"]["list"]]
    assert names == ["datasource", "job", "instance", "loader"]


@pytest.fixture(scope="module")
def prometheus(train_of_module: feedline.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Prometheus' URL; it scrapes a loader that runs, with a token."""
    if PROMETHEUS is None:
        pytest.skip("prometheus is not installed (apt-get install prometheus)")
    folder = tmp_path_factory.mktemp("prometheus")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (
        feedline.serve_metrics(token="secret") as server,
        train_of_module.loader(2, output="numpy", epochs=None) as loader,
    ):
        (folder / "token").write_text("secret")
        target = json.dumps({"targets": [f"127.0.0.1:{server.port}"]})
        (folder / "prometheus.yml").write_text(
            "scrape_configs:\n- job_name: training\n  scrape_interval: 1s\n  scrape_timeout: 1s\n"
            f"  authorization: {{credentials_file: {folder}/token}}\n  static_configs: [{target}]\n"
        )
        command = [PROMETHEUS, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + HANG_S
            while len(_values(url, "count_over_time(feedline_batches_total[1m]) >= 4")) == 0:
                assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
                list(loader)
                time.sleep(0.5)
            yield url
        finally:
            process.kill()
            process.wait()


def _values(url: str, expression: str) -> list[float]:
    query = urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{query}", timeout=HANG_S) as answer:
            content = json.load(answer)
    except OSError as error:
        if hasattr(error, "read"):
            raise AssertionError(error.read()) from None
        return []  # it is starting
    return [float(row["value"][1]) for row in content["data"]["result"]]


@pytest.mark.parametrize(("title", "text"), expressions())
def test_prometheus_evaluates_every_expression(prometheus: str, title: str, text: str) -> None:
    values = _values(prometheus, text)
    assert values and all(value == value and value >= 0 for value in values), f"{title}: {values}"
