# SPDX-License-Identifier: Apache-2.0
"""Common servers deliver the same batches as local files, byte for byte: over HTTP, HTTPS and HTTP/2, and with a
cache.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import read_digests
import servers
from certificates import Authority
from fault_proxy import proxied
from range_server import serving as serving_files
from running_processes import HANG_S

import feedline

SHARDS = "a b+c=d/{000..002}.tar"  # characters that a signature must escape
Served = tuple[str, dict[str, str]]  # the source, and the environment for reading it


@pytest.fixture(scope="module")
def root(tars: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    (folder / "a b+c=d").mkdir()
    for tar in tars:
        shutil.copy(tar, folder / "a b+c=d")
    return folder


@pytest.fixture(scope="module")
def expected(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("indexes")))
        return read_digests.digest(f"{root}/{SHARDS}")


@contextmanager
def over_tls(endpoint: str, authority: Authority) -> Iterator[str]:
    parts = urlsplit(endpoint)
    with proxied((parts.hostname or "", parts.port or 0), tls=authority.context()) as proxy:
        yield proxy.address


@contextmanager
def serving(name: str, root: Path, folder: Path, authority: Authority) -> Iterator[list[Served]]:
    """Every protocol of this server: plain, and over TLS."""
    with ExitStack() as stack:
        if name == "nginx":
            nginx = stack.enter_context(servers.nginx(root, folder, authority))
            path = SHARDS.replace(" ", "%20")
            yield [
                (f"{nginx.plain}/{path}", {}),
                (f"{nginx.tls}/{path}", {"SSL_CERT_FILE": str(authority.trusted)}),
            ]
            check_nginx(nginx)
            return
        start: Callable[..., Any] = {"seaweedfs": servers.seaweedfs, "rclone": servers.rclone}.get(name, servers.moto)
        endpoint = stack.enter_context(start(root) if name == "moto" else start(root, folder))
        encrypted = stack.enter_context(over_tls(endpoint, authority))
        source = f"s3://{servers.BUCKET}/{SHARDS}"
        yield [
            (source, servers.environment_of(endpoint)),
            (source, servers.environment_of(encrypted, authority)),
        ]


def check_nginx(server: servers.Nginx) -> None:
    """It was read in ranges with its version, and over HTTP/2 if there is TLS."""
    seen = server.requests()
    assert {request["protocol"] for request in seen} == {"HTTP/1.1", "HTTP/2.0"}
    read = {request["status"] for request in seen if re.search(r"/00[012]\.tar$", request["path"])}
    assert read == {"206"}


def read(served: Served, environment: dict[str, str], folder: Path, *more: object) -> dict[str, Any]:
    source, own = served
    done = subprocess.run(
        [sys.executable, read_digests.__file__, source, *map(str, more)],
        env={**environment, "XDG_CACHE_HOME": str(folder / "indexes"), **own},
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", ["nginx", "seaweedfs", "rclone", "moto"])
def test_batches_are_those_of_local_files(
    name: str,
    root: Path,
    expected: dict[str, Any],
    tmp_path: Path,
    authority: Authority,
    environment: dict[str, str],
) -> None:
    with serving(name, root, tmp_path / "server", authority) as ways:
        for number, served in enumerate(ways):
            own = tmp_path / str(number)
            assert read(served, environment, own) == expected
            assert read(served, environment, own, own / "cache") == expected
            assert len(list((own / "cache").rglob("*.object"))) == 3


def test_a_certificate_that_no_one_has_signed_is_an_error(
    root: Path, tmp_path: Path, authority: Authority, environment: dict[str, str]
) -> None:
    with servers.moto(root) as endpoint, over_tls(endpoint, authority) as encrypted:
        code = f"import feedline; feedline.open({f's3://{servers.BUCKET}/{SHARDS}'!r})"
        own = {**environment, **servers.environment_of(encrypted), "XDG_CACHE_HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=own, capture_output=True, text=True, check=False, timeout=HANG_S
        )
    assert done.returncode != 0
    assert "StorageError" in done.stderr and "certificate" in done.stderr
    assert "tried" not in done.stderr, "another try would not change it"


def test_certificates_are_those_that_the_environment_names_now(
    tars: list[Path], authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process's connections outlive the objects with which they were created."""
    other = Authority(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "indexes"))
    with serving_files(tars[0].parent) as server, over_tls(server.url(""), authority) as address:
        for turn, trusted in enumerate((other, authority, other, authority)):
            monkeypatch.setenv("SSL_CERT_FILE", str(trusted.trusted))
            source = f"{address}/{tars[0].name}?turn={turn}"  # of which nothing is cached
            if trusted is authority:
                assert len(feedline.open(source)) > 0
            else:
                with pytest.raises(feedline.StorageError, match="certificate"):
                    feedline.open(source)
