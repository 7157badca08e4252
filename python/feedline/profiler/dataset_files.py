# SPDX-License-Identifier: Apache-2.0
"""Samples the dataset's files: their size, their disk, and how much of them is in the page cache.

Reading a file puts it in the page cache. Therefore the earlier state of the cache is estimated from other files in the
same folder and of the same type that no worker is known to have opened.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from feedline import _engine
from feedline.machine.mounts import mount_of
from feedline.profiler.probe.opened_files import SUFFIX

_MOST_FILES = 256  # maximum number of files examined, and of neighbours
_MOST_FOLDERS = 16
_NEIGHBOURS = 16  # per folder
_LISTED = 2000  # maximum number of entries of a folder
_CODE = (".py", ".pyc", ".so")


@dataclass(frozen=True)
class DatasetFiles:
    """Facts about the dataset's files. Shares are fractions of their bytes; None means unknown."""

    seen: int  # files opened while samples were read, or kept open
    looked_at: int  # number of these files and their neighbours
    median_bytes: int
    devices: tuple[str, ...]  # whole disks; empty for a network or memory
    rotational: bool | None
    cached_before: float | None  # of neighbours, at their first examination
    cached_after: float | None  # of all files, after the script ended
    place: str | None = None  # storage family of most opened files, as in `machine.mounts.Mount.family`

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def place_of(paths: Iterable[str], root: Path = Path("/")) -> str | None:
    """Returns the most common file system family of these files, determined from one file in each folder."""
    folders = {os.path.dirname(path): path for path in paths}
    mounts = [
        mount_of(Path(os.path.realpath(path)), root) for path in itertools.islice(folders.values(), _MOST_FOLDERS)
    ]
    families = [mount.family if mount is not None else None for mount in mounts]
    return statistics.mode(families) if families else None


class FilesWatch:
    """Examines files while the script that reads them runs: at most a few thousand, however many the script reads."""

    def __init__(self, session: Path, seed: int = 0) -> None:
        self._session = session
        self._random = random.Random(seed)
        self._offsets: dict[str, int] = {}
        self._opened: set[str] = set()
        self._neighbours: dict[str, Mapping[str, Any]] = {}
        self._folders: set[tuple[str, str]] = set()

    def look(self, names: Iterable[str]) -> None:
        """Examines the files opened since the last call. `names`: names of the files in the session's folder. Never
        raises.
        """
        with contextlib.suppress(Exception):
            fresh = self._heard(names) - self._opened
            fresh = set(itertools.islice(sorted(fresh), max(_MOST_FILES - len(self._opened), 0)))
            self._opened |= fresh
            self._meet_neighbours(fresh)

    def finish(self, open_files: Iterable[str]) -> list[dict[str, Any]]:
        """Returns the current facts of all files, as `look_at_files` reports them; opened files first."""
        self.look(names_in(self._session))
        more = {path for path in open_files if not path.endswith(_CODE)}
        self._opened |= set(itertools.islice(sorted(more), max(_MOST_FILES - len(self._opened), 0)))
        neighbours = [path for path in self._neighbours if path not in self._opened]
        try:
            return _engine.look_at_files([*sorted(self._opened), *neighbours])
        except Exception:
            return []

    def summary(self, facts: Iterable[Mapping[str, Any]]) -> DatasetFiles | None:
        """Summarises the result of `finish`; None if no files were seen."""
        all_of_them = list(facts)
        if not all_of_them:
            return None
        unread = [f for path, f in self._neighbours.items() if path not in self._opened]
        rotational = {f["rotational"] for f in all_of_them if f["rotational"] is not None}
        return DatasetFiles(
            seen=sum(f["path"] in self._opened for f in all_of_them),
            looked_at=len(all_of_them),
            median_bytes=int(statistics.median(f["bytes"] for f in all_of_them)),
            devices=tuple(sorted({f["device"] for f in all_of_them if f["device"]})),
            rotational=any(rotational) if rotational else None,
            cached_before=cached_share(unread),
            cached_after=cached_share(all_of_them),
            place=place_of(f["path"] for f in all_of_them if f["path"] in self._opened),
        )

    def _heard(self, names: Iterable[str]) -> set[str]:
        paths = set()
        for file in (name for name in names if name.endswith(SUFFIX)):
            with open(self._session / file, "rb") as stream:
                stream.seek(self._offsets.get(file, 0))
                text = stream.read()
            whole = text[: text.rfind(b"\n") + 1]  # another process may be writing the last line
            self._offsets[file] = self._offsets.get(file, 0) + len(whole)
            for line in whole.splitlines():
                with contextlib.suppress(ValueError, UnicodeError):
                    path = json.loads(line)
                    path.encode()  # the engine accepts only UTF-8 names
                    paths.add(path)
        return paths

    def _meet_neighbours(self, fresh: Iterable[str]) -> None:
        there = [path for path in fresh if os.path.isfile(path)]
        kinds = sorted({(os.path.dirname(path), os.path.splitext(path)[1]) for path in there} - self._folders)
        met = []
        for folder, ending in kinds[: max(_MOST_FOLDERS - len(self._folders), 0)]:
            self._folders.add((folder, ending))
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                names = [e.path for e in itertools.islice(entries, _LISTED) if os.path.splitext(e.name)[1] == ending]
                unread = [name for name in names if name not in self._opened]
                met += self._random.sample(unread, min(_NEIGHBOURS, len(unread)))
        for facts in _engine.look_at_files(met) if met else []:
            self._neighbours.setdefault(facts["path"], facts)


def names_in(folder: Path) -> list[str]:
    """Returns the names in a folder; an empty list if the folder no longer exists, since a script may have removed
    it.
    """
    try:
        return os.listdir(folder)
    except OSError:
        return []


def cached_share(facts: Iterable[Mapping[str, Any]]) -> float | None:
    known = [f for f in facts if f["cached_bytes"] is not None]
    whole = sum(f["bytes"] for f in known)
    return sum(f["cached_bytes"] for f in known) / whole if whole else None
