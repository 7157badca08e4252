# SPDX-License-Identifier: Apache-2.0
"""A folder written by `feedline pack` opens by its name in any storage, as on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import servers
from made_azure import serving_blobs
from range_server import serving
from running_processes import HANG_S

import feedline
from feedline import packing

COMMAND = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]
READER = [sys.executable, str(Path(__file__).with_name("read_digests.py"))]
_SAMPLES = 21


@pytest.fixture(scope="module")
def root(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tars` and `mds` are packed, `photos` are class folders, and packing of `begun` was interrupted."""
    root = tmp_path_factory.mktemp("root")
    packing.pack(folder, root / "tars", samples_per_shard=4, shuffle=True)
    packing.pack(folder, root / "mds", to="mds", samples_per_shard=6)
    shutil.copytree(folder, root / "photos")
    shutil.copytree(root / "tars", root / "begun")
    (root / "begun" / "feedline-pack.json").rename(root / "begun" / "feedline-pack.unfinished.json")
    return root


@pytest.fixture(scope="module")
def local(root: Path) -> dict[str, str]:
    """Output of READER for the folders on this machine."""
    return {
        name: subprocess.run([*READER, str(root / name)], capture_output=True, text=True, check=True).stdout
        for name in ("tars", "mds", "photos")
    }


@contextmanager
def _served(kind: str, root: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Returns the URLs of folders in `root`, and the environment for reading them."""
    if kind == "http":
        from feedline.pack import listing

        for name in ("photos", "begun"):  # packed folders are found without one
            listing.write_listing(root / name)
        with serving(root) as server:
            yield server.url("{}/"), {}
    elif kind == "s3":
        with servers.moto(root) as endpoint:
            yield f"s3://{servers.BUCKET}/{{}}", servers.environment_of(endpoint)
    elif kind == "gs":
        keys = {"GS_ACCESS_KEY_ID": servers.KEY_ID, "GS_SECRET_ACCESS_KEY": servers.SECRET}
        with servers.moto(root) as endpoint:
            yield f"gs://{servers.BUCKET}/{{}}", keys | {"GS_ENDPOINT_URL": endpoint}
    else:
        pytest.importorskip("obstore", reason="obstore is not installed")
        files = [path for path in root.rglob("*") if path.is_file()]
        blobs = {f"box/{path.relative_to(root)}": path.read_bytes() for path in files}
        with serving_blobs(blobs) as server:
            yield "az://box/{}", server.environment


@pytest.fixture(params=["http", "s3", "gs", "az"], scope="module")
def location(request: pytest.FixtureRequest, root: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with _served(request.param, root) as served:
        yield served


@pytest.fixture
def run(location: tuple[str, dict[str, str]], tmp_path: Path) -> Any:
    environment = os.environ | location[1] | {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*command: str, status: int = 0) -> str:
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)
        assert ran.returncode == status, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    return run


@pytest.mark.parametrize("form", ["tars", "mds"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_packed_folder_opens_by_its_name(
    location: tuple[str, dict[str, str]], run: Any, local: dict[str, str], form: str, slash: str
) -> None:
    if not slash and location[0].endswith("/"):
        pytest.skip("a URL of HTTP is a folder's if it ends in a slash")
    source = location[0].format(form).rstrip("/") + slash
    assert run(*READER, source) == local[form]
    assert json.loads(run(*COMMAND, "inspect", source, "--json"))["samples"] == _SAMPLES
    if form == "tars":
        assert f"{_SAMPLES}" in run(*COMMAND, "verify", source)


def test_format_verify_and_stage_take_it_too(location: tuple[str, dict[str, str]], run: Any, tmp_path: Path) -> None:
    source = location[0].format("tars").rstrip("/") + "/"
    code = (
        "import sys, feedline\n"
        "for options in ({'format': 'tar'}, {'verify': 'manifest'}, {'fields': ('jpg', 'cls')}):\n"
        "    print(len(feedline.open(sys.argv[1], **options)))\n"
        "print(len(feedline.open([sys.argv[1], sys.argv[1]])))\n"
    )
    assert run(sys.executable, "-c", code, source).split() == [str(_SAMPLES)] * 3 + [str(2 * _SAMPLES)]
    run(*COMMAND, "stage", source, str(tmp_path / "staged"))
    assert len(feedline.open(tmp_path / "staged")) == _SAMPLES


def test_folders_of_images_are_read_as_before(
    location: tuple[str, dict[str, str]], run: Any, local: dict[str, str]
) -> None:
    source = location[0].format("photos").rstrip("/") + "/"
    assert run(*READER, source) == local["photos"]
    assert json.loads(run(*COMMAND, "inspect", source, "--json"))["samples"] == _SAMPLES


def test_packing_that_did_not_finish_is_named(location: tuple[str, dict[str, str]], run: Any) -> None:
    said = run(*READER, location[0].format("begun").rstrip("/") + "/", status=1)
    assert "did not finish: run the same `feedline pack` command again" in said


def test_a_folder_of_images_is_not_asked_for_a_manifest(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with _served("http", root) as (location, _), serving(root) as server:
        assert len(feedline.open(server.url("photos/"))) == _SAMPLES
        assert not [path for path, _ in server.requests if "feedline-pack" in path], location
