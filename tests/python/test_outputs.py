# SPDX-License-Identifier: Apache-2.0
"""Output paths that are probably mistakes are rejected before any work, and nothing is created."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import feedline
from feedline import packing

COMMAND = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]
Write = Callable[[Path, str], Any]

WRITES: dict[str, Write] = {
    "pack": lambda folder, output: packing.pack(folder, output),
    "pack_pixels": lambda folder, output: feedline.pack_pixels(feedline.open(folder), output),
    "cache": lambda folder, output: feedline.open(folder).cache(output),
    "cache, a Path": lambda folder, output: feedline.open(folder).cache(Path(output)) if "://" not in output else None,
    "index": lambda folder, output: feedline.open(folder, index=output),
    "feedline pack": lambda folder, output: run("pack", folder, output),
    "feedline pack --raw": lambda folder, output: run("pack", folder, output, "--raw", "0"),
    "feedline inspect --show": lambda folder, output: run("inspect", folder, "--show", output),
}


def run(*arguments: str | Path) -> None:
    """The command line, whose usage errors are converted to ConfigError here."""
    ran = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True)
    assert ran.returncode in (0, 2), ran.stderr
    assert ran.returncode == 0 or not ran.stdout
    if ran.returncode == 2:
        raise feedline.ConfigError(ran.stderr)


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


TO_BUCKETS = ("pack", "pack_pixels", "feedline pack", "feedline pack --raw")


@pytest.mark.parametrize("url", ["s3://bucket/train", "https://host/x", "gs://bucket/shards"])
@pytest.mark.parametrize("what", [name for name in WRITES if name not in ("cache, a Path", *TO_BUCKETS)])
def test_a_url_makes_no_local_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(feedline.ConfigError, match=f"only local paths, not {url.split('://')[0]}://"):
        WRITES[what](folder, url)
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (
            "https://host/x",
            "cannot write to 'https://': only s3:// and gs:// are supported; or write to a local folder",
        ),
        ("az://box/x", "cannot write to 'az://'"),
        ("s3://", "has no bucket"),
        ("s3://bucket/x?versionId=1", r"must not contain '\?' or '#'"),
        ("s3://AKID:hunter2@bucket/x", "contains credentials"),
    ],
)
@pytest.mark.parametrize("what", TO_BUCKETS)
def test_urls_that_nothing_is_written_to(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, url: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(feedline.ConfigError, match=says) as refused:
        WRITES[what](folder, url)
    assert "hunter2" not in str(refused.value)
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize("what", WRITES)
def test_a_folder_that_is_missing_is_reported_and_not_made(folder: Path, tmp_path: Path, what: str) -> None:
    with pytest.raises(feedline.ConfigError, match="nowhere' does not exist; create it first, or correct the path"):
        WRITES[what](folder, str(tmp_path / "nowhere/out"))
    assert everything_in(tmp_path) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(feedline.ConfigError, match="file' is not a folder"):
        WRITES[what](folder, str(tmp_path / "file/out"))


@pytest.mark.parametrize("what", WRITES)
def test_a_relative_path_is_fine(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.chdir(tmp_path)
    WRITES[what](folder, "out.png")


def test_outputs_are_looked_at_before_the_source(tmp_path: Path) -> None:
    with pytest.raises(feedline.ConfigError, match="only s3:// and gs:// are supported"):
        packing.pack(tmp_path / "missing", "https://host/x")
    with pytest.raises(feedline.ConfigError, match="only local paths"):
        run("inspect", tmp_path / "missing", "--show", "s3://bucket/x.png")
    for wrong in ({"num_workers": 0}, {"jobs": 0}, {"seed": -1}, {"seed": "x", "shuffle": True}, {"shuffle": "yes"}):
        with pytest.raises(feedline.ConfigError, match=f"pack: {next(iter(wrong))} must be"):
            packing.pack(tmp_path / "missing", tmp_path / "out", **wrong)


def test_the_engine_makes_no_folder_either(folder: Path, tmp_path: Path) -> None:
    """A folder that is deleted between cache() and the first sample."""
    (tmp_path / "kept").mkdir()
    cached = feedline.open(folder).resize((16, 16)).cache(tmp_path / "kept/x.pixels")
    (tmp_path / "kept").rmdir()
    with pytest.raises(feedline.StorageError, match="kept"):
        cached[0]
    assert everything_in(tmp_path) == []
    with pytest.raises(feedline.ConfigError, match="is a folder; pass the path of a file in it"):
        feedline.open(folder).cache(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(feedline.ConfigError, match="permission denied"):
        packing.pack(folder, tmp_path / "locked/out")


def test_a_shard_size_without_its_unit(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(feedline.ConfigError, match=r'"5" is 5 bytes.*add the unit: "5G" or "5M", or "5B"'):
        run("pack", folder, tmp_path / "out", "--shard-size", "5")
    assert not (tmp_path / "out").exists()
    run("pack", folder, tmp_path / "out", "--shard-size", "5M")
    assert len(list((tmp_path / "out").glob("*.tar"))) == 1
    assert packing.pack(folder, tmp_path / "tiny", shard_bytes="5B").shards == 21
    assert packing.pack(folder, tmp_path / "bytes", shard_bytes="2000000").shards == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"batch_size": 22, "drop_last": True}, r"21 samples do not fill a batch of batch_size=22; lower batch_size"),
        ({"batch_size": 8, "drop_last": True, "rank": 1, "world_size": 3}, r"of batch_size=8 over 3 ranks"),
    ],
)
def test_an_epoch_without_a_batch_is_reported(folder: Path, options: dict[str, Any], says: str) -> None:
    with pytest.warns(UserWarning, match=says) as said:
        loader = feedline.open(folder).resize((8, 8)).loader(output="numpy", **options)
    assert len(said) == 1
    assert said[0].filename == __file__
    assert list(loader) == []


def test_an_epoch_with_a_batch_is_not(folder: Path, recwarn: pytest.WarningsRecorder) -> None:
    assert len(feedline.open(folder).resize((8, 8)).loader(21, drop_last=True, output="numpy")) == 1
    assert not recwarn.list
