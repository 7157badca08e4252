# SPDX-License-Identifier: Apache-2.0
"""Data over HTTP is the same as local data: batches byte for byte, whatever networks and servers do; or an error."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import training
from range_server import RangeServer, serving

import feedline

# What opening reads from an object: only its version, or also its first members.
VERSION, OPENING = 1, 4096
TWO_EPOCHS = """
import hashlib, sys, feedline, numpy as np
data = feedline.open(sys.argv[1], cache=sys.argv[2], cache_limit="1 GiB").center_crop(8)
with data.loader(5, shuffle="shards", seed=3, output="numpy", num_workers=2) as loader:
    for _ in range(2):
        sums = hashlib.sha256()
        for batch in loader:
            sums.update(np.ascontiguousarray(batch[0]).tobytes())
        print(sums.hexdigest())
"""


@pytest.fixture
def server(tars: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    """Serves the shards; this test has its own index folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with serving(tars[0].parent) as running:
        yield running


def batches(data: feedline.Dataset, **options: Any) -> list[list[bytes]]:
    """Returns two epochs of training batches, as bytes."""
    with training(data).loader(batch_size=5, shuffle=True, seed=3, output="numpy", **options) as loader:
        return [[np.asarray(field).tobytes() for field in batch] for _ in range(2) for batch in loader]


def test_batches_are_those_of_local_files(server: RangeServer, tars: list[Path]) -> None:
    local, remote = feedline.open(tars), feedline.open(server.url("{000..002}.tar"))
    assert len(remote) == len(local)
    assert remote.fingerprint == local.fingerprint
    assert batches(remote) == batches(local)
    assert feedline.inspect(server.url("{000..002}.tar")).samples == len(local)


def test_shards_are_indexed_once_and_by_few_requests(server: RangeServer, tars: list[Path]) -> None:
    feedline.open(server.url("000.tar"))
    assert len(server.requests) <= 6, "not one for each member"
    server.requests.clear()
    feedline.open(server.url("000.tar"))
    assert server.requests == [], "its index is at hand"


def test_samples_are_read_by_one_range_each(server: RangeServer, tars: list[Path]) -> None:
    data = feedline.open(server.url("{000..002}.tar"))
    server.requests.clear()
    with training(data).loader(batch_size=5, output="numpy", epochs=1) as loader:
        assert sum(len(batch[1]) for batch in loader) == len(data)
        assert "by http" in loader.explain()
    # A thread that needs a sample before its prefetch has begun reads it as well: the same range.
    assert len(set(server.requests)) <= len(data) + 1


def test_a_shard_is_fetched_once_into_a_cache(server: RangeServer, tars: list[Path], tmp_path: Path) -> None:
    """Then the index is read from there: only the object's version is requested, while the first epoch runs."""
    source, cache = server.url("{000..002}.tar"), tmp_path / "shards"
    expected = batches(feedline.open(tars))
    assert batches(feedline.open(source, cache=str(cache))) == expected
    assert len(list(cache.rglob("*.object"))) == 3
    data = feedline.open(source, cache=str(cache))
    server.requests.clear()
    assert batches(data) == expected
    assert sorted(server.requests) == [(f"/{i:03d}.tar", "bytes=0-0") for i in range(3)]
    server.requests.clear()
    assert batches(data) == expected
    assert server.requests == [], "no byte of a sample comes over the network again"


def test_faults_change_no_batch(server: RangeServer, tars: list[Path]) -> None:
    faults = ["503", "", "cut", "", "", "cut", "503"]
    server.fault = lambda number, path: faults[number * 13 % len(faults)]
    assert batches(feedline.open(server.url("{000..002}.tar"))) == batches(feedline.open(tars))


@pytest.mark.parametrize("fault", ["wrong_range", "changed"])
def test_wrong_bytes_are_errors_that_name_their_place(server: RangeServer, fault: str) -> None:
    data = feedline.open(server.url("{000..002}.tar"))
    server.fault = lambda number, path: fault if path == "/001.tar" else ""
    with pytest.raises(feedline.StorageError) as caught:
        batches(data)
    text = str(caught.value)
    assert server.url("001.tar") in text
    assert "key" in text
    assert ("changed between index and read" if fault == "changed" else "a different range") in text


def test_what_is_not_there_is_named(server: RangeServer) -> None:
    with pytest.raises(feedline.StorageError, match=r"404 Not Found.*009\.tar"):
        feedline.open(server.url("009.tar"))


def test_a_shard_that_was_replaced_is_reindexed(tars: list[Path], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "served").mkdir()
    with serving(tmp_path / "served") as server:
        shutil.copy(tars[0], tmp_path / "served/x.tar")
        assert batches(feedline.open(server.url("x.tar"))) == batches(feedline.open(tars[0]))
        shutil.copy(tars[1], tmp_path / "served/x.tar")
        with pytest.raises(feedline.StorageError, match="changed between index and read"):
            batches(feedline.open(server.url("x.tar")))
        assert batches(feedline.open(server.url("x.tar"))) == batches(feedline.open(tars[1]))


def test_tokens_are_not_read_by_a_url(server: RangeServer) -> None:
    with pytest.raises(feedline.ConfigError, match="not on this machine"):
        feedline.tokens(server.url("000.tar"), window=64, dtype="uint16")


def test_secrets_are_nowhere(server: RangeServer) -> None:
    url = server.url("{000..002}.tar").replace("http://", "http://me:hunter2@") + "?X-Amz-Signature=hunter2"
    data = feedline.open(url)
    with training(data).loader(batch_size=5, output="numpy") as loader:
        next(iter(loader))
        said = [data.source, data.explain(), repr(data), loader.explain(), str(loader.state_dict())]
    server.fault = lambda number, path: "changed"
    with pytest.raises(feedline.StorageError) as caught:
        batches(data)
    said += [str(caught.value), repr(vars(caught.value))]
    with pytest.raises(feedline.StorageError) as caught:
        feedline.open(url.replace("{000..002}", "009"))
    said += [str(caught.value), repr(vars(caught.value))]
    assert not [text for text in said if "hunter2" in text]


def test_a_child_after_fork_reads_by_itself(server: RangeServer) -> None:
    data = feedline.open(server.url("000.tar"))
    expected = np.asarray(data.center_crop(8)[0][0]).tobytes()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if np.asarray(data.center_crop(8)[0][0]).tobytes() == expected else 1
        finally:  # after an exception the child would run the remaining tests
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert np.asarray(data.center_crop(8)[0][0]).tobytes() == expected


def test_without_libcurl_the_error_reports_what_to_install(server: RangeServer) -> None:
    code = f"import feedline; feedline.open({server.url('000.tar')!r})"
    environment = {**os.environ, "FEEDLINE_LIBCURL": "/nowhere/libcurl.so.4"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "StorageError" in done.stderr
    assert "apt-get install libcurl4" in done.stderr


def test_a_program_ends_in_the_middle_of_reads(server: RangeServer) -> None:
    code = (
        f"import feedline; it = iter(feedline.open({server.url('{000..002}.tar')!r}).center_crop(8)"
        ".loader(2, output='numpy')); next(it); print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


READ_BUCKET = """
import hashlib, os, sys, feedline
from feedline import staging, verifying
def digest(source):
    data = feedline.open(source).random_resized_crop(32).random_horizontal_flip()
    with data.loader(5, shuffle=True, output="numpy") as loader:
        return hashlib.sha256(b"".join(field.tobytes() for batch in loader for field in batch)).hexdigest()
remote, local = sys.argv[1:]
assert digest(remote) == digest(local)
try:
    feedline.open(remote.replace("{000..002}", "009"))
except feedline.StorageError as error:
    assert "404" in str(error) and "s3://" in str(error), error
    assert "hunter2" not in str(error)
else:
    raise SystemExit("opened what is not there")
verified = verifying.verify(remote)
assert verified.sound and verified.samples == len(feedline.open(local)), verified
staged = staging.stage(remote, os.path.join(os.environ["XDG_CACHE_HOME"], "staged"))
assert digest(staged.opens) == digest(local)
print("same")
"""


def test_a_bucket_holds_the_same_data(tars: list[Path], tmp_path: Path) -> None:
    boto3 = pytest.importorskip("boto3", reason="moto, the S3 of this test, is not installed")
    moto_server = pytest.importorskip("moto.server", reason="moto, the S3 of this test, is not installed")
    bucket = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    bucket.start()
    try:
        endpoint = f"http://127.0.0.1:{bucket.get_host_and_port()[1]}"
        keys = {"aws_access_key_id": "me", "aws_secret_access_key": "hunter2", "region_name": "us-east-1"}
        s3 = boto3.client("s3", endpoint_url=endpoint, **keys)
        s3.create_bucket(Bucket="data")
        for tar in tars:
            s3.upload_file(str(tar), "data", f"a b+c=d/{tar.name}")
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "me",
            "AWS_SECRET_ACCESS_KEY": "hunter2",
            "XDG_CACHE_HOME": str(tmp_path),
        }
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                READ_BUCKET,
                "s3://data/a b+c=d/{000..002}.tar",
                f"{tars[0].parent}/{{000..002}}.tar",
            ],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert (done.returncode, done.stdout) == (0, "same\n"), done.stderr
    finally:
        bucket.stop()


def ranges_of(server: RangeServer, path: Path) -> list[tuple[int, int]]:
    """Returns the first byte and the end of each request for the file, without those for opening."""
    size = path.stat().st_size
    asked = [re.fullmatch(r"bytes=(\d+)-(\d+)", said) for name, said in server.requests if name == f"/{path.name}"]
    assert all(asked), "each request says which bytes it wants"
    ranges = [(int(one[1]), min(int(one[2]) + 1, size)) for one in asked if one]
    return [one for one in ranges if one not in ((0, VERSION), (0, OPENING))]


def test_eight_processes_on_a_cold_cache_fetch_each_byte_once_and_the_second_epoch_none(
    server: RangeServer, tars: list[Path], tmp_path: Path
) -> None:
    for tar in tars:  # larger than the data that is read when opening
        assert tar.stat().st_size > 2 * OPENING
    source, cache = server.url("{000..002}.tar"), tmp_path / "shards"

    def all_eight() -> set[str]:
        command = [sys.executable, "-c", TWO_EPOCHS, source, str(cache)]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
        outputs = {process.communicate(timeout=300)[0] for process in running}
        assert all(process.returncode == 0 for process in running)
        return outputs

    (first,) = all_eight()
    assert len(set(first.split())) == 2, "two epochs, in two orders"
    for tar in tars:
        covered = [0] * tar.stat().st_size
        for begin, end in ranges_of(server, tar):
            covered[begin:end] = [times + 1 for times in covered[begin:end]]
        assert set(covered) == {1}, f"{tar.name}: {ranges_of(server, tar)}"
    server.requests.clear()
    assert all_eight() == {first}, "the same from the copies"
    assert [ranges_of(server, tar) for tar in tars] == [[], [], []], "no byte is fetched again"
