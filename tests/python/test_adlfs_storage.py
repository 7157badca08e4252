# SPDX-License-Identifier: Apache-2.0
"""Azure's schemes with fsspec and adlfs, without obstore: the samples and batches equal those of local files.

The tests use abfs://, because a process keeps the library that it found for a scheme, and other tests use obstore for
az://.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import training
from made_azure import BlobServer, serving_blobs

import feedline
from feedline.data.storage import fsspec_storage, obstore_storage

adlfs = pytest.importorskip("adlfs", reason="adlfs is not installed")


@pytest.fixture
def server(folder: Path, tars: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BlobServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(obstore_storage, "find", lambda scheme: None)
    files = [path for path in folder.rglob("*") if path.is_file()]
    blobs = {f"box/train/{path.relative_to(folder)}": path.read_bytes() for path in files}
    blobs |= {f"box/shards/{tar.name}": tar.read_bytes() for tar in tars}
    with serving_blobs(blobs) as running:
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", running.connection)
        yield running


def _batches(data: feedline.Dataset) -> list[bytes]:
    with training(data).loader(5, output="numpy", num_workers=2, shuffle=True, seed=3) as loader:
        return [np.asarray(field).tobytes() for batch in loader for field in batch]


def test_shards_and_folders_are_those_of_files(server: BlobServer, folder: Path, tars: list[Path]) -> None:
    for remote, local in (("abfs://box/shards/{000..002}.tar", tars), ("abfs://box/train/", folder)):
        data = feedline.open(remote)
        assert f"abfs:// is read in Python by adlfs {adlfs.__version__} through fsspec" in data.explain()
        assert data.fingerprint == feedline.open(local).fingerprint
        assert _batches(data) == _batches(feedline.open(local))
    assert any(request.startswith("GET box/train/") for request in server.requests)


def test_objects_have_versions_folders_and_errors(server: BlobServer) -> None:
    store = fsspec_storage.find("az")
    assert isinstance(store, fsspec_storage.Store)
    name = "odd/a b+c=d%20#f.bin"
    server.blobs[f"box/{name}"] = b"0123456789"
    first = store.stat(f"az://box/{name}")
    assert first[1] == 10 and first[2] != 0 and not first[3]
    assert store.read(f"az://box/{name}", 3, 4) == b"3456"
    assert store.list("az://box/odd", True) == store.list("az://box/odd", False) == [(name[4:], 10, first[2], False)]
    assert store.stat("az://box/odd")[3] and store.list("az://box/nothing", True) == []
    server.blobs[f"box/{name}"] = b"9876543210"
    assert store.stat(f"az://box/{name}")[2] != first[2], "another ETag is another version"
    with pytest.raises(feedline.StorageError) as refused:
        feedline.open("abfs://box/other.tar")
    assert "hunter" not in str(refused.value) and "sig=" not in str(refused.value)
