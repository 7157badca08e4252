# SPDX-License-Identifier: Apache-2.0
"""az:// with obstore: the samples and batches equal those of local files, from a simulated server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import training
from made_azure import BlobServer, serving_blobs

import feedline
from feedline.data.storage import fsspec_storage, obstore_storage

obstore = pytest.importorskip("obstore", reason="obstore is not installed")


@pytest.fixture(scope="module")
def server(folder: Path, tars: list[Path]) -> Iterator[BlobServer]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    blobs = {f"box/train/{path.relative_to(folder)}": path.read_bytes() for path in files}
    blobs |= {f"box/shards/{tar.name}": tar.read_bytes() for tar in tars}
    with serving_blobs(blobs) as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        yield running


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def batches(data: feedline.Dataset) -> list[bytes]:
    options: dict[str, Any] = {"epochs": 2, "output": "numpy", "num_workers": 2, "shuffle": True, "seed": 3}
    with training(data).loader(5, **options) as loader:
        return [np.asarray(field).tobytes() for _ in range(2) for batch in loader for field in batch]


def test_shards_and_folders_are_those_of_files(server: BlobServer, folder: Path, tars: list[Path]) -> None:
    for remote, local in (("az://box/shards/{000..002}.tar", tars), ("az://box/train/", folder)):
        data = feedline.open(remote)
        assert f"az:// is read in Python by obstore {obstore.__version__}" in data.explain()
        assert data.fingerprint == feedline.open(local).fingerprint
        assert batches(data) == batches(feedline.open(local))
    assert any(request.startswith("GET box/train/") for request in server.requests)


def test_an_account_may_be_in_the_url(server: BlobServer, tars: list[Path]) -> None:
    data = feedline.open(f"abfss://box@someone.dfs.core.windows.net/shards/{tars[0].name}")
    assert data.fingerprint == feedline.open(tars[0]).fingerprint


def test_objects_have_versions_and_any_names(server: BlobServer) -> None:
    store = obstore_storage.find("az")
    assert store is not None
    name = "odd/a b+c=d%20?e#f.bin"
    server.blobs[f"box/{name}"] = b"0123456789"
    first = store.stat(f"az://box/{name}")
    assert first[1] == 10 and first[2] != 0 and not first[3]
    assert store.read(f"az://box/{name}", 3, 4) == b"3456"
    assert store.list("az://box/odd", True) == store.list("az://box/odd/", False) == [(name[4:], 10, first[2], False)]
    assert store.stat("az://box/odd")[3] and store.list("az://box/nothing", True) == []
    server.blobs[f"box/{name}"] = b"9876543210"
    assert store.stat(f"az://box/{name}")[2] != first[2], "another ETag is another version"


def test_errors_are_in_words_and_without_signatures(server: BlobServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(feedline.StorageError, match="no such file") as caught:
        feedline.open("az://box/other.tar")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2026-01-01&sig=wrong-hunter3")
    store = obstore_storage.find("az")
    assert store is not None
    with pytest.raises(PermissionError) as refused:
        store.read("az://box/shards/000.tar", 0, 4)
    for error in (caught.value, refused.value):
        assert "hunter" not in str(error) and "sig=" not in str(error) and "Debug source" not in str(error)


def test_in_a_child_after_fork_it_reports_it(server: BlobServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its threads do not exist in the child: a call would wait for ever."""
    store = obstore_storage.find("az")
    assert store is not None and store.stat("az://box/shards/000.tar")[1] > 0
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with pytest.raises(OSError, match="before fork"):
        store.stat("az://box/shards/000.tar")


def test_what_is_not_azures_is_not_its(monkeypatch: pytest.MonkeyPatch) -> None:
    assert obstore_storage.find("sftp") is None
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    assert obstore_storage.find("az") is None
    assert not isinstance(fsspec_storage.find("az"), obstore_storage.ObjectStore)
