# SPDX-License-Identifier: Apache-2.0
"""Reads /proc/self/mountinfo: finds a path's mount and the kind of its file system."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

# Families of file systems with the same tuning advice, by the kernel's name or a FUSE file system's (fuse.NAME).
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
# FUSE file systems of kind "fuse" that are identified by their device, as mountpoint-s3.
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
    """A line of mountinfo. `root`: the folder of the file system that is mounted; "/" for the whole file system."""

    number: str  # of the device, major:minor
    root: str
    point: str
    kind: str  # the kernel's name for the file system
    device: str
    options: str  # of the mount
    of_file_system: str = ""  # of the file system

    @property
    def family(self) -> str | None:
        """One of nfs, parallel, objects, share, overlay or memory; None for disk file systems and unknown ones."""
        if self.kind in ("fuse", "fuseblk") and self.client is not None:
            return "objects"
        return _FAMILY_OF.get(self.kind)

    @property
    def client(self) -> str | None:
        """The FUSE program that serves the file system, such as "s3fs"; None for kernel file systems, or if unknown."""
        if self.kind.startswith("fuse."):
            return self.kind.removeprefix("fuse.")
        return _CLIENTS.get(self.device.lower().partition(":")[0]) if self.kind == "fuse" else None

    @property
    def bound(self) -> str | None:
        """The folder of the file system that is mounted here, if this is a bind mount of a folder.

        Btrfs reports subvolumes in the same way; overlay mounts have only one root.
        """
        is_part = self.root != "/" and self.kind not in ("btrfs", "overlay", "cgroup", "cgroup2", "proc", "sysfs")
        return self.root if is_part else None

    def option(self, name: str) -> str | None:
        """Returns the value of the option `name=value`, "" if the option has no value, or None if it is missing."""
        for part in f"{self.options},{self.of_file_system}".split(","):
            key, _, value = part.partition("=")
            if key == name:
                return value
        return None


def mount_of(path: Path, root: Path = Path("/")) -> Mount | None:
    """Returns the mount that contains `path`, which must be absolute and without links, or None if unknown."""
    try:
        lines = (root / "proc/self/mountinfo").read_bytes().split(b"\n")
    except OSError:
        return None
    mounts = [parsed for line in lines if (parsed := _parsed(line)) is not None]
    numbers = {number for number, _, _ in mounts}
    # Resolves like the kernel: from a mount to the first child mount along the path. Mounts hidden by a later mount on
    # a parent folder are not children of that mount, so they are not found.
    here = [entry for entry in mounts if entry[1] not in numbers or entry[0] == entry[1]]
    best = None
    for _ in mounts:  # limits the loop
        step = _first_on_the_way(path, here)
        if step is None:
            break
        best = step[2]
        here = [entry for entry in mounts if entry[1] == step[0] and entry[0] != entry[1]]
    return best


def _first_on_the_way(path: Path, mounts: list[tuple[int, int, Mount]]) -> tuple[int, int, Mount] | None:
    there = [entry for entry in mounts if path.is_relative_to(entry[2].point)]
    # of two mounts at one point, the last is on top
    return min(reversed(there), key=lambda entry: len(entry[2].point), default=None)


def _parsed(line: bytes) -> tuple[int, int, Mount] | None:
    """Parses a line into (id, parent id, mount), or None if it is not a line of mountinfo.

    Names are bytes: the kernel writes space, tab, newline and backslash as octal numbers, and all other bytes
    unchanged.
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
