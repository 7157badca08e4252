# SPDX-License-Identifier: Apache-2.0
"""Facts about a dataset's storage: file system, options, block device."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from .mounts import NETWORK, Mount, mount_of

Facts = dict[str, str | int | float | bool | None]
_VIRTUAL = ("vd", "xvd", "loop", "nbd", "rbd")  # devices whose "rotational" is only the driver's default


def local_path(source: str) -> str:
    """Converts a local ``file://`` URL to its path; other sources are returned unchanged.

    The engine decodes URLs itself; this function is for other code.
    """
    return "::".join(map(_local_part, source.split("::")))


def _local_part(part: str) -> str:
    match = re.fullmatch(r"(?is)file://(?:localhost)?(/.*)", part)
    if match is None or re.search(r"%(?![0-9A-Fa-f]{2})|%00", match[1]):
        return part  # not a file URL, or one that the engine rejects
    from urllib.parse import unquote_to_bytes

    return os.fsdecode(unquote_to_bytes(os.fsencode(match[1])))


def storage_facts(source: str | None, root: Path = Path("/")) -> tuple[Facts | None, list[str]]:
    """Returns facts about the storage of the path `source`, and sentences about unknown facts.

    For a pattern such as ``shards/{000..146}.tar``, the parent folder is used. None if the source is not a path.
    """
    if source is None:
        return None, ["the dataset's storage is unknown"]
    source = local_path(source)
    scheme = re.match(r"([a-z][a-z0-9+.-]*)://|pipe:", source)
    if scheme:
        return {"kind": "remote", "scheme": scheme[1] or "pipe"}, []
    mount = mount_of_source(source, root)
    if mount is None:
        return None, [f"the file system of {source} could not be found in /proc/self/mountinfo"]
    facts: Facts = {
        "file_system": mount.kind,
        "device": mount.device,
        "mount_point": mount.point,
        "mount_options": mount.options,
    }
    if mount.bound is not None:
        facts["bind_of"] = mount.bound
    if mount.family in NETWORK:
        return {"kind": "network", **facts}, []
    if mount.family == "memory":
        return {"kind": "memory", **facts}, []
    queue = _queue_of(mount.number, root)
    if queue is None:
        return {"kind": "overlay" if mount.family == "overlay" else "unknown", **facts}, [
            f"no block device found for {mount.point} ({mount.kind}), so it is unknown whether it is a hard disk"
        ]
    rotational = _number(queue / "rotational")
    facts |= {
        "rotational": None if rotational is None else bool(rotational),
        "read_ahead_kb": _number(queue / "read_ahead_kb"),
        "queue_requests": _number(queue / "nr_requests"),
    }
    name = queue.parent.name
    if name.startswith(_VIRTUAL):
        return {"kind": "virtual disk", **facts}, [f"{name} is a virtual disk, so its hardware is unknown"]
    return {"kind": "disk" if rotational else "nvme" if name.startswith("nvme") else "ssd", **facts}, []


def mount_of_source(source: str, root: Path = Path("/")) -> Mount | None:
    """Returns the mount that contains a local source; None if the source is remote or the mount is unknown."""
    source = local_path(source)
    if re.match(r"[a-z][a-z0-9+.-]*://|pipe:", source):
        return None
    return mount_of(_existing(source), root)


def device_model(number: str, root: Path = Path("/")) -> str | None:
    """Returns the model of the disk with :attr:`Mount.number`, such as "Amazon Elastic Block Store", or None."""
    queue = _queue_of(number, root)
    with contextlib.suppress(OSError):
        if queue is not None:
            return (queue.parent / "device/model").read_text(errors="replace").strip() or None
    return None


def _existing(source: str) -> Path:
    """Returns the longest part of the path that exists."""
    path = Path(os.path.realpath(source.split("::")[0]))
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _queue_of(number: str, root: Path) -> Path | None:
    device = Path(os.path.realpath(root / "sys/dev/block" / number))
    # a partition has no queue; its disk has
    return next((folder / "queue" for folder in (device, device.parent) if (folder / "queue").is_dir()), None)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
