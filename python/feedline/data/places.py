# SPDX-License-Identifier: Apache-2.0
"""What a source lies on, where that is not just a disk: findings, their pages, and what helps there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..findings import Entry, Finding
from ..machine.mounts import Mount
from ..machine.storage import local_path, mount_of_source

_CACHE = (
    'cache="/a/local/folder" in feedline.open keeps copies on a disk of this machine, and `feedline stage` makes them '
    "beforehand"
)


@dataclass(frozen=True)
class Place:
    """One kind of place: its page, and the evidence and the advice for one mount of it."""

    page: Entry
    fix: Callable[[Mount], str]
    more: Callable[[Mount], str] = lambda _: ""  # evidence


def _page(code: str, title: str, means: str, to_do: str, example: str) -> Entry:
    return Entry(
        code,
        "inspect",
        title,
        means,
        "The file system's name and options in /proc/self/mountinfo, of the mount that the source is seen "
        "through. Nothing is measured.",
        to_do,
        "The source is a URL, or no mount is known for its path.",
        example=example,
    )


def _nfs_options(mount: Mount) -> str:
    connections = mount.option("nconnect")
    size = mount.option("rsize")
    said = [f"nconnect={connections}" if connections else "one connection (no nconnect=)"]
    return ", ".join(said + ([f"rsize={size}"] if size else []))


def _nfs_fix(mount: Mount) -> str:
    wider = "" if mount.option("nconnect") else " Mounted with nconnect=8, several connections carry the reads."
    return f"{_CACHE}. More workers do not help for long: they wait for the same server.{wider}"


def _object_fix(mount: Mount) -> str:
    scheme = (
        "gs://" if mount.client == "gcsfuse" else "az://" if (mount.client or "").startswith("blobfuse") else "s3://"
    )
    return (
        f"Open the objects by their URL ({scheme}BUCKET/...): the plan's ranges are asked for together and ahead. "
        f"Or {_CACHE}."
    )


_PLACES = {
    "nfs": Place(
        _page(
            "nfs_mount",
            "the source lies on NFS",
            "Each file that is opened asks a server, which answers all of its clients in turn, and each read "
            "that is not in the page  "
            "cache waits for a round trip. Many small files are the worst case. More workers ask at the same "
            "time for what one  "
            "server and, without nconnect=, one connection gives.",
            'Keep copies on a local disk: cache=PATH in feedline.open, .cache("memory"), or `feedline stage`. '
            "Pack small files into  "
            "shards (feedline pack). Mount with nconnect= and the largest rsize=.",
            "server:/data, nfs4, at /mnt/data: one connection (no nconnect=), rsize=1048576.",
        ),
        _nfs_fix,
        _nfs_options,
    ),
    "parallel": Place(
        _page(
            "parallel_mount",
            "the source lies on a parallel file system",
            "Lustre, BeeGFS, GPFS, Ceph and their like read large files from many servers at once, and open "
            "files by few servers of  "
            "metadata, which the whole cluster shares: a million small files are slow, and slow everybody down.",
            "Pack small files into shards of some hundred megabytes (feedline pack), striped over several "
            "servers (lfs setstripe -c);  "
            'shuffle="shards" reads each of them in one go. Keep copies on a local disk: cache=PATH, or '
            "`feedline stage`.",
            "10.0.0.1@o2ib:/scratch, lustre, at /scratch.",
        ),
        lambda _: f"Read large shards (feedline pack) and not many small files; {_CACHE}.",
    ),
    "objects": Place(
        _page(
            "object_mount",
            "the source lies in an object store, mounted by FUSE",
            "s3fs, goofys, mountpoint-s3, rclone, gcsfuse and their like make files of objects: each file opened "
            "is a request or two  "
            "of some 10 to 100 ms, and each read passes through a process of the mount. Reads here and there in "
            "a file are  "
            "requests of their own, or bytes that nobody wanted.",
            "Open the objects by URL (s3://, gs://, az://, https://): Feedline asks for what the plan wants "
            "next, together and ahead.  "
            'Or read shards in order (shuffle="shards") with cache=PATH on a local disk, or `feedline stage`.',
            "bucket, fuse.gcsfuse, at /gcs.",
        ),
        _object_fix,
    ),
    "share": Place(
        _page(
            "shared_folder_mount",
            "the source lies in a folder of another machine",
            "SMB, sshfs, 9p and virtiofs pass each call to another machine or to the host of this one: files open in "
            "milliseconds, and a single connection carries all reads.",
            "Keep copies on a local disk: cache=PATH in feedline.open, or `feedline stage`. Pack small files "
            "into shards.",
            "//server/data, cifs, at /mnt/data.",
        ),
        lambda _: f"{_CACHE}. More workers wait for the same connection.",
    ),
    "overlay": Place(
        _page(
            "overlay_mount",
            "the source lies in a container's own layers",
            "An overlay looks for a name in each layer, and reads from the disk beneath, which cannot be seen "
            "from inside: that costs  "
            "little. What is written there takes the space of the container's host, and is gone with the container.",
            "Nothing, where the image holds the dataset on purpose. Mount a volume for a dataset that several "
            "containers use, and for caches.",
            "overlay, overlay, at /.",
        ),
        lambda _: "Nothing for reading. Have caches and what is written on a volume: they go with the container.",
    ),
}
_BIND = _page(
    "bind_mount",
    "the source lies in a folder that is mounted from elsewhere",
    "A bind mount, as a container's volume is one, is a folder of another file system under a second name. It "
    "costs nothing by itself:  "
    "how fast it is, and how much room it has, are that file system's.",
    "Nothing.",
    "/srv/data of /dev/nvme0n1p1, ext4, at /data.",
)


def entries() -> list[Entry]:
    """The pages of places, for ``feedline explain``."""
    return [*(place.page for place in _PLACES.values()), _BIND]


def findings_of_source(source: str, root: Path = Path("/")) -> list[Finding]:
    """What is to be known of where each part of a source lies, a note for each mount; none of a plain disk or a "
    "URL."""
    found: dict[str, Finding] = {}
    for part in source.split("::"):
        try:
            mount = mount_of_source(part, root) if _is_there(part) else None
        except (OSError, ValueError):  # no path that the system takes
            continue
        if mount is not None:
            for finding in findings_of_mount(mount):
                found.setdefault(f"{finding.code} {mount.point}", finding)
    return list(found.values())


def findings_of_mount(mount: Mount) -> list[Finding]:
    """The same of one mount."""
    about = {"mount_point": mount.point}
    where = f"{mount.device}, {mount.kind}, at {mount.point}"
    findings = []
    place = _PLACES.get(mount.family or "")
    if place is not None:
        client = f" by {mount.client}" if mount.family == "objects" and mount.kind == "fuse" else ""
        more = place.more(mount)
        evidence = f"{where}{client}{': ' + more if more else ''}"
        findings.append(Finding(place.page.code, "note", evidence=(evidence,), fix=place.fix(mount), about=about))
    if mount.bound is not None:
        findings.append(Finding(_BIND.code, "note", evidence=(f"{mount.bound} of {where}",), about=about))
    return findings


def _is_there(part: str) -> bool:
    """Whether it is a path, or a pattern in a folder that is there: "arrays" in a dataset's name is neither."""
    path = local_path(part)
    fixed = re.split(r"[{*?\[]", path, maxsplit=1)[0]
    return os.path.exists(path) or (fixed != path and os.path.isdir(os.path.dirname(fixed) or "."))


def explained(text: str, source: str, root: Path = Path("/")) -> str:
    """The text of ``explain()``, with a line for each place that is slow by its nature, unless copies are kept "
    "already."""
    if "cache '" in text:
        return text
    quick = (_BIND.code, _PLACES["overlay"].page.code)
    found = [finding for finding in findings_of_source(source, root) if finding.code not in quick]
    lines = [f"storage    {finding.text}. {finding.fix} (feedline explain {finding.code})\n" for finding in found]
    return text + "".join(lines)
