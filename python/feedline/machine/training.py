# SPDX-License-Identifier: Apache-2.0
"""Finds training processes on this machine from /proc: processes that use torch or compute on a GPU."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ConfigError
from .processes import Identity, identify

_LIBRARIES = (b"libtorch_cpu.so", b"libtorch_python.so", b"libcuda.so")
_STARTED = ("multiprocessing.spawn", "multiprocessing.forkserver", "multiprocessing.resource_tracker")
_MOST_MAP_BYTES = 4 << 20  # torch maps its libraries within the first 200 kB
_PYTHON = re.compile(r"python|pt_|torchrun|ray::", re.IGNORECASE)


@dataclass(frozen=True)
class Runs:
    """Training runs, the most likely first; `notes` are reasons why others may be missing."""

    found: tuple[Identity, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class _Scan:
    identities: dict[int, Identity] = field(default_factory=dict)
    training: set[int] = field(default_factory=set)
    refused: int = 0


def find_runs(gpu_pids: Collection[int] = (), root: Path = Path("/")) -> Runs:
    """Returns the topmost process of each run: those on a GPU first, then those with workers or ranks, then the newest.
    This process is not listed.

    Args:
        gpu_pids: processes that compute on a GPU, as the driver reports; see `machine.gpu.Reading`.
        root: replaces "/" in tests.
    """
    scan = _Scan()
    try:
        pids = [int(path.name) for path in (root / "proc").iterdir() if path.name.isdigit()]
    except OSError as error:
        return Runs(notes=(f"/proc cannot be read: {error.strerror}; training processes are not listed",))
    for pid in pids:
        if pid == os.getpid():
            continue
        _examine(scan, pid, pid in gpu_pids, root)
    tops = {_top(scan, pid) for pid in scan.training}
    on_gpu = {_top(scan, pid) for pid in scan.training if pid in gpu_pids}
    parents = {_top(scan, pid) for pid in scan.training if scan.identities[pid].parent in scan.training}
    ordered = sorted(tops, key=lambda pid: (pid not in on_gpu, pid not in parents, -scan.identities[pid].began_ticks))
    notes = []
    if scan.refused:
        notes.append(
            f"{scan.refused} Python processes of other users may not be examined: run as root to list their runs"
        )
    return Runs(tuple(scan.identities[pid] for pid in ordered), tuple(notes))


def loop_processes(tree: Iterable[int], root: Path = Path("/")) -> tuple[int, ...]:
    """Returns the processes of a run that have worker processes, and are not workers themselves.

    A forked worker has its parent's command line; a spawned one runs multiprocessing's own main function.
    """
    known = {pid: identity for pid in tree if (identity := _identity(pid, root)) is not None}
    lines = {pid: _command_line(pid, root) for pid in known}
    return tuple(sorted(set(_owners(known, lines))))


def _owners(known: Mapping[int, Identity], lines: Mapping[int, str]) -> Iterator[int]:
    for pid, identity in known.items():
        if _is_worker(pid, known, lines):
            parent = identity.parent
            while parent in known and _is_worker(parent, known, lines):
                parent = known[parent].parent
            if parent in known:
                yield parent


def _is_worker(pid: int, known: Mapping[int, Identity], lines: Mapping[int, str]) -> bool:
    line = lines[pid]
    if any(name in line for name in _STARTED):
        return "resource_tracker" not in line
    return bool(line) and lines.get(known[pid].parent) == line


def _examine(scan: _Scan, pid: int, on_gpu: bool, root: Path) -> None:
    identity = _identity(pid, root)
    if identity is None:
        return
    scan.identities[pid] = identity
    if on_gpu:
        scan.training.add(pid)
        return
    name = ""
    with contextlib.suppress(OSError):
        name = (root / f"proc/{pid}/comm").read_text(errors="replace")
    if not _PYTHON.search(name) and not _PYTHON.search(_command_line(pid, root).partition(" ")[0]):
        return
    try:
        with open(root / f"proc/{pid}/maps", "rb") as maps:
            text = maps.read(_MOST_MAP_BYTES)
    except PermissionError:
        scan.refused += 1
        return
    except OSError:  # the process has ended
        return
    if any(library in text for library in _LIBRARIES):
        scan.training.add(pid)


def _top(scan: _Scan, pid: int) -> int:
    """Returns the topmost ancestor that is a training process too, such as the launcher of ranks."""
    top = pid
    while scan.identities[top].parent in scan.training:
        top = scan.identities[top].parent
    return top


def _identity(pid: int, root: Path) -> Identity | None:
    try:
        return identify(pid, root)
    except ConfigError:
        return None


def _command_line(pid: int, root: Path) -> str:
    with contextlib.suppress(OSError):
        return (root / f"proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""
