# SPDX-License-Identifier: Apache-2.0
"""Profiles code in the current process, such as a notebook cell: installs the probe before it and removes the probe
afterwards.

Only one profile can run at a time. Iterators and forked workers that were created earlier cannot be profiled.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from feedline.profiler import process_copies
from feedline.profiler.collect import FileCollector
from feedline.profiler.command import environment_of, sampler_of
from feedline.profiler.probe import hooks
from feedline.profiler.probe.inject import feedline_hooked_modules
from feedline.profiler.probe.inject.feedline_import_watcher import ImportWatcher
from feedline.profiler.recordings import Recording
from feedline.profiler.session import Trying, gathered
from feedline.profiler.variables import EXTENSION, SESSION


class AlreadyWatched(RuntimeError):
    """This process is already being profiled."""


def run(work: Callable[[], str | None], name: str, trying: Trying | None = None) -> Recording:
    """Profiles `work`, then runs the experiments of `trying`. `name`: name of the work in the record.

    `work` returns the reason for ending early, or None. Exceptions of `work` propagate after cleanup. Raises
    AlreadyWatched inside another profile, and in a process that ``feedline diagnose`` profiles.
    """
    if SESSION in os.environ:
        raise AlreadyWatched("this process is already being profiled; end that profile first")
    folder = Path(tempfile.mkdtemp(prefix="feedline-diagnose-"))
    try:
        (folder / process_copies.WATCHER).write_text(str(os.getpid()))
        collector, sampler = FileCollector(folder), sampler_of(os.getpid(), folder)
        collector.start()
        begin = time.perf_counter_ns()
        with _probe(folder, "" if trying is None else trying.extension):
            try:
                ended_by = work()
            finally:
                end = time.perf_counter_ns()
        collector.stop()
        recording, files = gathered(folder, collector, sampler, [name], (begin, end))
        recording.pythons = max(recording.pythons, 1)
        if ended_by is not None:
            recording.notes.insert(0, f"the profile was ended by {ended_by}; the results until then are used")
        if trying is not None and ended_by == KeyboardInterrupt.__name__:
            recording.notes.insert(0, "no experiments were run, because the profile was interrupted")
        elif trying is not None and recording.processes:
            try:
                recording.experiments = trying.make(folder, recording, files)
            except KeyboardInterrupt:  # the user does not want to wait longer; the profile remains usable
                recording.notes.insert(0, "the experiments were interrupted")
        return recording
    finally:
        with process_copies.undisturbed():
            process_copies.end_the_copy(folder)
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _probe(folder: Path, extension: str) -> Iterator[None]:
    with _environment(environment_of(folder, extension)):
        recorder = hooks.start_here(str(folder))
        watcher = ImportWatcher(feedline_hooked_modules, lambda: hooks, recorder.note)
        watcher.hooks = hooks
        sys.meta_path.insert(0, watcher)
        try:
            yield
        finally:
            sys.meta_path.remove(watcher)
            hooks.end_here()


@contextlib.contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Sets the environment of processes started during the profile, including spawned workers."""
    names = ("PYTHONPATH", SESSION, EXTENSION)
    before = {name: os.environ.get(name) for name in names}
    try:
        for name in names:
            _set(name, wanted.get(name))
        yield
    finally:
        for name, value in before.items():
            _set(name, value)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
