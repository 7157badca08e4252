# SPDX-License-Identifier: Apache-2.0
"""Batch commands on a Ray cluster of two nodes: files equal those of a local run, also if a process or node is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("ray", reason="Ray is not installed (tools/test --integrations installs it)")

sys.path.append(str(Path(__file__).parents[1] / "remote"))

import small_disk

import feedline
from feedline import packing

HANG_S = 600  # Ray starts a dozen processes
PROGRAM = Path(__file__).with_name("ray_batch_runs.py")
IMAGES = 40


def environment(**more: str) -> dict[str, str]:
    folders = [Path(feedline.__file__).parents[1], PROGRAM.parent, PROGRAM.parents[1]]
    paths = [*map(str, folders), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        **more,
    }


class Cluster:
    def __init__(self, scratch: str, log: Any) -> None:
        command = [sys.executable, str(PROGRAM), "cluster", scratch]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe, stderr=log, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert ":" in self.address, "the cluster did not start"

    def remove_node(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("remove\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == "removed"

    def run(self, *arguments: str, cwd: Path | None = None, status: int = 0) -> str:
        """Runs a command with the cluster's address, and returns its output."""
        told = environment(RAY_ADDRESS=self.address)
        ran = subprocess.run(
            [sys.executable, *arguments], env=told, cwd=cwd, capture_output=True, text=True, timeout=HANG_S
        )
        assert ran.returncode == status, ran.stdout[-3000:] + ran.stderr[-3000:]
        return ran.stdout + ("" if status == 0 else ran.stderr)

    def feedline(self, *arguments: str, cwd: Path | None = None, status: int = 0) -> str:
        return self.run("-m", "feedline", *arguments, cwd=cwd, status=status)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with (
        tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as scratch,
        (tmp_path_factory.mktemp("cluster") / "log").open("w") as log,
    ):
        started = Cluster(scratch, log)
        yield started
        assert started.process.stdin is not None
        started.process.stdin.close()
        started.process.wait(HANG_S)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `photos`, whose files have different sizes, and `texts`."""
    folder = tmp_path_factory.mktemp("data")
    for number in range(IMAGES):
        path = folder / "photos" / f"class{number % 2}" / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(number).integers(0, 256, (8 + number, 9, 3), np.uint8)
        Image.fromarray(noise).save(path)
    (folder / "texts").mkdir()
    for part in range(6):
        lines = (json.dumps({"text": f"document {20 * part + n} of {'x' * n}"}) for n in range(20))
        (folder / f"texts/{part}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def tars(here: Path) -> Path:
    packing.pack(here / "photos", here / "tars", samples_per_shard=8)
    return here / "tars"


def files(folder: Path) -> dict[str, bytes]:
    """Returns contents by name. Indexes contain the time at which their shard was written, and a checksum."""

    def content(path: Path) -> bytes:
        whole = path.read_bytes()
        return whole[:24] + whole[32:-8] if path.suffix == ".feedline-index" else whole

    return {str(path.relative_to(folder)): content(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def middle(here: Path) -> str:
    """The size of a file in the middle of the photos, which no other file has."""
    return str((here / "photos/class1/21.png").stat().st_size)


def test_packed_files_equal_those_of_a_local_run(cluster: Cluster, here: Path) -> None:
    options = ["--samples-per-shard", "3", "--shuffle", "--seed", "4", "--json"]
    local = json.loads(cluster.feedline("pack", "photos", "local", *options, cwd=here))
    made = json.loads(cluster.feedline("pack", "photos", "on_ray", *options, "--on", "ray", cwd=here))
    assert files(here / "on_ray") == files(here / "local")
    assert local["shards"] == made["shards"] == 14 and made["shards_found"] == 0
    assert {**made, "output": ""} == {**local, "output": "", "pattern": made["pattern"]}
    again = json.loads(cluster.feedline("pack", "photos", "on_ray", *options, "--on", "ray", cwd=here))
    assert again["shards_found"] == 14


def test_a_killed_task_of_pack_runs_again(cluster: Cluster, here: Path) -> None:
    size, marker = middle(here), here / "pack_died"
    cluster.run(str(PROGRAM), "pack", "photos", "killed", "ray", str(marker), size, cwd=here)
    assert marker.exists(), "no process died"
    cluster.run(str(PROGRAM), "pack", "photos", "not_killed", "", str(marker), size, cwd=here)
    assert files(here / "killed") == files(here / "not_killed")


def test_only_missing_ranges_are_packed_again(cluster: Cluster, here: Path) -> None:
    options: dict[str, Any] = {"samples_per_shard": 4}
    for span in ((0, 1), (3, 4)):
        packing.pack(here / "photos", here / "begun", shard_range=span, **options)
    finished = {name: (here / "begun" / name).stat().st_mtime_ns for name in files(here / "begun")}
    shown = cluster.feedline("pack", "photos", "begun", "--samples-per-shard", "4", "--on", "ray", "--json", cwd=here)
    assert json.loads(shown)["shards_found"] == 2
    packing.pack(here / "photos", here / "whole", **options)
    ours, theirs = files(here / "begun"), files(here / "whole")
    assert {name: content for name, content in ours.items() if name.endswith(".tar")} == {
        name: content for name, content in theirs.items() if name.endswith(".tar")
    }
    for name, time_ns in finished.items():
        if name.endswith(".tar"):
            assert (here / "begun" / name).stat().st_mtime_ns == time_ns


def test_a_killed_task_of_tokenize_runs_again(cluster: Cluster, here: Path) -> None:
    marker = here / "tokenize_died"
    cluster.run(str(PROGRAM), "tokenize", "texts/*.jsonl", "tokens_ray", "ray", str(marker), cwd=here)
    assert marker.exists(), "no process died"
    cluster.run(str(PROGRAM), "tokenize", "texts/*.jsonl", "tokens_local", "", str(marker), cwd=here)
    for end in ("bin", "idx", "tokenize.json"):
        assert (here / f"tokens_ray.{end}").read_bytes() == (here / f"tokens_local.{end}").read_bytes()
    assert len((here / "tokens_ray.bin").read_bytes()) == 2 * (4 * 120 - 6)  # words; six documents have three


@pytest.mark.parametrize("source", ["photos", "tars/{}"])
def test_verify_finds_the_same(cluster: Cluster, here: Path, tars: Path, source: str) -> None:
    names = sorted(path.name for path in tars.glob("*.tar"))
    broken = tars / "broken.tar"
    if source != "photos":
        source = f"tars/{{{','.join(name.removesuffix('.tar') for name in names)},broken}}.tar"
        broken.write_bytes((tars / names[1]).read_bytes()[:5000])
    local = cluster.feedline("verify", source, "--json", cwd=here, status=int(source != "photos"))
    made = cluster.feedline(
        *("verify", source, "--json", "--on", "ray", "--resume", f"journal_{len(source)}"),
        cwd=here,
        status=int(source != "photos"),
    )
    found, expected = (json.loads(text[: text.rindex("}") + 1]) for text in (made, local))
    assert found == expected
    assert found["samples"] >= IMAGES
    if source != "photos":
        assert any(finding["shard"].endswith("broken.tar") for finding in found["findings"])
    again = cluster.feedline(
        *("verify", source, "--json", "--on", "ray", "--resume", f"journal_{len(source)}"),
        cwd=here,
        status=int(source != "photos"),
    )
    assert json.loads(again[: again.rindex("}") + 1])["parts_found"] == (1 if source == "photos" else len(names) + 1)
    broken.unlink(missing_ok=True)


@pytest.mark.parametrize("kind", ["energon", "open_clip"])
def test_indexes_are_equal(cluster: Cluster, here: Path, tars: Path, kind: str) -> None:
    pattern = str(tars / "*.tar")
    before = files(tars)
    cluster.feedline("index", pattern, "--as", kind)
    local = {name: content for name, content in files(tars).items() if name not in before}
    assert local
    for name in local:
        (tars / name).unlink()
    cluster.feedline("index", pattern, "--as", kind, "--on", "ray")
    assert {name: content for name, content in files(tars).items() if name not in before} == local
    for name in local:
        (tars / name).unlink()


@pytest.mark.parametrize("source", ["photos", "tars/*.tar"])
def test_inspect_examines_all_images(cluster: Cluster, here: Path, tars: Path, source: str) -> None:
    local = json.loads(cluster.feedline("inspect", source, "--all", "--json", cwd=here))
    made = json.loads(cluster.feedline("inspect", source, "--all", "--json", "--on", "ray", cwd=here))
    assert made["images"] == local["images"]
    assert made["images"]["looked_at"] == IMAGES and made["images"]["formats"] == {"png": IMAGES}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("feedline-9.9.9.dist-info/METADATA", "Name: feedline\nVersion: 9.9.9\n", "has Feedline 9.9.9"),
        ("feedline/__init__.py", "", "cannot import Feedline"),
    ],
)
def test_workers_with_another_feedline(
    cluster: Cluster, here: Path, tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(content)
    path = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    shown = cluster.run(str(PROGRAM), "pack_with_path", "photos", "never", path, cwd=here)
    assert shown.startswith("ConfigError: pack: ") and message in shown
    assert not (here / "never").exists()


def test_errors_of_tasks_are_those_of_a_local_run(cluster: Cluster, here: Path, tmp_path: Path) -> None:
    for number in range(4):
        path = tmp_path / f"bad/class/{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((here / "photos/class0/00.png").read_bytes()[: None if number != 2 else 100])
    arguments = ["pack", "bad", "out", "--check", "--samples-per-shard", "1"]
    shown = cluster.feedline(*arguments, "--on", "ray", cwd=tmp_path, status=3)
    assert "2.png" in shown and "Traceback" not in shown
    local = cluster.feedline(*arguments[:2], "local", *arguments[3:], cwd=tmp_path, status=3)
    assert [line for line in shown.splitlines() if "2.png" in line] == [
        line for line in local.splitlines() if "2.png" in line
    ]


def test_a_full_disk_is_reported_and_the_command_resumes(cluster: Cluster, here: Path, tmp_path: Path) -> None:
    with small_disk.SmallDisk(tmp_path / "disk", 4) as disk:
        if disk.refusal:
            pytest.skip(f"a small disk cannot be mounted: {disk.refusal}")
        command = ["pack", "photos", str(disk.path / "out"), "--samples-per-shard", "2", "--on", "ray"]
        disk.leave_free(30_000)
        shown = cluster.feedline(*command, cwd=here, status=3)
        assert "No space left on device" in shown and "Traceback" not in shown
        disk.leave_free(3 << 20)
        cluster.feedline(*command, cwd=here)
        packing.pack(here / "photos", here / "no_small_disk", samples_per_shard=2)
        made, expected = files(disk.path / "out"), files(here / "no_small_disk")
        assert {name: made[name] for name in expected if name.endswith(".tar")} == {
            name: content for name, content in expected.items() if name.endswith(".tar")
        }


@pytest.mark.parametrize("on", ["spark", "ray://", "ray://host", "ray:6379", ""])
def test_bad_addresses(cluster: Cluster, here: Path, on: str) -> None:
    with pytest.raises(feedline.ConfigError, match="on must be"):
        packing.pack(here / "photos", here / "never", on=on)


def test_no_cluster_at_the_address(here: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "feedline", "pack", "photos", "never", "--on", "ray"],
        env=environment(RAY_ADDRESS="127.0.0.1:1"), cwd=here, capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip
    assert ran.returncode == 2 and "cannot connect to Ray at 127.0.0.1:1: " in ran.stderr


def test_a_node_is_removed_in_the_middle(cluster: Cluster, here: Path) -> None:
    """The last test: the cluster has one node afterwards."""
    size, marker = middle(here), here / "waits"
    told = environment(RAY_ADDRESS=cluster.address)
    command = [sys.executable, str(PROGRAM), "pack_waiting", "photos", "removed", "ray", str(marker), size]
    with subprocess.Popen(command, env=told, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as packing_run:
        deadline = time.monotonic() + HANG_S
        while not marker.exists():
            assert packing_run.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        cluster.remove_node()
        time.sleep(1)
        while packing_run.poll() is None:  # the task may run again
            marker.unlink(missing_ok=True)
            assert time.monotonic() < deadline
            time.sleep(0.1)
        output = packing_run.stdout.read().decode() if packing_run.stdout else ""
    assert packing_run.returncode == 0, output[-3000:]
    packing.pack(here / "photos", here / "not_removed", samples_per_shard=2)
    made, expected = files(here / "removed"), files(here / "not_removed")
    assert {name: made[name] for name in expected if name.endswith(".tar")} == {
        name: content for name, content in expected.items() if name.endswith(".tar")
    }
