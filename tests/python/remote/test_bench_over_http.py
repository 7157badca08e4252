# SPDX-License-Identifier: Apache-2.0
"""`feedline bench` with a URL: the reported network figures equal those of the server; errors name the server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import made_data
import pytest
from fault_proxy import free_port
from range_server import serving
from running_processes import HANG_S


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    return made_data.make_tars(made_data.make_folder(folder / "photos", 40), folder / "tars", 2)[0].parent


def bench(source: str, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from feedline.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "bench", source, "--seconds", "0.3", "--batch-size", "8", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=HANG_S)


def test_the_network_is_reported_as_the_server_saw_it(
    shards: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    own = {**environment, "XDG_CACHE_HOME": str(tmp_path)}
    record = tmp_path / "run.json"
    with serving(shards) as server:
        done = bench(server.url("{000..001}.tar"), own, "--json", "--record", str(record))
        assert done.returncode == 0, done.stderr
        port, seen = server.server_address[1], len(server.requests)
    (host,) = json.loads(done.stdout)["feedline"]["network"]
    assert host["host"] == f"127.0.0.1:{port}"
    assert 0 < host["requests"] < seen, "those of the opening and the warm-up are left out"
    assert host["bytes"] > 0 and host["bytes_per_s"] > 0 and host["latency_s"] > 0
    assert host["connections"] <= host["requests"]
    facts: dict[str, Any] = json.loads(record.read_text())["storage"]
    assert (facts["kind"], facts["scheme"], facts["host"]) == ("remote", "http", host["host"])
    assert facts["latency_s"] == host["latency_s"]


def test_text_has_a_line_for_the_host_and_none_for_files(
    shards: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    own = {**environment, "XDG_CACHE_HOME": str(tmp_path), "COLUMNS": "200"}
    with serving(shards) as server:
        far = bench(server.url("{000..001}.tar"), own)
        assert f"from 127.0.0.1:{server.server_address[1]} in" in far.stdout, far.stderr
        assert "ms to first byte" in far.stdout
    near = bench(f"{shards}/{{000..001}}.tar", own)
    assert near.returncode == 0
    assert "network" not in near.stdout


def test_a_server_that_is_not_there_is_an_error_with_its_name(tmp_path: Path, environment: dict[str, str]) -> None:
    own = {**environment, "XDG_CACHE_HOME": str(tmp_path), "FEEDLINE_HTTP_TRIES": "2"}
    url = f"http://127.0.0.1:{free_port()}/{{000..001}}.tar"
    done = bench(url, own)
    assert done.returncode == 3
    assert url in done.stderr and "tried 2 times" in done.stderr
    assert "Traceback" not in done.stderr
