# SPDX-License-Identifier: Apache-2.0
"""Mounts of this machine, from /proc/self/mountinfo: which one a path is seen through, and of what kind it is."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

# Families of file systems that differ in what helps: the kernel's names, or a FUSE file system's (fuse.NAME).
_FAMILIES = {
    "nfs": ("nfs", "nfs4"),
    "parallel": (
        *("lustre", "beegfs", "gpfs", "ceph", "wekafs", "pvfs2", "panfs", "fhgfs"),
        *("fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs"),
    ),
    "objects": (
        *("fuse.s3fs", "fuse.goofys", "fuse.mountpoint-s3", "fuse.mount-s3", "fuse.rclone", "fuse.gcsfuse"),
        *("fuse.blobfuse", "fuse.blobfuse2", "fuse.juicefs", "fuse.geesefs", "fuse.ossfs", "fuse.cosfs"),
    ),
    "share": ("cifs", "smb3", "smbfs", "9p", "virtiofs", "fuse.sshfs", "afs", "fuse.vmhgfs-fuse", "fuse.osxfs"),
    "overlay": ("overlay", "aufs", "fuse.fuse-overlayfs"),
    "memory": ("tmpfs", "ramfs"),
}
_FAMILY_OF = {kind: family for family, kinds in _FAMILIES.items() for kind in kinds}
# FUSE file systems whose kind is plain "fuse" say who they are as the device, as mountpoint-s3 does.
_CLIENTS = {
    "mountpoint-s3": "mountpoint-s3",
    "s3fs": "s3fs",
    "goofys": "goofys",
    "gcsfuse": "gcsfuse",
    "rclone": "rclone",
    "blobfuse2": "blobfuse2",
    "juicefs": "juicefs",
}
NETWORK = ("nfs", "parallel", "objects", "share")


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo. `root`: which folder of the file system is mounted, "/" for all of it."""

    number: str  # of the device, major:minor
    root: str
    point: str
    kind: str  # as the kernel names the file system
    device: str
    options: str  # of the mount
    of_file_system: str = ""  # its own options

    @property
    def family(self) -> str | None:
        """nfs, parallel, objects, share, overlay or memory; None: a file system of a disk, or an unknown one."""
        if self.kind in ("fuse", "fuseblk") and self.client is not None:
            return "objects"
        return _FAMILY_OF.get(self.kind)

    @property
    def client(self) -> str | None:
        """Which FUSE program serves it, such as "s3fs"; None: the kernel does, or it is not known."""
        if self.kind.startswith("fuse."):
            return self.kind.removeprefix("fuse.")
        return _CLIENTS.get(self.device.lower().partition(":")[0]) if self.kind == "fuse" else None

    @property
    def bound(self) -> str | None:
        """The folder of its file system that is mounted here, where it is not the whole: a bind mount.

        Btrfs names a subvolume so as well, and overlays have one root only.
        """
        is_part = self.root != "/" and self.kind not in ("btrfs", "overlay", "cgroup", "cgroup2", "proc", "sysfs")
        return self.root if is_part else None

    def option(self, name: str) -> str | None:
        """The value of `name=value` among the options, "" of one without a value; None: there is no such option."""
        for part in f"{self.options},{self.of_file_system}".split(","):
            key, _, value = part.partition("=")
            if key == name:
                return value
        return None


def mount_of(path: Path, root: Path = Path("/")) -> Mount | None:
    """The mount that `path`, which is absolute and without links, is seen through; None: that cannot be told."""
    try:
        lines = (root / "proc/self/mountinfo").read_bytes().split(b"\n")
    except OSError:
        return None
    mounts = [parsed for line in lines if (parsed := _parsed(line)) is not None]
    numbers = {number for number, _, _ in mounts}
    # as the kernel walks: from a mount to the one that stands first on the way to the path. What a later mount on a
    # folder above hides is no child of that mount, and is not found.
    here = [entry for entry in mounts if entry[1] not in numbers or entry[0] == entry[1]]
    best = None
    for _ in mounts:  # no way is longer
        step = _first_on_the_way(path, here)
        if step is None:
            break
        best = step[2]
        here = [entry for entry in mounts if entry[1] == step[0] and entry[0] != entry[1]]
    return best


def _first_on_the_way(path: Path, mounts: list[tuple[int, int, Mount]]) -> tuple[int, int, Mount] | None:
    there = [entry for entry in mounts if path.is_relative_to(entry[2].point)]
    # of two on one point the last one is on top
    return min(reversed(there), key=lambda entry: len(entry[2].point), default=None)


def _parsed(line: bytes) -> tuple[int, int, Mount] | None:
    """(its number, that of the mount it is in, the mount); None: no line of mountinfo.

    Names are bytes: the kernel writes space, tab, newline and backslash as octal numbers, and all other bytes as they
    are, those of any alphabet.
    """
    before, _, after = line.partition(b" - ")
    fields, tail = before.split(b" "), after.split(b" ")
    if len(fields) < 6 or len(tail) < 2 or not (fields[0].isdigit() and fields[1].isdigit()):
        return None
    number, within = int(fields[0]), int(fields[1])
    words = [os.fsdecode(_unescaped(word)) for word in (*fields[2:6], *tail[:2], *tail[2:3])]
    device_number, root, point, options, kind, device, *own = words
    return number, within, Mount(device_number, root, point, kind, device, options, own[0] if own else "")


def _unescaped(word: bytes) -> bytes:
    return re.sub(rb"\\([0-3][0-7]{2})", lambda octal: bytes([int(octal[1], 8)]), word)
