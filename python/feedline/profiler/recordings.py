# SPDX-License-Identifier: Apache-2.0
"""Data recorded from a command, before analysis."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from feedline.profiler.crashes import Crash
from feedline.profiler.dataset_files import DatasetFiles
from feedline.profiler.experiments import Experiments
from feedline.profiler.probe.events import Event, Total


@dataclass
class ProcessRecord:
    """A process of the command that ran a loop or was a worker."""

    pid: int
    parent: int
    created_ns: int
    events: list[Event]
    totals: dict[int, Total]
    names: dict[int, str] = field(default_factory=dict)


@dataclass
class Recording:
    """All recorded data of a run."""

    command: list[str]
    returncode: int  # as in subprocess: negative for a signal
    begin_ns: int
    end_ns: int
    processes: list[ProcessRecord]
    loaders: list[dict[str, Any]]
    host: dict[str, Any]
    notes: list[str]
    pythons: int  # Python processes that ran the probe's first lines
    dropped: int = 0  # processes whose events were dropped, as there were too many
    experiments: Experiments | None = None
    devices: list[dict[str, Any]] = field(default_factory=list)  # devices that processes used, by their last report
    files: DatasetFiles | None = None
    applied: list[dict[str, Any]] = field(default_factory=list)  # results of changed settings, by loader
    waits: list[dict[str, Any]] = field(default_factory=list)  # waits while making batches, by process
    watcher_cpu_ns: int = 0  # CPU of this process while the command ran: sampling, and collecting event files
    crash: Crash = field(default_factory=Crash)  # evidence about the end of the run

    @property
    def crashed(self) -> bool:
        """Whether the run died, rather than ended by itself, by its own exit status or by a user's signal."""
        return self.crash.ended(self.returncode)
