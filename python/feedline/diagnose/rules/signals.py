# SPDX-License-Identifier: Apache-2.0
"""The signals needed to judge causes, and the easiest way to obtain each.

A signal is missing if `Summary.missing` contains its name, with the reason.
"""

from typing import NamedTuple


class Signal(NamedTuple):
    name: str
    test: str  # the cheapest way to obtain it


# Missing if the workers were not observed at all. Rules that need it are then not evaluated.
WORKERS = Signal("workers", "see the notes; the experiments measure the loader without the loop")
STAGES = Signal("stages", "measure the time of the dataset's own code, or run the loop longer")
SAMPLES = Signal("samples", "feedline.profile() shows every sample on a timeline")
PROCESSES = Signal("processes", "run longer, for at least a few seconds")
HOST = Signal("host", "run longer, for at least a few seconds")
IO = Signal("io", "run as the user that owns the processes")
DISK = Signal("disk", "run without --quick")
THROTTLED = Signal("throttled", "check cpu.stat of the container's cgroup on its host")
PRESSURE = Signal("pressure", "watch swapping and major faults with vmstat 1")
SYNCHRONISING = Signal("synchronising", "run feedline trace on a torch.profiler trace, which shows these calls")
