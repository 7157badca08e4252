# SPDX-License-Identifier: Apache-2.0
"""Folders of files, in a bucket or on an HTTP server: the same samples and batches as from the folder on this
machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import read_digests
import servers
from click.testing import CliRunner
from range_server import serving
from running_processes import HANG_S

import feedline
from feedline.cli.root import root as command_line

FOLDER = "a b+c=d/träin"  # characters that signatures and listings must escape


@pytest.fixture(scope="module")
def root(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders with names that must be escaped, and with files that are not samples."""
    served = tmp_path_factory.mktemp("served")
    train = served / FOLDER
    shutil.copytree(folder, train)
    first = sorted(path for path in train.rglob("*") if path.is_file())[0]
    first.rename(first.with_name(f"1 + 1=é {first.name}"))
    inner = first.parent / "deeper-1"
    inner.mkdir()
    shutil.copy(sorted(first.parent.glob("*.*"))[-1], inner)
    (first.parent / "notes.txt").write_text("no sample")
    (train / "about.md").write_text("beside")
    return served


@pytest.fixture(scope="module")
def expected(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("indexes")))
        return read_digests.digest(f"{root}/{FOLDER}")


@pytest.fixture(scope="module")
def endpoint(root: Path) -> Iterator[str]:
    with servers.moto(root) as address:
        yield address


def python(code: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def read(source: str, environment: dict[str, str], *more: object) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, read_digests.__file__, source, *map(str, more)],
        env=environment, capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(
    endpoint: str, root: Path, expected: dict[str, Any], environment: dict[str, str], folder: Path
) -> dict[str, str]:
    own = {**environment, **servers.environment_of(endpoint), "XDG_CACHE_HOME": str(folder / "indexes")}
    source = f"s3://{servers.BUCKET}/{FOLDER}/"
    assert read(source, own) == expected
    assert len(list((folder / "indexes").rglob("*.feedline-folder-index"))) == 1
    assert read(source, own, folder / "cache") == expected, "by the listing that is kept, and into a cache"
    assert read(source, own, folder / "cache") == expected
    return own


def test_batches_are_those_of_local_files(
    endpoint: str, root: Path, expected: dict[str, Any], environment: dict[str, str], tmp_path: Path
) -> None:
    own = check(endpoint, root, expected, environment, tmp_path)
    code = f"""
import feedline, json
remote, local = "s3://{servers.BUCKET}/{FOLDER}/", {str(root / FOLDER)!r}
a, b = feedline.open(remote), feedline.open(local)
assert a.classes == b.classes and [a.key(i) for i in range(len(a))] == [b.key(i) for i in range(len(b))]
assert a.inspect().extensions == b.inspect().extensions and a.inspect().bytes == b.inspect().bytes
assert "listing_age=0" in a.explain(), a.explain()
loader = a.decode().center_crop(8).loader(4, shuffle=True, seed=1, output="numpy", rank=1, world_size=2)
first = [batch.label.tolist() for batch in loader][:2]
again = a.decode().center_crop(8).loader(4, shuffle=True, seed=1, output="numpy", rank=1, world_size=2)
next(iter(again))
state = again.state_dict()
resumed = b.decode().center_crop(8).loader(4, shuffle=True, seed=1, output="numpy", rank=1, world_size=2)
resumed.load_state_dict(state)
assert next(iter(resumed)).label.tolist() == first[1]
from feedline.verifying import verify
verified = verify(remote)
assert verified.samples == len(b) and verified.order_exact is not False, verified
assert not [one for one in verified.findings if one.severity == "error"], verified.findings
"""
    python(code, own)


@pytest.mark.parametrize("name", ["seaweedfs", "rclone"])
def test_other_servers_list_the_same(
    name: str, root: Path, expected: dict[str, Any], environment: dict[str, str], tmp_path: Path
) -> None:
    start = {"seaweedfs": servers.seaweedfs, "rclone": servers.rclone}[name]
    with start(root, tmp_path / "server") as address:
        check(address, root, expected, environment, tmp_path)


def test_what_cannot_be_listed_is_an_error_that_reports_it(
    endpoint: str, environment: dict[str, str], tmp_path: Path
) -> None:
    own = {**environment, **servers.environment_of(endpoint), "XDG_CACHE_HOME": str(tmp_path)}
    code = f"""
import feedline
for source, words in (
    ("s3://{servers.BUCKET}/nothing/", "no stored name begins with"),
    ("s3://no-such-bucket/train/", "NoSuchBucket"),
    ("s3://{servers.BUCKET}/", "'a b+c=d'"),
):
    try:
        print(feedline.open(source))
    except feedline.Error as error:
        assert words in str(error) and source.rstrip("/") in str(error), error
"""
    python(code, own)


def test_a_sample_that_changes_is_an_error_once(
    endpoint: str, environment: dict[str, str], tmp_path: Path, folder: Path
) -> None:
    own = {**environment, **servers.environment_of(endpoint), "XDG_CACHE_HOME": str(tmp_path)}
    code = f"""
import boto3, feedline, pathlib
s3 = boto3.client("s3", endpoint_url={endpoint!r}, aws_access_key_id={servers.KEY_ID!r},
                  aws_secret_access_key={servers.SECRET!r}, region_name="us-east-1")
files = sorted(p for p in pathlib.Path({str(folder)!r}).rglob("*") if p.is_file())
for i in range(6):
    s3.upload_file(str(files[i]), "{servers.BUCKET}", f"changing/cat/{{i}}{{files[i].suffix}}")
data = feedline.open("s3://{servers.BUCKET}/changing/")
s3.upload_file(str(files[7]), "{servers.BUCKET}", "changing/" + data.key(2))
s3.delete_object(Bucket="{servers.BUCKET}", Key="changing/" + data.key(4))
loader = data.decode().center_crop(8).loader(2, output="numpy", on_error="skip", error_budget=3)
assert sum(len(batch.label) for batch in loader) == 4
assert sorted(error.key for error in loader.errors) == [data.key(2), data.key(4)], loader.errors
again = feedline.open("s3://{servers.BUCKET}/changing/")
assert len(again) == 5, "the listing is made anew"
assert sum(len(b.label) for b in again.decode().center_crop(8).loader(2, output="numpy")) == 5
"""
    python(code, own)


def test_a_folder_over_http_opens_by_its_listing(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "indexes"))
    served = tmp_path / "served"
    shutil.copytree(root / FOLDER, served / "train")
    local = feedline.open(root / FOLDER)
    with serving(served) as server:
        with pytest.raises(feedline.StorageError, match=r"`feedline index FOLDER`"):
            feedline.open(server.url("train/"))
        done = CliRunner().invoke(command_line, ["index", str(served / "train"), "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.output)["files"] == len(local) + 2
        remote = feedline.open(server.url("train/"))
        assert [remote.key(i) for i in range(len(remote))] == [local.key(i) for i in range(len(local))]
        assert remote.fingerprint == local.fingerprint
        assert read_digests.digest(server.url("train/")) == read_digests.digest(str(root / FOLDER))
        assert feedline.inspect(server.url("train/")).samples == len(local)


def test_a_listing_is_of_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "cat/a b+%.jpg").write_bytes(b"123")
    for _ in range(2):  # the listing does not contain itself
        done = CliRunner().invoke(command_line, ["index", str(tmp_path)])
        assert done.exit_code == 0, done.output
        lines = (tmp_path / "feedline-listing.txt").read_text().splitlines()
        assert lines == ["feedline-listing 1 2", "3 cat/a%20b%2B%25.jpg", "0 empty/"]
    (tmp_path / "cat/up").symlink_to(tmp_path)
    done = CliRunner().invoke(command_line, ["index", str(tmp_path)], standalone_mode=False)
    assert isinstance(done.exception, feedline.ConfigError)
