# SPDX-License-Identifier: Apache-2.0
"""Schemes that fsspec reads: the samples and batches equal those of local files, and explain() names the library."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from conftest import training

import feedline
from feedline.data.storage import fsspec_storage

fsspec = pytest.importorskip("fsspec", reason="fsspec, which torch brings, is not installed")


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def stored(folder: Path, tars: list[Path]) -> Iterator[str]:
    """A folder of class folders and three tars, in fsspec's memory."""
    system = fsspec.filesystem("memory")
    system.put(str(folder), "/box/train", recursive=True)
    for tar in tars:
        system.pipe_file(f"/box/shards/{tar.name}", tar.read_bytes())
    yield "memory://box"
    system.rm("/box", recursive=True)


class Blobs(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Simulates adlfs: folders are slashes, objects have ETags, and reads are counted."""

    protocol = ("az", "blobs")
    root_marker = ""
    blobs: ClassVar[dict[str, bytes]] = {}
    reads: ClassVar[list[str]] = []
    lock = threading.Lock()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.partition("://")[2].rstrip("/") if "://" in path else path.rstrip("/")

    def _info(self, name: str) -> dict[str, Any]:
        data = self.blobs[name]
        return {"name": name, "size": len(data), "type": "file", "etag": f"0x{hash(data):x}"}

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._strip_protocol(path)
        if name in self.blobs:
            return self._info(name)
        if any(other.startswith(name + "/") for other in self.blobs):
            return {"name": name, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        front = self._strip_protocol(path) + "/"
        found = {}
        for name in self.blobs:
            if name.startswith(front):
                child = front + name[len(front) :].split("/")[0]
                found[child] = self._info(name) if child == name else {"name": child, "size": 0, "type": "directory"}
        if not found:
            raise FileNotFoundError(path)
        return list(found.values())

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        with self.lock:
            self.reads.append(path)
        if path.endswith("forbidden.jpg"):
            raise PermissionError(f"403 of {path}")
        return self.blobs[self._strip_protocol(path)][start:end]


@pytest.fixture
def blobs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    fsspec.register_implementation("blobs", Blobs, clobber=True)
    files = [path for path in folder.rglob("*") if path.is_file()]
    monkeypatch.setattr(Blobs, "blobs", {f"box/train/{p.relative_to(folder)}": p.read_bytes() for p in files})
    monkeypatch.setattr(Blobs, "reads", [])
    return "blobs://box/train/"


def batches(data: feedline.Dataset, **options: Any) -> list[bytes]:
    options = {"epochs": 2, "output": "numpy", "num_workers": 2, **options}
    with training(data).loader(5, shuffle=True, seed=3, **options) as loader:
        return [np.asarray(field).tobytes() for _ in range(2) for batch in loader for field in batch]


def test_shards_and_folders_are_those_of_files(stored: str, folder: Path, tars: list[Path]) -> None:
    for remote, local in ((f"{stored}/shards/{{000..002}}.tar", tars), (f"{stored}/train/", folder)):
        data = feedline.open(remote)
        assert data.fingerprint == feedline.open(local).fingerprint
        assert data.classes == feedline.open(local).classes
        assert "memory:// is read in Python by fsspec" in data.explain()
        assert batches(data) == batches(feedline.open(local))
        assert feedline.inspect(remote).samples == len(data)


def test_a_local_file_system_is_read_so_too(tars: list[Path]) -> None:
    source = [f"local://{tar}" for tar in tars]
    assert batches(feedline.open(source)) == batches(feedline.open(tars))


def test_objects_are_read_once_and_from_a_cache(blobs: str, folder: Path, tmp_path: Path) -> None:
    data = feedline.open(blobs)
    assert "blobs:// is read in Python" in data.explain()
    assert batches(data) == batches(feedline.open(folder))
    assert len(set(Blobs.reads)) == len(data)
    cached = {"cache": tmp_path / "copies", "cache_limit": "1 GiB"}
    assert batches(feedline.open(blobs, **cached)) == batches(feedline.open(folder))
    Blobs.reads.clear()
    assert batches(feedline.open(blobs, **cached)) == batches(feedline.open(folder))
    assert Blobs.reads == []


def test_errors_are_of_the_sample_in_the_librarys_words(blobs: str) -> None:
    Blobs.blobs = {**Blobs.blobs, "box/train/a/forbidden.jpg": b"x"}
    data = feedline.open(blobs)
    loader = data.decode().center_crop(8).loader(4, output="numpy", on_error="skip", error_budget=3)
    assert sum(len(batch.label) for batch in loader) == len(data) - 1
    (error,) = loader.errors
    assert error.key == "a/forbidden.jpg" and "PermissionError: 403 of" in str(error)
    with pytest.raises(feedline.StorageError, match="no stored name begins"):
        feedline.open("blobs://box/other/")
    with pytest.raises(feedline.StorageError, match="no such file"):
        feedline.open("blobs://box/other.tar")


def test_another_length_is_a_change(blobs: str) -> None:
    data = feedline.open(blobs)
    name = f"box/train/{data.key(3)}"
    Blobs.blobs = {**Blobs.blobs, name: Blobs.blobs[name] + b"more"}
    with pytest.raises(feedline.StorageError, match="changed between index and read"):
        data.decode().center_crop(8)[3]


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(scheme: str) -> type:
        if scheme in ("az", "sftp"):
            raise ImportError("Install it")
        raise ValueError(f"Protocol not known: {scheme}")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    monkeypatch.setitem(sys.modules, "obstore", None)  # which would read Azure's schemes
    assert "pip install adlfs`; or obstore" in str(fsspec_storage.find("az"))
    assert "pip install paramiko" in str(fsspec_storage.find("sftp"))
    assert fsspec_storage.find("htpp") is None
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert "pip install fsspec adlfs" in str(fsspec_storage.find("az"))
    assert fsspec_storage.find("htpp") is None


def test_azure_is_read_by_what_fsspec_has_for_it(environment: dict[str, str], tars: list[Path]) -> None:
    """In a separate process, because a process keeps the library that it found for a scheme."""
    code = f"""
import pathlib, sys, fsspec, feedline, test_fsspec_storage
sys.modules["obstore"] = None
fsspec.register_implementation("az", test_fsspec_storage.Blobs, clobber=True)
test_fsspec_storage.Blobs.blobs = {{"box/0.tar": pathlib.Path({str(tars[0])!r}).read_bytes()}}
data, local = feedline.open("az://box/0.tar"), feedline.open({str(tars[0])!r})
assert "az:// is read in Python" in data.explain(), data.explain()
assert data.fingerprint == local.fingerprint
assert data.decode().center_crop(8)[0].label == local.decode().center_crop(8)[0].label
"""
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=120)


def test_open_reports_what_to_install(environment: dict[str, str]) -> None:
    code = """
import sys, fsspec, feedline
sys.modules["obstore"] = None
def missing(scheme):
    raise ImportError("Install it") if scheme == "az" else ValueError(scheme)
fsspec.get_filesystem_class = missing
for source, words in (("az://box/train/", "pip install adlfs"), ("htpp://box/x.tar", "not a known scheme")):
    try:
        feedline.open(source)
    except feedline.ConfigError as error:
        assert words in str(error), error
    else:
        raise SystemExit("it opens")
"""
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=120)


def test_secrets_of_urls_are_not_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Blobs):
        def info(self, path: str, **_: Any) -> dict[str, Any]:
            raise PermissionError("no entry for me:hunter2")

    fsspec.register_implementation("vault", Refusing, clobber=True)
    with pytest.raises(feedline.StorageError) as caught:
        feedline.open("vault://me:hunter2@host/x.tar")
    assert "hunter2" not in str(caught.value) and "no entry for hidden" in str(caught.value)
    assert caught.value.__cause__ is None or "hunter2" not in repr(caught.value.__cause__)
