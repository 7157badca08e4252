# SPDX-License-Identifier: Apache-2.0
"""For files on NFS, on a FUSE mount or on a parallel file system, diagnose does not simply recommend more workers."""

from dataclasses import replace

import pytest
from summaries import BY_CAUSE, but

from feedline.diagnose.causes import entries
from feedline.diagnose.verdict import evaluate
from feedline.profiler.dataset_files import place_of

LATE = BY_CAUSE["storage_latency"]


def on(family, measured=LATE):
    return replace(measured, host=replace(measured.host, files_place=family))


def verdict(measured):
    (found,) = (one for one in evaluate(measured).verdicts if one.code == "storage_latency")
    return found


@pytest.mark.parametrize(
    ("family", "words", "page"),
    [
        ("nfs", "cache=PATH", "nfs_mount"),
        ("parallel", "feedline pack", "parallel_mount"),
        ("objects", "s3://", "object_mount"),
        ("share", "feedline stage", "shared_folder_mount"),
    ],
)
def test_what_helps_there_is_reported_with_its_page(family, words, page):
    fix = verdict(on(family)).fix
    assert words in fix and f"feedline explain {page}" in fix and not fix.startswith("num_workers")


@pytest.mark.parametrize("family", [None, "overlay", "memory"])
def test_of_a_disk_of_this_machine_more_reads_at_a_time_are_advised(family):
    assert verdict(on(family)) == verdict(LATE) and "more reads in flight" in verdict(LATE).fix


def test_more_workers_are_advised_where_they_were_measured_to_help():
    rates = {LATE.workers: 50.0, 2 * LATE.workers: 90.0}  # batches per second of the loader alone; the loop reached 49
    fix = verdict(on("nfs", but(LATE, rungs=rates))).fix
    assert fix.startswith(f"num_workers={2 * LATE.workers}. The files are on NFS")


def test_the_pages_that_are_named_are_there():
    from feedline.cli.commands.explain import pages_of

    codes = {page.code for page in pages_of()}
    assert {"nfs_mount", "parallel_mount", "object_mount", "shared_folder_mount"} <= codes
    assert "storage_latency" in {entry.code for entry in entries()}


def test_the_place_is_that_of_most_folders(tmp_path):
    for folder in "abc":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").touch()
    root = tmp_path / "root"
    (root / "proc/self").mkdir(parents=True)
    lines = ["1 0 8:1 / / rw - ext4 /dev/sda1 rw"]
    lines += [f"{i} 1 0:{i} / {tmp_path / folder} rw - nfs4 s:/{folder} rw" for i, folder in enumerate("ab", 2)]
    (root / "proc/self/mountinfo").write_text("\n".join(lines))
    assert place_of([str(tmp_path / folder / "x") for folder in "abc"], root) == "nfs"
    assert place_of([str(tmp_path / "c" / "x")], root) is None
    assert place_of([], root) is None
