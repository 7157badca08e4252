# SPDX-License-Identifier: Apache-2.0
"""What was seen of a command, before anything is made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from feedline.watching.dataset_files import DatasetFiles
from feedline.watching.experiments import Experiments
from feedline.watching.probe.events import Event, Total


@dataclass
class ProcessRecord:
    """One process of the command that had a loop or was a worker."""

    pid: int
    parent: int
    created_ns: int
    events: list[Event]
    totals: dict[int, Total]
    names: dict[int, str] = field(default_factory=dict)


@dataclass
class Recording:
    """Everything that was seen of a run."""

    command: list[str]
    returncode: int  # as subprocess has it: negative for a signal
    begin_ns: int
    end_ns: int
    processes: list[ProcessRecord]
    loaders: list[dict[str, Any]]
    host: dict[str, Any]
    notes: list[str]
    pythons: int  # Python processes in which the probe's first lines ran
    dropped: int = 0  # processes whose events were dropped, as there were too many
    experiments: Experiments | None = None
    devices: list[dict[str, Any]] = field(default_factory=list)  # that processes used, as they told last
    files: DatasetFiles | None = None
    applied: list[dict[str, Any]] = field(default_factory=list)  # what became of other settings, by loader
    waits: list[dict[str, Any]] = field(default_factory=list)  # what makers of batches waited for, by process
    watcher_cpu_ns: int = 0  # of this process while the command ran: sampling, and looking after event files
