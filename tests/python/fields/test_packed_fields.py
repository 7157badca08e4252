# SPDX-License-Identifier: Apache-2.0
"""``feedline pack`` for samples with any fields: every file of a sample, byte for byte, from folders and tars."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from made_fields import EXTENSIONS, PATTERNS, make_folder, make_tar, npy, sample

import feedline
from feedline import packing

COUNT = 7
MEMBERS = ("left.jpg", "right.jpg", "masks.png", "boxes.npy", "about.json", "captions.txt", "label.cls")


def members(shard: Path) -> dict[str, bytes]:
    with tarfile.open(shard) as tar:
        found = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        return {name: stream.read() for name, stream in found.items() if stream is not None}


def test_a_folder_by_pattern_becomes_shards_with_all_its_files(tmp_path: Path) -> None:
    samples = [sample(number) for number in range(COUNT)]
    root = make_folder(tmp_path / "x", samples)
    report = packing.pack(root, tmp_path / "out", fields=PATTERNS, samples_per_shard=4)
    assert (report.samples, report.shards, report.files) == (COUNT, 2, COUNT * len(MEMBERS))
    stored = members(tmp_path / "out/000000.tar") | members(tmp_path / "out/000001.tar")
    assert stored == {
        f"{number:04d}.{member}": files[extension]
        for number, files in enumerate(samples)
        for extension, member in zip(EXTENSIONS, MEMBERS, strict=True)
    }
    packed, ours = feedline.open(report.pattern, fields=MEMBERS), feedline.open(root, fields=PATTERNS)
    for one, other in zip(
        *(
            data.center_crop(16).collate("list", fields=data_field)
            for data, data_field in ((packed, "boxes.npy"), (ours, "boxes"))
        ),
        strict=True,
    ):
        for value, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(value, same)


def test_keys_with_dots_and_folders_stay_apart(tmp_path: Path) -> None:
    for key in ("a.1", "a.2", "deep/er/b", "a"):
        (tmp_path / "x/texts" / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"x/texts/{key}.txt").write_text(key)
    report = packing.pack(tmp_path / "x", tmp_path / "out", fields="texts/{key}.txt")
    assert set(members(tmp_path / "out/000000.tar")) == {
        "a.texts.txt",
        "a%2E1.texts.txt",
        "a%2E2.texts.txt",
        "deep/er/b.texts.txt",
    }
    assert sorted(row[0] for row in feedline.open(report.pattern, fields="texts.txt")) == [
        "a",
        "a.1",
        "a.2",
        "deep/er/b",
    ]


def test_nested_keys_are_no_class_folders(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    for key in ("deep/er/b", "deep/down/c"):
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{key}.txt").write_text(key)
    assert len(feedline.open(tmp_path, fields="name={key}.txt")) == 2
    assert not recwarn.list


def test_a_tar_without_images_is_packed_by_its_fields(tmp_path: Path) -> None:
    files = [{"boxes.npy": npy(np.arange(number)), "json": b"{}"} for number in range(5)]
    path = make_tar(tmp_path / "x.tar", files)
    with pytest.raises(feedline.ConfigError):
        packing.pack(path, tmp_path / "out")
    assert not (tmp_path / "out").exists(), "said before any work"
    packing.pack(path, tmp_path / "out", fields="json")
    assert members(tmp_path / "out/000000.tar") == members(path), "all members, not only those that were named"


def test_a_sample_that_lacks_a_file_stops_packing_or_is_listed(tmp_path: Path) -> None:
    samples = [sample(number) for number in range(COUNT)]
    del samples[3]["txt"]
    root = make_folder(tmp_path / "x", samples)
    with pytest.raises(feedline.DataError, match="field 'captions': the sample has no file for this field") as caught:
        packing.pack(root, tmp_path / "out", fields=PATTERNS)
    assert caught.value.key == "0003"
    report = packing.pack(root, tmp_path / "out", fields=PATTERNS, on_error="skip")
    assert report.samples == COUNT - 1
    assert [skipped.key for skipped in report.skipped] == ["0003"]


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_verbs_take_fields(tmp_path: Path) -> None:
    root = make_folder(tmp_path / "x", [sample(number) for number in range(COUNT)])
    fields = " ".join(PATTERNS)
    looked = command("inspect", root, "--fields", fields, "--json")
    assert looked.returncode == 0, looked.stderr
    found = json.loads(looked.stdout)
    assert (found["samples"], found["fields"]) == (
        COUNT,
        ["left", "right", "masks", "boxes", "about", "captions", "label"],
    )
    packed = command("pack", root, tmp_path / "out", "--fields", fields, "--json")
    assert packed.returncode == 0, packed.stderr
    assert json.loads(packed.stdout)["files"] == COUNT * len(MEMBERS)
    pixels = command("pack", root, tmp_path / "all.pixels", "--fields", fields, "--raw", "40", "--json")
    assert pixels.returncode == 0, pixels.stderr
    assert len(feedline.open(tmp_path / "all.pixels")) == COUNT
