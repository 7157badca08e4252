# SPDX-License-Identifier: Apache-2.0
"""Runs a command with the probe in its PYTHONPATH, samples its process tree, and collects the records of its
processes.

The command keeps its standard streams, arguments, working directory and exit status; in the command's environment, only
PYTHONPATH and the variables in variables.py change.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedline._engine import HostSampler
from feedline.profiler import apply, process_copies
from feedline.profiler.collect import FileCollector, count_of_pythons, json_files, notes_in
from feedline.profiler.command import environment_of, sampler_of, signals_of_child, start
from feedline.profiler.crashes import CrashWatch
from feedline.profiler.experiments import Experiments
from feedline.profiler.probe.wait_sampler import SUFFIX
from feedline.profiler.recordings import Recording


@dataclass(frozen=True)
class Change:
    """Settings to apply to a script's loader while the script runs."""

    settings: Mapping[str, Any]
    loader: Mapping[str, Any]  # facts that identify the loader


@dataclass(frozen=True)
class Trying:
    """Additions to profiling by a subcommand.

    Attributes:
        extension: the module that the command's processes load; see probe/hooks.py.
        make: called after the command has ended, with the session's folder, the recording, and the facts about the
            dataset's files from `_engine.look_at_files`.
        variables: additional environment variables of the command, for the extension.
        again: whether this is a repeated run: its output goes to standard error, and it receives no input.
    """

    extension: str
    make: Callable[[Path, Recording, Sequence[Mapping[str, Any]]], Experiments]
    variables: Mapping[str, str] = field(default_factory=dict)
    again: bool = False


def run(
    command: Sequence[str], change: Change | None = None, trying: Trying | None = None, root: Path = Path("/")
) -> Recording:
    """Runs `command` to its end, and then the experiments of `trying`.

    If the command was interrupted or crashed, experiments are skipped, so that the user does not have to wait. With
    `change`, this is a repeated run, whose output goes to standard error. `root`: replaces "/" in tests, for the
    kernel's counters and log. Raises CommandError if the command cannot be started.
    """
    folder = Path(tempfile.mkdtemp(prefix="feedline-diagnose-"))
    collector, crashes = FileCollector(folder), CrashWatch(root)
    try:
        (folder / process_copies.WATCHER).write_text(str(os.getpid()))
        begin = time.perf_counter_ns()
        with signals_of_child() as forward:
            child = _start(command, folder, change, trying)
            forward.children.append(child)
            own_ns = time.process_time_ns()
            sampler = sampler_of(child.pid, folder)
            collector.start()
            returncode = child.wait()
            end, own_ns = time.perf_counter_ns(), time.process_time_ns() - own_ns
        collector.stop()
        recording, files = gathered(folder, collector, sampler, command, (begin, end))
        recording.returncode, recording.watcher_cpu_ns = returncode, own_ns
        recording.crash = crashes.collect(folder, returncode, child.pid)
        recording.applied = apply.outcome(folder) if change is not None else []
        if trying is not None and forward.interrupted:
            recording.notes.insert(0, "no experiments were run, because the profile was interrupted")
        elif trying is not None and recording.processes and not recording.crashed:
            recording.experiments = trying.make(folder, recording, files)
        return recording
    finally:
        crashes.close()
        with process_copies.undisturbed():
            process_copies.end_the_copy(folder)
            shutil.rmtree(folder, ignore_errors=True)


def gathered(
    folder: Path,
    collector: FileCollector,
    sampler: HostSampler | None,
    command: Sequence[str],
    span_ns: tuple[int, int],
) -> tuple[Recording, list[dict[str, Any]]]:
    """Returns the recording in `folder` between the two times, and the facts about files.

    Stops `collector` and the sampler.
    """
    host: dict[str, Any] = {}
    if sampler is not None:
        sampler.stop()
        host = sampler.record()
    files = collector.files.finish(host.get("files", []))
    recording = Recording(
        list(command),
        0,
        *span_ns,
        collector.processes(),
        json_files(folder, "*.loader"),
        host,
        notes_in(folder) + list(host.get("unseen", [])) + list(host.get("gpu_notes", [])),
        count_of_pythons(folder),
        collector.dropped,
        None,
        json_files(folder, "*.device"),
        collector.files.summary(files),
        waits=json_files(folder, f"*{SUFFIX}"),
    )
    return recording, files


def so_far(folder: Path, command: Sequence[str], begin_ns: int, host: dict[str, Any]) -> Recording:
    """Collects and removes the records of a command's processes in `folder`; the command may still be running.

    `host`: the sampler's record.
    """
    end_ns, processes = time.perf_counter_ns(), FileCollector(folder).processes()
    loaders, notes, pythons = json_files(folder, "*.loader"), notes_in(folder), count_of_pythons(folder)
    return Recording(list(command), 0, begin_ns, end_ns, processes, loaders, host, notes, pythons)


def _start(
    command: Sequence[str], folder: Path, change: Change | None, trying: Trying | None
) -> subprocess.Popen[bytes]:
    environment = environment_of(folder, "" if trying is None else trying.extension)
    environment |= {} if trying is None else trying.variables
    if change is None and (trying is None or not trying.again):
        return start(command, environment)
    if change is not None:
        environment |= apply.request(folder, change.settings, change.loader)
    return start(command, environment, stdin=subprocess.DEVNULL, stdout=2)
