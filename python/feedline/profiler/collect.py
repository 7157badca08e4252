# SPDX-License-Identifier: Apache-2.0
"""Collects the files that a command's processes write to the session's folder: event files, loader settings, notes."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from feedline import _engine
from feedline.profiler.dataset_files import FilesWatch, names_in
from feedline.profiler.probe.events import Event, total_of
from feedline.profiler.probe.failures import STACK
from feedline.profiler.recordings import ProcessRecord

KEPT_PROCESSES = 256  # ended processes whose events are retained; only the totals of earlier ones remain
_FIRST_LOOK_S, _PERIOD_S = 0.25, 2.0
_MOST_NOTES = 50


class FileCollector:
    """Collects events of processes that have ended, so that their files do not accumulate over days."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ended: deque[ProcessRecord] = deque(maxlen=KEPT_PROCESSES)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feedline-collect", daemon=True)
        self.dropped = 0
        self.files = FilesWatch(folder)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        pause = _FIRST_LOOK_S  # files that are not read yet show the earlier state of the cache
        while not self._stop.wait(pause):
            pause = min(2 * pause, _PERIOD_S)
            names = names_in(self._folder)
            self.files.look(names)
            self._drop_empty_stacks(names)
            rings = self._rings(names)
            if len(rings) <= KEPT_PROCESSES // 4:
                continue
            for path in rings:
                if not _is_alive(int(path.name.split(".")[0])):
                    self._take(path)

    def _drop_empty_stacks(self, names: Iterable[str]) -> None:
        """Removes the stack files of processes that have ended normally."""
        for name in names:
            if name.endswith(STACK):
                with contextlib.suppress(OSError, ValueError):
                    path = self._folder / name
                    if not path.stat().st_size and not _is_alive(int(name.split(".")[0])):
                        path.unlink()

    def _rings(self, names: Iterable[str]) -> list[Path]:
        rings = [name for name in names if name.endswith(".ring")]
        return [self._folder / name for name in sorted(rings, key=lambda name: int(name.split(".")[1]))]

    def _take(self, path: Path) -> None:
        with contextlib.suppress(Exception):  # from a process killed while it created the file
            raw = _engine.read_events(str(path))
            names = _json_file(self._folder / f"{raw['pid']}.names")
            self.dropped += len(self._ended) == KEPT_PROCESSES
            self._ended.append(
                ProcessRecord(
                    raw["pid"],
                    raw["parent"],
                    raw["created_ns"],
                    [Event(*event) for event in raw["events"]],
                    {kind: total_of(total) for kind, total in raw["totals"].items()},
                    {int(kind): str(name) for kind, name in (names or {}).items()},
                )
            )
        path.unlink(missing_ok=True)

    def processes(self) -> list[ProcessRecord]:
        for path in self._rings(names_in(self._folder)):
            self._take(path)
        return list(self._ended)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _json_file(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def json_files(folder: Path, pattern: str) -> list[dict[str, Any]]:
    """Returns the objects in all readable files with this name."""
    found = (_json_file(path) for path in sorted(folder.glob(pattern)))
    return [value for value in found if value is not None]


def notes_in(folder: Path) -> list[str]:
    """Returns the probe's notes, one sentence each."""
    notes = []
    for path in sorted(folder.glob("*.note")):
        with contextlib.suppress(OSError):
            notes += [line for line in path.read_text().splitlines() if line]
    return notes[:_MOST_NOTES]


def count_of_pythons(folder: Path) -> int:
    """Returns the number of Python processes in which the probe started."""
    return len(list(folder.glob("*.note")))
