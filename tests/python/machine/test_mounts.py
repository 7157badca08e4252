# SPDX-License-Identifier: Apache-2.0
"""Mounts as the kernel lists them: the mount through which a path is accessed, its kind, and the advice for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedline.data.storage import storage_types
from feedline.machine import storage
from feedline.machine.mounts import Mount, mount_of

ROOT = "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw"


def machine(tmp_path: Path, *lines: str) -> Path:
    """A generated root whose mountinfo has these lines."""
    root = tmp_path / "root"
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/mountinfo").write_bytes("\n".join(lines).encode() + b"\n")
    return root


def escaped(path: Path) -> str:
    """Escapes a name like the kernel: four characters as octal numbers, all other bytes unchanged."""
    text = str(path).replace("\\", "\\134")
    return text.replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")


@pytest.mark.parametrize(
    "name", ["my data", "日本語", "données été", "tab\there", "new\nline", "back\\slash", "a\u00a0b", "a\u2028b\x85c"]
)
def test_names_of_any_letters_are_read_as_the_kernel_writes_them(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    root = machine(tmp_path, ROOT, f"2 1 0:5 / {escaped(folder)} rw - nfs4 server:/{escaped(Path(name))} rw")
    mount = mount_of(folder / "x.tar", root)
    assert mount is not None and (mount.point, mount.device) == (str(folder), f"server:/{name}")
    facts, _ = storage.storage_facts(str(folder / "x.tar"), root)
    assert facts is not None and facts["kind"] == "network" and facts["mount_point"] == str(folder)


def test_bytes_that_are_octal_are_the_letters_utf_8_makes_of_them(tmp_path: Path) -> None:
    folder = tmp_path / "é"
    folder.mkdir()
    octal = "".join(f"\\{byte:03o}" for byte in "é".encode())
    root = machine(tmp_path, ROOT, f"2 1 0:5 / {tmp_path}/{octal} rw - cifs //server/x rw")
    mount = mount_of(folder, root)
    assert mount is not None and mount.point == str(folder) and mount.family == "share"


def test_what_a_later_mount_hides_is_not_seen(tmp_path: Path) -> None:
    inner = tmp_path / "data" / "inner"
    inner.mkdir(parents=True)
    outer = inner.parent
    under = f"2 1 0:5 / {inner} rw - nfs server:/hidden rw"
    over = f"3 1 0:6 / {outer} rw - lustre 10.0.0.1@o2ib:/scratch rw"
    assert (found := mount_of(inner, machine(tmp_path, ROOT, under))) and found.kind == "nfs"
    assert (found := mount_of(inner, machine(tmp_path, ROOT, under, over))) and found.kind == "lustre"
    top = f"4 3 0:7 / {outer} rw - tmpfs none rw"
    assert (found := mount_of(inner, machine(tmp_path, ROOT, under, over, top))) and found.kind == "tmpfs"
    own = f"5 4 0:8 / {inner} rw - nfs server:/seen rw"
    assert (found := mount_of(inner, machine(tmp_path, ROOT, under, over, top, own))) and found.device == "server:/seen"


def test_where_the_root_is_not_listed_and_lines_make_no_sense_what_can_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    only = f"7 3 0:5 / {tmp_path / 'd'} rw shared:1 master:2 - nfs4 s:/d rw,rsize=1048576,nconnect=4"
    root = machine(tmp_path, "", "nonsense", "1 2 3 - x", "a b 0:1 / / rw - ext4 x rw", only)
    mount = mount_of(tmp_path / "d", root)
    assert (
        mount is not None and mount.option("nconnect") == "4" and mount.option("rw") == "" and mount.option("x") is None
    )
    assert mount_of(tmp_path, root) is None
    assert mount_of(tmp_path, tmp_path / "nowhere") is None
    circle = machine(
        tmp_path,
        f"1 2 0:1 / {tmp_path} rw - nfs a rw",
        f"2 1 0:1 / {tmp_path} rw - nfs b rw",
        "3 9 0:1 / / rw - ext4 c rw",
    )
    assert (found := mount_of(tmp_path, circle)) and found.device == "c"


@pytest.mark.parametrize(
    ("kind", "device", "family", "code", "words"),
    [
        ("nfs4", "server:/data", "nfs", "nfs_mount", "Additional workers soon stop helping"),
        ("nfs", "server:/data", "nfs", "nfs_mount", "nconnect=8"),
        ("lustre", "10.0.0.1@o2ib:/scratch", "parallel", "parallel_mount", "feedline pack"),
        ("fuse.s3fs", "s3fs", "objects", "object_mount", "s3://BUCKET"),
        ("fuse.goofys", "bucket", "objects", "object_mount", "s3://BUCKET"),
        ("fuse", "mountpoint-s3", "objects", "object_mount", "s3://BUCKET"),
        ("fuse.rclone", "remote:bucket", "objects", "object_mount", "cache="),
        ("fuse.gcsfuse", "bucket", "objects", "object_mount", "gs://BUCKET"),
        ("cifs", "//server/data", "share", "shared_folder_mount", "cache="),
        ("fuse.sshfs", "host:/data", "share", "shared_folder_mount", "cache="),
        ("overlay", "overlay", "overlay", "overlay_mount", "volume"),
    ],
)
def test_each_kind_of_place_has_a_finding_with_what_helps_and_a_page(
    kind: str, device: str, family: str, code: str, words: str, tmp_path: Path
) -> None:
    root = machine(tmp_path, ROOT, f"2 1 0:5 / {tmp_path} rw - {kind} {device} rw")
    (tmp_path / "x.tar").touch()
    (finding,) = storage_types.findings_of_source(str(tmp_path / "x.tar"), root)
    assert (finding.code, finding.severity) == (code, "note")
    assert device in finding.text and words in finding.fix
    assert code in {page.code for page in storage_types.entries()}
    facts, _ = storage.storage_facts(str(tmp_path), root)
    assert facts is not None and facts["kind"] == ("overlay" if family == "overlay" else "network")
    explanation = storage_types.explained("reads\n", str(tmp_path / "{0..9}.tar"), root)
    assert (f"feedline explain {code}" in explanation) is (family != "overlay") and explanation.startswith("reads\n")
    assert storage_types.explained("cache '/x' of at most", str(tmp_path), root) == "cache '/x' of at most", (
        "copies are kept"
    )


def test_disks_urls_and_datasets_without_files_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine(tmp_path, ROOT)
    assert storage_types.findings_of_source(str(tmp_path), root) == []
    root = machine(tmp_path, ROOT, f"2 1 0:5 / {tmp_path} rw - nfs server:/data rw")
    monkeypatch.chdir(tmp_path)
    for source in ("https://host/x.tar", "s3://bucket/x", "pipe:cat x", "arrays", "a + b", "nowhere/{0..9}.tar"):
        assert storage_types.findings_of_source(source, root) == [], source
    assert [one.code for one in storage_types.findings_of_source(f"{tmp_path}::https://host/x.tar", root)] == [
        "nfs_mount"
    ]
    assert len(storage_types.findings_of_source(f"{tmp_path}::{tmp_path}", root)) == 1


def test_a_bind_mount_reports_its_source(tmp_path: Path) -> None:
    root = machine(tmp_path, ROOT, f"2 1 259:1 /srv/data {tmp_path} rw - ext4 /dev/nvme0n1p1 rw")
    (finding,) = storage_types.findings_of_source(str(tmp_path), root)
    assert finding.code == "bind_mount" and "/srv/data of /dev/nvme0n1p1" in finding.text
    facts, _ = storage.storage_facts(str(tmp_path), root)
    assert facts is not None and facts["bind_of"] == "/srv/data"
    both = machine(tmp_path, ROOT, f"2 1 0:5 /data {tmp_path} rw - nfs4 server:/ rw")
    assert [one.code for one in storage_types.findings_of_source(str(tmp_path), both)] == ["nfs_mount", "bind_mount"]
    subvolume = Mount("0:5", "/@home", "/home", "btrfs", "/dev/sda1", "rw")
    assert subvolume.bound is None


def test_an_nfs_mount_with_several_connections_is_not_reported_to_have_them(tmp_path: Path) -> None:
    root = machine(tmp_path, ROOT, f"2 1 0:5 / {tmp_path} rw - nfs4 server:/data rw,nconnect=8,rsize=1048576")
    (finding,) = storage_types.findings_of_source(str(tmp_path), root)
    assert "nconnect=8, rsize=1048576" in finding.text and "nconnect" not in finding.fix
