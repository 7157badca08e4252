# SPDX-License-Identifier: Apache-2.0
"""Fails each writing call of each job once, with each error that it may have, and then runs the job again.

The failed run must end with an error that names a file below the root and the reason, or, if the job can
continue without the file, deliver the right samples. Its output must be refused or complete. The second run must write
the same bytes as a run without faults.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .children import Children, Ended, Fault
from .jobs import Job

_FULL, _FAILED, _READ_ONLY = errno.ENOSPC, errno.EIO, errno.EROFS
_WRITES = ("write", "pwrite", "pwrite64", "writev")
_BY_PATH = ("open", "open64", "openat", "openat64", "fopen", "mkdir", "mkdirat", "rename", "renameat", "renameat2",
            "link", "linkat", "symlink")  # fmt: skip
_REMOVES = ("unlink", "unlinkat", "rmdir")
_REASONS = {str(error): os.strerror(error) for error in (_FULL, _FAILED, _READ_ONLY, errno.ENOMEM)}
# Files that contain times, process numbers or the order of events.
_LEFT = re.compile(r"\.\d+(\.\d+)?\.unfinished$")
_VOLATILE = (".lock", ".feedline-index", ".uses", ".origin", ".entry", ".feedline-stage")


@dataclass
class Walk:
    """The counts of a campaign, and its defects."""

    faults: int = 0
    errors: int = 0  # runs that ended with an error
    absorbed: int = 0  # runs that delivered everything
    complaints: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Reference:
    """A run without faults."""

    delivered: str
    read: str
    before: str  # a reader's result before the run, or "" if it refuses
    files: dict[str, str]
    calls: list[tuple[str, str]]


def walk(job: Job, children: Children, source: Path, until: float, found: Walk, stride: int = 1) -> bool:
    """Walks through a job's calls. Returns whether all were walked before `until` (monotonic seconds)."""
    expected = reference(job, children, source, found)
    if expected is None:
        return True
    for fault in list(_faults(expected.calls))[::stride]:
        if time.monotonic() > until:
            return False
        begin(job, source, children)
        run = children.run(lambda: job.run(source, children.root), fault)
        found.faults += 1
        name, path = expected.calls[fault.at - 1]
        shown = f"{job.name}: {fault} ({name} {os.path.relpath(path, children.root)})"
        found.complaints += [f"{shown}: {one}" for one in judged(job, children, source, run, fault, expected, found)]
    return True


def reference(job: Job, children: Children, source: Path, found: Walk) -> Reference | None:
    """Runs the job twice without faults; the runs must be alike. None: it does not work."""
    made = []
    for _ in range(2):
        begin(job, source, children)
        before = children.run(lambda: job.read(source, children.root))
        begin(job, source, children)
        run = children.run(lambda: job.run(source, children.root), Fault(0, "0"))
        calls = children.calls()
        read = children.run(lambda: job.read(source, children.root))
        if run.status or read.status:
            found.complaints.append(f"{job.name}: without a fault: {run.output[-600:]}{read.output[-600:]}")
            return None
        files = files_of(children.root)
        made.append(Reference(run.result, read.result, before.result, files, calls))
    first, second = made
    if (first.delivered, first.read, first.files) != (second.delivered, second.read, second.files):
        found.complaints.append(f"{job.name}: two runs without a fault differ: {_differing(first.files, second.files)}")
    return first


def begin(job: Job, source: Path, children: Children) -> None:
    children.empty_root()
    job.prepare(source, children.root)


def judged(
    job: Job, children: Children, source: Path, run: Ended, fault: Fault | None, expected: Reference, found: Walk
) -> Iterator[str]:
    """Yields the defects of a run that had a fault, of its output, and of the next run."""
    root = children.root
    if run.hung:
        yield "hangs"
    elif run.status == 0:
        found.absorbed += 1
        if run.result != expected.delivered:
            yield "delivers other samples"
    else:
        found.errors += 1
        if fault is not None and fault.action != "kill":
            path = os.path.relpath(expected.calls[fault.at - 1][1], root)
            yield from _bad_error(job.continues and path not in job.required, run, fault, str(root))
    left = children.run(lambda: job.read(source, root))
    if left.hung or left.status not in (0, 2, 3):
        yield f"its output: a reader ends with {left.status}: {left.output[-400:]}"
    elif left.status == 0 and left.result not in (expected.read, expected.before):
        yield "its output is read as whole, with other samples"
    elif run.status == 0 and left.result != expected.read:
        yield f"it reports success, but a reader has {left.result}{left.output[-400:]}"
    again = children.run(lambda: job.run(source, root))
    if again.status or again.result != expected.delivered:
        yield f"the run after it ends with {again.status}: {again.output[-400:]}"
        return
    read = children.run(lambda: job.read(source, root))
    if read.status or read.result != expected.read:
        yield f"after another run, a reader ends with {read.status}: {read.output[-400:]}"
    if job.same_files and (differing := _differing(files_of(root), expected.files)):
        yield f"after another run, files differ: {differing}"


def _differing(files: dict[str, str], expected: dict[str, str]) -> list[str]:
    return sorted(name for name in files.keys() | expected.keys() if files.get(name) != expected.get(name))


def files_of(root: Path) -> dict[str, str]:
    """Returns the SHA-256 of each file, without the temporary folder, and without the files of a killed process whose
    names contain its number, which no reader opens.
    """
    found = {}
    for path in sorted(root.rglob("*")):
        name = "/" + str(path.relative_to(root))
        if path.is_file() and not name.startswith("/tmp/") and not name.endswith(_VOLATILE) and not _LEFT.search(name):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _faults(calls: list[tuple[str, str]]) -> Iterator[Fault]:
    """Yields the faults that each call may have."""
    for number, (name, _) in enumerate(calls, 1):
        yield Fault(number, "kill")
        if name in _REMOVES or name == "utimensat":
            yield Fault(number, str(_FAILED))
        elif name in ("mmap", "mmap64"):
            yield Fault(number, str(errno.ENOMEM))
        elif name in ("fsync", "fdatasync"):
            yield Fault(number, str(_FAILED))
            yield Fault(number, str(_FULL), lasts=True)
        else:
            yield Fault(number, str(_FULL))
            yield Fault(number, str(_FULL), lasts=True)
            yield Fault(number, str(_FAILED))
        if name in _BY_PATH:
            yield Fault(number, str(_READ_ONLY), lasts=True)
        if name in _WRITES:
            yield Fault(number, "short")


def _bad_error(continues: bool, run: Ended, fault: Fault, root: str) -> Iterator[str]:
    text = run.output
    if run.status < 0:
        yield f"ends by signal {-run.status}: {text[-400:]}"
    elif "Traceback" in text:
        yield f"has a traceback: {text[-900:]}"
    elif fault.action == "short":
        yield f"a short write is an error: {text[-400:]}"
    elif continues:
        yield f"does not continue: {text[-400:]}"
    else:
        if _REASONS[fault.action] not in text:
            yield f"the reason is missing: {text[-400:]}"
        if root not in text.replace("\n", ""):
            yield f"no file is named: {text[-400:]}"
        if run.status != 3:
            yield f"ends with status {run.status}: {text[-400:]}"
