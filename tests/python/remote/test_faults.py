# SPDX-License-Identifier: Apache-2.0
"""Every fault of the proxy, repeatedly: the same batches, or an error; never other bytes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import read_digests
from certificates import Authority
from fault_proxy import FATAL, HEALED, HEALED_TLS, FaultProxy, Request, proxied
from range_server import RangeServer, serving
from running_processes import HANG_S

_STALL_MS = "1000"  # a busy machine answers fewer requests for one range: fewer than a client's attempts
_MOST_IN_A_ROW = 2  # of one range: fewer than a client's tries


class Seeded:
    """Faults in half of the requests for shards, but not too often in a row for the same range."""

    def __init__(self, seed: int, kinds: tuple[str, ...]) -> None:
        self._random = random.Random(seed)
        self._kinds = kinds
        self._in_a_row: dict[tuple[str, str], int] = {}

    def __call__(self, request: Request) -> str:
        request_key = (request.target, request.headers.get("range", ""))
        before = self._in_a_row.get(request_key, 0)
        if not request.target.endswith(".tar") or before >= _MOST_IN_A_ROW or self._random.random() < 0.5:
            self._in_a_row[request_key] = 0
            return ""
        self._in_a_row[request_key] = before + 1
        return self._random.choice(self._kinds)


@pytest.fixture
def server(tars: list[Path]) -> Iterator[RangeServer]:
    with serving(tars[0].parent) as running:
        yield running


def borders(tars: list[Path]) -> dict[str, list[int]]:
    found = {}
    for path in tars:
        with tarfile.open(path) as tar:
            found["/" + path.name] = [member.offset for member in tar]
    return found


def start(
    proxy: FaultProxy, environment: dict[str, str], folder: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    own = {"XDG_CACHE_HOME": str(folder), "FEEDLINE_HTTP_STALL_MS": _STALL_MS, **more}
    command = [sys.executable, read_digests.__file__, f"{proxy.address}/{{000..002}}.tar"]
    return subprocess.run(
        command, env={**environment, **own}, capture_output=True, text=True, check=False, timeout=HANG_S
    )


@pytest.mark.parametrize("encrypted", [False, True], ids=["http", "https"])
def test_what_can_be_healed_changes_no_batch(
    encrypted: bool,
    server: RangeServer,
    tars: list[Path],
    tmp_path: Path,
    authority: Authority,
    environment: dict[str, str],
    long_form: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "local"))
    expected = read_digests.digest(f"{tars[0].parent}/{{000..002}}.tar")
    inside = borders(tars)
    options: dict[str, Any] = {
        "tls": authority.context() if encrypted else None,
        "borders": lambda target: inside.get(target, []),
    }
    kinds = HEALED + (HEALED_TLS if encrypted else ())
    faults = 0
    seeds = 40 if long_form else 6  # samples share requests, so a run makes few of them
    for seed in range(seeds):
        with proxied(("127.0.0.1", server.server_address[1]), Seeded(seed, kinds), seed=seed, **options) as proxy:
            done = start(proxy, environment, tmp_path / str(seed), SSL_CERT_FILE=str(authority.trusted))
            assert done.returncode == 0, f"seed {seed}: {done.stderr}"
            assert json.loads(done.stdout) == expected, f"seed {seed}"
            assert set(proxy.faults) <= set(kinds)
            faults += proxy.faults.total()
    assert faults > 5 * seeds


@pytest.mark.parametrize("fault", FATAL)
def test_an_answer_about_other_bytes_is_an_error(
    fault: str, server: RangeServer, tmp_path: Path, environment: dict[str, str]
) -> None:
    """A range inside a shard whose version is already known."""

    def plan(request: Request) -> str:
        return fault if request.target == "/001.tar" and "bytes=0-" not in request.headers.get("range", "") else ""

    with proxied(("127.0.0.1", server.server_address[1]), plan) as proxy:
        done = start(proxy, environment, tmp_path)
        assert proxy.faults[fault] > 0
    assert done.returncode != 0, done.stdout
    assert "StorageError" in done.stderr and "/001.tar" in done.stderr
