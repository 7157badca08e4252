# SPDX-License-Identifier: Apache-2.0
"""Storage types other than a plain disk: findings about a source's storage, their pages, and advice."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...findings import Entry, Finding
from ...machine.mounts import Mount
from ...machine.storage import local_path, mount_of_source

_CACHE = (
    'cache="/a/local/folder" in feedline.open caches copies on a local disk, and `feedline stage` prefetches them '
    "beforehand"
)


@dataclass(frozen=True)
class StorageType:
    """A storage type: its page, and functions that return the evidence and advice for a mount."""

    page: Entry
    fix: Callable[[Mount], str]
    more: Callable[[Mount], str] = lambda _: ""  # evidence


def _page(code: str, title: str, means: str, to_do: str, example: str) -> Entry:
    return Entry(
        code,
        "inspect",
        title,
        means,
        "The file system's name and options in /proc/self/mountinfo are read for the mount that contains the "
        "source. Nothing is measured.",
        to_do,
        "The source is a URL, or the mount of its path is unknown.",
        example=example,
    )


def _nfs_options(mount: Mount) -> str:
    connections = mount.option("nconnect")
    size = mount.option("rsize")
    said = [f"nconnect={connections}" if connections else "one connection (no nconnect=)"]
    return ", ".join(said + ([f"rsize={size}"] if size else []))


def _nfs_fix(mount: Mount) -> str:
    wider = "" if mount.option("nconnect") else " Mounting with nconnect=8 spreads reads over several connections."
    return f"{_CACHE}. Additional workers soon stop helping, because all of them wait for the same server.{wider}"


def _object_fix(mount: Mount) -> str:
    scheme = (
        "gs://" if mount.client == "gcsfuse" else "az://" if (mount.client or "").startswith("blobfuse") else "s3://"
    )
    return (
        f"Open the objects by their URL ({scheme}BUCKET/...): the planned ranges are then prefetched concurrently. "
        f"Or {_CACHE}."
    )


_PLACES = {
    "nfs": StorageType(
        _page(
            "nfs_mount",
            "the source is on NFS",
            "Each opened file is a request to a server shared by all of its clients, and each read "
            "that is not in the page "
            "cache waits for a round trip. Many small files are the worst case. More workers compete "
            "for the throughput of one "
            "server and, without nconnect=, one connection.",
            'Cache copies on a local disk: cache=PATH in feedline.open, .cache("memory"), or `feedline stage`. '
            "Pack small files into shards (feedline pack). Mount the export with nconnect= and the largest rsize=.",
            "server:/data, nfs4, at /mnt/data: one connection (no nconnect=), rsize=1048576.",
        ),
        _nfs_fix,
        _nfs_options,
    ),
    "parallel": StorageType(
        _page(
            "parallel_mount",
            "the source is on a parallel file system",
            "Lustre, BeeGFS, GPFS, Ceph and similar systems read large files from many servers in parallel, but "
            "open files through a few metadata servers, which the whole cluster shares: a million small files are "
            "slow to read, and slow down all users.",
            "Pack small files into shards of some hundred megabytes (feedline pack), striped over several "
            "servers (lfs setstripe -c); "
            'shuffle="shards" reads each of them sequentially. Cache copies on a local disk: cache=PATH, or '
            "`feedline stage`.",
            "10.0.0.1@o2ib:/scratch, lustre, at /scratch.",
        ),
        lambda _: f"Read large shards (feedline pack) instead of many small files; {_CACHE}.",
    ),
    "objects": StorageType(
        _page(
            "object_mount",
            "the source is in an object store, mounted by FUSE",
            "s3fs, goofys, mountpoint-s3, rclone, gcsfuse and similar tools present objects as files: opening a "
            "file takes one or two requests of 10 to 100 ms, and each read passes through a process of the mount. "
            "Random reads of a file need separate requests, or read unneeded bytes.",
            "Open the objects by URL (s3://, gs://, az://, https://): Feedline prefetches the ranges that the plan "
            "needs, "
            "concurrently. "
            'Or read shards in order (shuffle="shards") with cache=PATH on a local disk, or `feedline stage`.',
            "bucket, fuse.gcsfuse, at /gcs.",
        ),
        _object_fix,
    ),
    "share": StorageType(
        _page(
            "shared_folder_mount",
            "the source is in a folder on another machine",
            "SMB, sshfs, 9p and virtiofs forward each call to another machine or to this one's host: opening a file "
            "takes "
            "milliseconds, and all reads share one connection.",
            "Cache copies on a local disk: cache=PATH in feedline.open, or `feedline stage`. Pack small files "
            "into shards.",
            "//server/data, cifs, at /mnt/data.",
        ),
        lambda _: f"{_CACHE}. Additional workers would wait for the same connection.",
    ),
    "overlay": StorageType(
        _page(
            "overlay_mount",
            "the source is in a container's own layers",
            "An overlay looks up a name in each layer, and reads from the underlying disk, which is not visible "
            "inside the container. This costs little. Files written there use the space of the container's host "
            "and are lost with the container.",
            "Do nothing if the image contains the dataset on purpose. Mount a volume for a dataset that several "
            "containers use, and for caches.",
            "overlay, overlay, at /.",
        ),
        lambda _: (
            "Reading needs no change. Put caches and outputs on a volume: in the container they are lost with it."
        ),
    ),
}
_BIND = _page(
    "bind_mount",
    "the source is in a bind-mounted folder",
    "A bind mount, such as a container's volume, is a folder of another file system under a second name. The mount "
    "itself costs nothing: it has the speed and free space of that file system.",
    "Nothing.",
    "/srv/data of /dev/nvme0n1p1, ext4, at /data.",
)


def entries() -> list[Entry]:
    """Returns the documentation page of each storage type, for ``feedline explain``."""
    return [*(known.page for known in _PLACES.values()), _BIND]


def findings_of_source(source: str, root: Path = Path("/")) -> list[Finding]:
    """Returns a note for each mount that a source is stored on, except plain disks and URLs."""
    found: dict[str, Finding] = {}
    for part in source.split("::"):
        try:
            mount = mount_of_source(part, root) if _is_there(part) else None
        except (OSError, ValueError):  # the system does not accept the path
            continue
        if mount is not None:
            for finding in findings_of_mount(mount):
                found.setdefault(f"{finding.code} {mount.point}", finding)
    return list(found.values())


def findings_of_mount(mount: Mount) -> list[Finding]:
    """Returns the findings about a mount."""
    about = {"mount_point": mount.point}
    where = f"{mount.device}, {mount.kind}, at {mount.point}"
    findings = []
    known = _PLACES.get(mount.family or "")
    if known is not None:
        client = f" by {mount.client}" if mount.family == "objects" and mount.kind == "fuse" else ""
        more = known.more(mount)
        evidence = f"{where}{client}{': ' + more if more else ''}"
        findings.append(Finding(known.page.code, "note", evidence=(evidence,), fix=known.fix(mount), about=about))
    if mount.bound is not None:
        findings.append(Finding(_BIND.code, "note", evidence=(f"{mount.bound} of {where}",), about=about))
    return findings


def _is_there(part: str) -> bool:
    """Whether `part` is an existing path, or a pattern in an existing folder."""
    path = local_path(part)
    fixed = re.split(r"[{*?\[]", path, maxsplit=1)[0]
    return os.path.exists(path) or (fixed != path and os.path.isdir(os.path.dirname(fixed) or "."))


def explained(text: str, source: str, root: Path = Path("/")) -> str:
    """Adds a line for each slow storage type to the text of ``explain()``, unless a cache is used."""
    if "cache '" in text:
        return text
    quick = (_BIND.code, _PLACES["overlay"].page.code)
    found = [finding for finding in findings_of_source(source, root) if finding.code not in quick]
    lines = [f"storage    {finding.text}. {finding.fix} (feedline explain {finding.code})\n" for finding in found]
    return text + "".join(lines)
