# SPDX-License-Identifier: Apache-2.0
"""The data that a run will read: its location and size, from a directory walk with a time limit."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import StorageError
from ..machine.mounts import Mount
from ..machine.storage import device_model, local_path, mount_of_source, storage_facts
from ..machine.system_files import Space, SystemFiles

_WALK_S = 1.0


@dataclass(frozen=True)
class Source:
    """Facts about a source; None means unknown. `kind`: of :func:`feedline.machine.storage.storage_facts`."""

    name: str
    kind: str | None
    mount: Mount | None
    model: str | None  # the disk's model name
    space: Space | None
    files: int | None  # counted within the time limit
    total_bytes: int | None
    whole: bool  # whether everything was counted
    scheme: str | None = None

    @property
    def file_bytes(self) -> float | None:
        """Average size of a file in bytes."""
        return self.total_bytes / self.files if self.files and self.total_bytes is not None else None


def look_at(name: str, root: SystemFiles, walk_s: float = _WALK_S) -> tuple[Source, list[str]]:
    """Returns the source, and sentences about what could not be examined.

    Raises:
        StorageError: the path does not exist.
    """
    facts, notes = storage_facts(name, root.path)
    kind = str(facts["kind"]) if facts else None
    if kind == "remote":
        scheme = str(facts["scheme"]) if facts else None
        return Source(name, kind, None, None, None, None, None, False, scheme), [f"the size of {name}"]
    path = Path(local_path(name).split("::")[0])
    pattern = any(mark in path.name for mark in "{*?[")
    folder = path.parent if pattern else path
    if not folder.exists():
        raise StorageError(f"doctor: {folder} does not exist")
    mount = mount_of_source(name, root.path)
    files, total, whole = _measured(folder, walk_s)
    if not whole:
        notes.append(f"the rest of {folder}: {files:,} files were counted within {walk_s:g} s, but there are more")
    model = device_model(mount.number, root.path) if mount else None
    return Source(name, kind, mount, model, root.space(folder), files, total, whole), notes


def _measured(folder: Path, walk_s: float) -> tuple[int, int, bool]:
    """Returns (files, bytes, whether all were counted); skips unreadable files."""
    until = time.monotonic() + walk_s
    files = total = 0
    for size in _sizes(folder):
        files, total = files + 1, total + size
        if files % 256 == 0 and time.monotonic() > until:
            return files, total, False
    return files, total, True


def _sizes(folder: Path) -> Iterator[int]:
    if folder.is_file():
        yield folder.stat().st_size
        return
    waiting = [str(folder)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file():
                    yield entry.stat().st_size
            except OSError:
                continue
