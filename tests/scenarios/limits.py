# SPDX-License-Identifier: Apache-2.0
"""Real limits like a container's, for a whole diagnosis: control groups, and a separate /dev/shm.

They require root, and control groups that may be created; without these, a scenario is skipped with the reason.
Versions 1 and 2 of control groups are supported.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x00020000, 0x4000, 0x40000
_PERIOD_US = 100_000
_LEAST_STOPPED = 0.2  # share of the periods in which a quota that limits the loop is used up


class NotPermitted(Exception):
    """These limits cannot be set here; the text states the reason."""


@dataclass(frozen=True)
class Limits:
    """None: no limit. Rates are those of the disk with temporary files."""

    cpus: float | None = None
    memory_bytes: int | None = None
    read_bytes_per_s: int | None = None
    reads_per_s: int | None = None
    shared_memory_bytes: int | None = None

    def controllers(self) -> dict[str, dict[str, str]]:
        """Returns by controller: files of version 2 (then of version 1, after a colon) and the values to write."""
        wanted: dict[str, dict[str, str]] = {}
        if self.cpus is not None:
            quota = int(self.cpus * _PERIOD_US)
            wanted["cpu"] = {"cpu.max": f"{quota} {_PERIOD_US}", ":cpu.cfs_quota_us": str(quota)}
        if self.memory_bytes is not None:
            limit = str(self.memory_bytes)
            wanted["memory"] = {"memory.max": limit, ":memory.limit_in_bytes": limit}
        if self.read_bytes_per_s is not None:
            rate = self.read_bytes_per_s
            one = f"{_disk()} {rate}"
            wanted["io"] = {"io.max": f"{_disk()} rbps={rate}", ":blkio.throttle.read_bps_device": one}
        if self.reads_per_s is not None:
            rate = self.reads_per_s
            one = f"{_disk()} {rate}"
            wanted["io"] = {"io.max": f"{_disk()} riops={rate}", ":blkio.throttle.read_iops_device": one}
        return wanted

    @contextlib.contextmanager
    def groups(self) -> Iterator[list[Path]]:
        """Yields the folders of the groups to join, which exist until the end."""
        made: list[Path] = []
        try:
            for controller, values in self.controllers().items():
                made.append(_group(controller, values))
            yield made
        finally:
            for folder in made:
                _remove(folder)

    def unused(self, groups: list[Path]) -> str:
        """Returns why the CPU quota had no effect, by the group's own counters, which do not depend on how fast other
        programs let its processes run; "" if it had one, or without a quota.
        """
        if self.cpus is None:
            return ""
        counters = next((read for folder in groups if (read := _numbers(folder / "cpu.stat"))), {})
        periods, stopped = counters.get("nr_periods", 0), counters.get("nr_throttled", 0)
        if stopped >= _LEAST_STOPPED * periods:
            return ""
        return f"the quota of {self.cpus:g} CPUs stopped the run in only {stopped} of {periods} periods"

    def enter(self, groups: list[Path]) -> None:
        """Called in the process that is to be limited, before it runs anything."""
        for folder in groups:
            (folder / "cgroup.procs").write_text(str(os.getpid()))
        if self.shared_memory_bytes is not None:
            _own_shared_memory(self.shared_memory_bytes)


def refusal(limits: Limits) -> str | None:
    """Returns why these limits cannot be set here."""
    try:
        with limits.groups() as groups:
            child = os.fork()
            if child == 0:
                try:
                    limits.enter(groups)
                except BaseException:
                    os._exit(1)
                os._exit(0)
            if os.waitpid(child, 0)[1] != 0:
                return "this user may not make mounts or join control groups of its own"
    except NotPermitted as error:
        return str(error)
    return None


def _disk() -> str:
    """Returns the number of the whole disk, because limits apply to whole disks only."""
    device = os.stat(tempfile.gettempdir()).st_dev
    folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    if not folder.exists():
        raise NotPermitted("temporary files are on no local disk")
    return ((folder.parent if (folder / "partition").exists() else folder) / "dev").read_text().strip()


def _group(controller: str, values: dict[str, str]) -> Path:
    first = _GROUPS / ("blkio" if controller == "io" else controller)
    version_1 = first.is_dir()
    folder = (first if version_1 else _GROUPS) / f"feedline-scenario-{os.getpid()}-{controller}"
    try:
        if not version_1:
            (_GROUPS / "cgroup.subtree_control").write_text(f"+{controller}")
        folder.mkdir()
    except OSError as error:
        raise NotPermitted(f"no control group can be made here: {error.strerror}") from error
    try:
        for name, value in values.items():
            if name.startswith(":") == version_1:
                (folder / name.lstrip(":")).write_text(value)
    except OSError as error:
        _remove(folder)
        raise NotPermitted(f"the {controller} controller takes no limits here: {error.strerror}") from error
    return folder


def _numbers(path: Path) -> dict[str, int]:
    """Returns the counters in a group's file; empty if the file does not exist."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdecimal()}


def _remove(folder: Path) -> None:
    for _ in range(50):  # until the last of its processes is gone
        try:
            folder.rmdir()
            return
        except OSError:
            time.sleep(0.1)


def _own_shared_memory(size: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    if libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, f"size={size}".encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount")
