# SPDX-License-Identifier: Apache-2.0
"""What has to be seen for a cause to be judged, and the cheapest way to see it.

A signal is missing where `Summary.missing` has its name, with the reason.
"""

from typing import NamedTuple


class Signal(NamedTuple):
    name: str
    test: str  # the cheapest way to get it


# Of what makes the batches nothing was seen at all. Rules that need it are not asked then.
WORKERS = Signal("workers", "the notes may say why, and the ladder measures the loader alone")
STAGES = Signal("stages", "time the dataset's own code, or run the loop longer")
SAMPLES = Signal("samples", "feedline.profile() puts every sample on a time line")
PROCESSES = Signal("processes", "run longer, for a few seconds at least")
HOST = Signal("host", "run longer, for a few seconds at least")
IO = Signal("io", "run as the user that owns the processes")
DISK = Signal("disk", "run without --quick")
THROTTLED = Signal("throttled", "look at cpu.stat of the container's cgroup on its host")
PRESSURE = Signal("pressure", "watch swap and major faults with vmstat 1")
SYNCHRONISING = Signal("synchronising", "feedline trace on a torch.profiler trace shows them")
