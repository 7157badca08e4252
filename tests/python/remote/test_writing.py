# SPDX-License-Identifier: Apache-2.0
"""Packing to a bucket writes the same bytes as packing to a folder, whatever happens during the upload."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import made_data
import numpy as np
import pytest
import servers
from fault_proxy import Request, proxied, refusal
from running_processes import HANG_S, until

import feedline
from feedline import packing

pytest.importorskip("click", reason="the command line is not installed")
# S3 accepts no smaller parts
SMALL_PARTS = "import feedline.testing; feedline.testing.force(upload_part_bytes=5 << 20)\n"
COMMAND = [sys.executable, "-c", SMALL_PARTS + "import sys; from feedline.cli import main; sys.exit(main())"]
ARGUMENTS = ("--samples-per-shard", "4", "--shuffle")


class Bucket:
    """Reads the contents of moto with boto3."""

    def __init__(self, endpoint: str, tmp_path: Path) -> None:
        boto3 = pytest.importorskip("boto3")
        keys = {"aws_access_key_id": servers.KEY_ID, "aws_secret_access_key": servers.SECRET}
        self.s3: Any = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)
        self.endpoint = endpoint
        parts = urlsplit(endpoint)
        self.address = (parts.hostname or "", parts.port or 0)
        self.spools = tmp_path / "temporary"
        self.spools.mkdir()

    def environment(self, endpoint: str | None = None, **more: str) -> dict[str, str]:
        found = servers.environment_of(endpoint or self.endpoint)
        return os.environ | found | {"TMPDIR": str(self.spools)} | more

    def run(self, *arguments: object, status: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
        environment = self.environment(**more)
        command = [*COMMAND, *map(str, arguments)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, env=environment)
        assert ran.returncode == status, ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr
        assert servers.SECRET not in ran.stdout + ran.stderr
        return ran

    def names(self, prefix: str) -> list[str]:
        found = self.s3.list_objects_v2(Bucket=servers.BUCKET, Prefix=prefix + "/").get("Contents", [])
        return [item["Key"].removeprefix(prefix + "/") for item in found]

    def content(self, key: str) -> bytes:
        content: bytes = self.s3.get_object(Bucket=servers.BUCKET, Key=key)["Body"].read()
        return content

    def contents(self, prefix: str) -> dict[str, bytes]:
        return {name: self.content(f"{prefix}/{name}") for name in self.names(prefix)}

    def uploads(self) -> list[str]:
        return [upload["Key"] for upload in self.s3.list_multipart_uploads(Bucket=servers.BUCKET).get("Uploads", [])]

    def left_behind(self) -> list[Path]:
        return [path for path in self.spools.rglob("*") if path.is_file()]


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    (tmp_path / "nothing").mkdir()
    with servers.moto(tmp_path / "nothing") as endpoint:
        urlopen(endpoint + "/moto-api/reset", data=b"").close()  # that other tests in this process have left
        made = Bucket(endpoint, tmp_path)
        made.s3.create_bucket(Bucket=servers.BUCKET)
        yield made


def comparable(files: dict[str, bytes]) -> dict[str, bytes]:
    """Returns the shards, and the manifest without the path of the source."""
    manifest = json.loads(files["feedline-pack.json"])
    del manifest["source"]
    shards = {name: content for name, content in files.items() if name.endswith(".tar")}
    return shards | {"manifest": json.dumps(manifest).encode()}


def local(folder: Path, output: Path, *arguments: str) -> dict[str, bytes]:
    subprocess.run([*COMMAND, "pack", str(folder), str(output), *arguments], check=True, capture_output=True)
    return comparable({path.name: path.read_bytes() for path in output.iterdir() if path.is_file()})


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A tar with samples that are uploaded in several parts."""
    made = random.Random(1)
    members = [(f"{i}.bin", made.randbytes(7_000_000)) for i in range(6)]
    made_data.write_tar(tmp_path / "large.tar", members)
    return tmp_path / "large.tar"


def test_a_bucket_gets_what_a_folder_gets(bucket: Bucket, folder: Path, tmp_path: Path) -> None:
    expected = local(folder, tmp_path / "local", *ARGUMENTS)
    said = bucket.run("pack", folder, "s3://data/a b+c/train/", *ARGUMENTS).stdout
    assert 'feedline.open("s3://data/a b+c/train/{000000..000005}.tar")' in said
    files = bucket.contents("a b+c/train")
    assert comparable(files) == expected
    assert sorted(files) == [*(f"{i:06d}.tar" for i in range(6)), "feedline-pack.json"]
    assert bucket.left_behind() == []
    assert (
        "6 shards, of which 6 already existed" in bucket.run("pack", folder, "s3://data/a b+c/train", *ARGUMENTS).stdout
    )
    reader = Path(__file__).with_name("read_digests.py")
    digests = [
        subprocess.run(
            [sys.executable, str(reader), source], env=bucket.environment(XDG_CACHE_HOME=str(tmp_path / "cache")),
            capture_output=True, text=True, check=True, timeout=HANG_S,
        ).stdout
        for source in (f"{tmp_path}/local/{{000000..000005}}.tar", "s3://data/a b+c/train/{000000..000005}.tar")
    ]  # fmt: skip
    assert digests[0] == digests[1] and digests[0]


def test_mds_in_a_bucket_is_what_it_is_in_a_folder(bucket: Bucket, folder: Path, tmp_path: Path) -> None:
    options = ("--to", "mds", "--compression", "gz", "--samples-per-shard", "6")
    packing.pack(folder, tmp_path / "local", to="mds", compression="gz", samples_per_shard=6)
    said = bucket.run("pack", folder, "s3://data/mds", *options).stdout
    assert 'feedline.open("s3://data/mds/index.json")' in said
    stored = bucket.contents("mds")
    assert sorted(stored) == sorted(path.name for path in (tmp_path / "local").iterdir() if path.is_file())
    for name, content in stored.items():
        if name != "feedline-pack.json":
            assert content == (tmp_path / "local" / name).read_bytes(), name
    assert bucket.left_behind() == []


def test_large_shards_go_up_in_parts(bucket: Bucket, large: Path, tmp_path: Path) -> None:
    arguments = ("--fields", "bin", "--samples-per-shard", "2")
    expected = local(large, tmp_path / "local", *arguments)
    refused: set[str] = set()

    def plan(request: Request) -> str:
        """Every part once, and every completion."""
        target = request.target
        if "uploadId" not in target or target in refused:
            return ""
        refused.add(target)
        return "503" if len(refused) % 2 else "reset"

    with proxied(bucket.address, plan) as proxy:
        bucket.run("pack", large, "s3://data/large", *arguments, endpoint=proxy.address)
    assert len(refused) >= 9
    assert comparable(bucket.contents("large")) == expected
    assert bucket.s3.head_object(Bucket="data", Key="large/000000.tar")["ETag"].endswith('-3"')
    assert bucket.uploads() == []


def test_a_completion_that_is_an_error_in_a_200(bucket: Bucket, large: Path) -> None:
    def answers(request: Request) -> Any:
        if request.method != "POST" or "uploadId" not in request.target:
            return None
        return refusal(200, "OK", b'<?xml version="1.0"?>\n<Error><Code>InvalidPart</Code></Error>')

    arguments = ("--fields", "bin", "--samples-per-shard", "2")
    with proxied(bucket.address, answers=answers) as proxy:
        failed = bucket.run("pack", large, "s3://data/large", *arguments, status=3, endpoint=proxy.address).stderr
    assert "cannot complete the upload: 200 OK, InvalidPart" in failed and "s3://data/large/000000.tar" in failed
    assert bucket.uploads() == [] and bucket.names("large") == ["feedline-pack.unfinished.json"]


KILLED = (
    "import os, signal, sys\n"
    "from feedline import packing\n"
    "def progress(done, total):\n"
    "    if done >= int(sys.argv[3]): os.kill(os.getpid(), signal.SIGKILL)\n"
    "packing.pack(sys.argv[1], sys.argv[2], samples_per_shard=4, shuffle=True, progress=progress)\n"
)


def test_killed_it_resumes_to_the_same_bytes(bucket: Bucket, folder: Path, tmp_path: Path) -> None:
    expected = local(folder, tmp_path / "local", *ARGUMENTS)
    destination = "s3://data/train"
    for moment in (3, 11, 18):
        died = subprocess.run(
            [sys.executable, "-c", KILLED, folder, destination, str(moment)], env=bucket.environment()
        )
        assert died.returncode == -signal.SIGKILL
        assert "feedline-pack.json" not in bucket.names("train"), "what has a manifest is whole"
    left = bucket.s3.create_multipart_upload(Bucket="data", Key="train/000004.tar")
    other = bucket.s3.create_multipart_upload(Bucket="data", Key="train/000001.tar")
    assert left and other
    said = bucket.run("pack", folder, destination, *ARGUMENTS).stdout
    assert "already existed" in said
    assert comparable(bucket.contents("train")) == expected
    bucket.run("pack", folder, "s3://data/at-once", *ARGUMENTS)
    assert bucket.contents("train") == bucket.contents("at-once"), "indexes and manifest, too"
    assert bucket.uploads() == ["train/000001.tar"], "those of finished shards may be another's"
    assert bucket.left_behind() == []


def test_ctrl_c_aborts_the_upload(bucket: Bucket, large: Path) -> None:
    waiting: list[str] = []

    def plan(request: Request) -> str:
        if "partNumber=2" not in request.target:
            return ""
        waiting.append(request.target)
        return "silence"

    command = [*COMMAND, "pack", str(large), "s3://data/large", "--fields", "bin", "--samples-per-shard", "2"]
    with proxied(bucket.address, plan) as proxy:
        environment = bucket.environment(proxy.address)
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        until(lambda: bool(waiting), "a part is under way")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=HANG_S)
    assert process.returncode == 130 and "Traceback" not in said
    assert bucket.uploads() == [] and bucket.left_behind() == []
    assert bucket.names("large") == ["feedline-pack.unfinished.json"]


_BY_SAMPLES, _BY_SIZE = ("--samples-per-shard", "4"), ("--shard-size", "12000B")


@pytest.mark.parametrize(
    ("destination", "size"),
    [
        ("s3", _BY_SAMPLES),
        ("s3", _BY_SIZE),
        ("folder", _BY_SAMPLES),
        pytest.param("folder", _BY_SIZE, marks=pytest.mark.nightly),
    ],
)
def test_two_workers_side_by_side_make_one(
    bucket: Bucket, folder: Path, tmp_path: Path, destination: str, size: tuple[str, str]
) -> None:
    arguments = (*size, "--shuffle")
    expected = local(folder, tmp_path / "local", *arguments)
    output = "s3://data/train" if destination == "s3" else str(tmp_path / "train")
    shards = int(bucket.run("pack", folder, output, *arguments, "--count").stdout)
    assert shards == len(expected) - 1
    ranges = [f"0:{shards // 2}", f"{shards // 2}:{shards + 3}"]
    commands = [[*COMMAND, "pack", str(folder), output, *arguments, "--shard-range", span] for span in ranges]
    workers = [subprocess.Popen(command, env=bucket.environment(), stdout=subprocess.DEVNULL) for command in commands]
    assert [worker.wait(HANG_S) for worker in workers] == [0, 0]
    said = bucket.run("merge-index", output).stdout
    assert f"21 samples in {shards} shards of 2 ranges" in said

    def written() -> dict[str, bytes]:
        if destination == "s3":
            return bucket.contents("train")
        return {path.name: path.read_bytes() for path in Path(output).iterdir() if path.is_file()}

    assert comparable(written()) == expected
    assert [name for name in written() if name.endswith((".json", ".lock"))] == ["feedline-pack.json"]
    if destination == "s3":  # killed before the last of these was removed
        bucket.s3.put_object(Bucket="data", Key="train/feedline-pack.000000-000002.json", Body=b"{}")
    assert "which was already complete" in bucket.run("merge-index", output).stdout
    assert [name for name in written() if name.endswith(".json")] == ["feedline-pack.json"]
    bucket.run("pack", folder, output, *arguments, "--shard-range", ranges[0])
    bucket.run("pack", folder, output, *arguments)
    assert comparable(written()) == expected


@pytest.mark.parametrize("destination", ["s3", "folder"])
def test_ranges_that_do_not_fit_are_named(bucket: Bucket, folder: Path, tmp_path: Path, destination: str) -> None:
    output = "s3://data/train" if destination == "s3" else str(tmp_path / "train")

    def pack(span: str, *more: str, status: int = 0) -> str:
        return bucket.run("pack", folder, output, *ARGUMENTS, *more, "--shard-range", span, status=status).stderr

    pack("0:2")
    pack("3:4")
    assert "of the 6 shards" in (failed := bucket.run("merge-index", output, status=3).stderr)
    assert "missing: 2:3, 4:6;" in failed and "--shard-range 2:3" in failed
    assert "overlap" in pack("1:3", status=2)
    assert "contains none of the 6 shards of 21 samples" in pack("6:9", status=2)
    assert "started with --shard-range" in bucket.run("pack", folder, output, *ARGUMENTS, status=2).stderr
    pack("2:3")
    pack("4:6", "--seed", "3")
    failed = bucket.run("merge-index", output, status=2).stderr
    assert "seed is 0 and 3" in failed and "000004-000006" in failed
    assert "seed was 3 and is 0" in pack("4:6", status=2)


def test_a_shard_that_is_gone_or_another_is_named(bucket: Bucket, folder: Path) -> None:
    output = "s3://data/train"
    for span in ("0:3", "3:6"):
        bucket.run("pack", folder, output, *ARGUMENTS, "--shard-range", span)
    original = bucket.content("train/000004.tar")
    bucket.s3.put_object(Bucket="data", Key="train/000004.tar", Body=b"x" + original[1:])
    assert "train/000004.tar has changed since it was packed" in bucket.run("merge-index", output, status=3).stderr
    bucket.s3.delete_object(Bucket="data", Key="train/000004.tar")
    assert "train/000004.tar is missing" in bucket.run("merge-index", output, status=3).stderr
    assert "feedline-pack.json" not in bucket.names("train")


def test_what_cannot_be_written_is_reported_before_any_work(bucket: Bucket, folder: Path, tmp_path: Path) -> None:
    missing = tmp_path / "no such source"
    failed = bucket.run("pack", missing, "s3://elsewhere/x", status=3).stderr
    assert "NoSuchBucket" in failed and "s3://elsewhere/x" in failed and "s3:PutObject" in failed
    failed = bucket.run("pack", folder, "s3://elsewhere/x.pixels", "--raw", "8", status=3).stderr
    assert "NoSuchBucket" in failed
    bucket.s3.put_object(Bucket="data", Key="mine/notes.txt", Body=b"1")
    assert "not empty" in bucket.run("pack", missing, "s3://data/mine", status=2).stderr
    bucket.run("pack", folder, "s3://data/train", *ARGUMENTS)
    assert "samples_per_shard was 4 and is 5" in bucket.run(
        "pack", folder, "s3://data/train", "--samples-per-shard", "5", "--shuffle", status=2
    ).stderr  # fmt: skip

    def answers(request: Request) -> Any:
        denied = b"<Error><Code>AccessDenied</Code></Error>"
        return refusal(403, "Forbidden", denied) if request.method == "PUT" else None

    with proxied(bucket.address, answers=answers) as proxy:
        failed = bucket.run("pack", folder, "s3://data/denied", status=3, endpoint=proxy.address).stderr
    assert "cannot write the object: 403 Forbidden, AccessDenied" in failed
    assert bucket.names("denied") == [] and bucket.left_behind() == []


def pixels_of(path: Path) -> list[Any]:
    """Returns the data of each sample, in the order of the dataset."""
    return [[np.asarray(value).tolist() for value in row] for row in feedline.open(path).center_crop(64)]


def test_pixels_go_to_a_bucket(bucket: Bucket, folder: Path, tmp_path: Path) -> None:
    subprocess.run([*COMMAND, "pack", str(folder), str(tmp_path / "x.pixels"), "--raw", "24"], check=True)
    said = json.loads(bucket.run("pack", folder, "s3://data/kept/x.pixels", "--raw", "24", "--json").stdout)
    assert said["samples"] == 21
    bucket.run("stage", "s3://data/kept/x.pixels", tmp_path / "staged", "--format", "pixels")
    staged = tmp_path / "staged/x.pixels"
    assert staged.read_bytes() == bucket.content("kept/x.pixels")
    assert pixels_of(staged) == pixels_of(tmp_path / "x.pixels"), "records lie in the order in which threads end"
    assert bucket.left_behind() == []


def test_skipped_samples_leave_their_shard_smaller(bucket: Bucket, folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "in"
    shutil.copytree(folder, source)
    cut = source / "birch" / "002.jpg"
    cut.write_bytes(cut.read_bytes()[:-700])
    arguments = ("--samples-per-shard", "4", "--check", "--on-error", "skip")
    bucket.run("pack", source, "s3://data/t", *arguments, "--shard-range", "0:3", status=1)
    bucket.run("pack", source, "s3://data/t", *arguments, "--shard-range", "3:6")
    merged = json.loads(bucket.run("merge-index", "s3://data/t", "--json").stdout)
    assert (merged["samples"], merged["skipped"], merged["shards"]) == (20, 1, 6)
    assert packing.shard_count(source, samples_per_shard=4) == 6
