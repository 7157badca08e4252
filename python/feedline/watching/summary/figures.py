# SPDX-License-Identifier: Apache-2.0
"""What a run measured, in the few figures that verdicts rest on.

Shares are of ``loop_s``: the time inside training loops over the loader that took most of the time, from ``iter()`` to
the end of each epoch, without what the script does between epochs. None: the signal is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from feedline.watching.intervals import finite

DROP_IN = "feedline.DataLoader"  # in the place of torch's: one of what was tried
# Where the time of one batch goes while it is made. "storage" is waiting without CPU, "python" the dataset's own code.
STAGES = ("storage", "decode", "transform", "python", "collate")


@dataclass(frozen=True)
class Waits:
    """Shares of the loop's time that were spent waiting, by what was waited for; they and ``step`` sum to 1."""

    production: float = 0.0  # the batch was still being made, at the usual pace
    straggler: float = 0.0  # it was being made, and one sample of it took far longer than others
    handover: float = 0.0  # it was made, and on its way from the worker
    startup: float = 0.0  # workers were starting, or being stopped
    border: float = 0.0  # a further epoch began: order, first batches
    step: float = 1.0  # no wait: the loop's own work
    # of `handover`: packing in the worker and unpacking in next(), stretched as a lack of CPUs stretches all work; the
    # rest waited for a wake-up, or for a CPU before anything began. None: not seen
    packed: float | None = None
    packed_cpu: float | None = None  # of `packed`: on a machine that has a CPU whenever one is wanted

    @property
    def loader(self) -> float:
        return self.production + self.straggler + self.handover + self.startup + self.border


@dataclass(frozen=True)
class Place:
    """Where waiting happens: which kind, at which line of Python."""

    kind: str
    line: str
    share: float  # of the looks that found a wait


@dataclass(frozen=True)
class WaitedFor:
    """What the makers of batches were found to wait for, when they ran no code."""

    looks: int = 0  # that found a wait
    kinds: Mapping[str, float] = field(default_factory=dict)  # shares of them, by probe/system_calls.py's kinds
    places: tuple[Place, ...] = ()  # outside of files, the most frequent first

    @property
    def in_files(self) -> float:
        """Share of the waiting that was spent in a file's calls, or in faults of its mapped pages."""
        return self.kinds.get("file", 0.0)

    @property
    def outside(self) -> str:
        """The kind that most of the waiting outside of files is for; "": there is none."""
        others = {kind: share for kind, share in self.kinds.items() if kind != "file"}
        return max(others, key=lambda kind: others[kind], default="")


@dataclass(frozen=True)
class Store:
    """What Feedline's client asked of the host that it asked most, while batches were made."""

    host: str = ""
    requests: int = 0
    bytes: int = 0  # of bodies
    latency_ms: float | None = None  # of late: from a request to the first byte of its answer
    bytes_per_s: float | None = None  # of late: of one answer, behind its first byte


@dataclass(frozen=True)
class Making:
    """How batches are made; times in ms per batch."""

    batches: int = 0
    wall_ms: float = 0.0  # without the time in which a worker was ready to run and had no CPU
    cpu_ms: float = 0.0
    stages: Mapping[str, float] | None = None  # shares of the wall time, summing to 1
    transforms: Mapping[str, float] = field(default_factory=dict)  # CPU ms per sample, by name
    busy: float | None = None  # share of the workers' time in which they had a task
    delayed: float | None = None  # share of the time in which workers wanted to run and waited for a CPU
    pickle_ms: float = 0.0  # CPU, in the worker
    unpickle_ms: float = 0.0  # CPU, in the loop's process
    pin_ms: float | None = None  # in the loop's process, by torch's loader: into page-locked memory
    message_bytes: float = 0.0
    sample_ms: float | None = None
    slowest_sample_ms: float | None = None
    slowest_sample: int | None = None
    fewest: int | None = None  # batches that one of the workers made
    most: int | None = None
    nested_pools: int = 0
    pools_ms: float = 0.0  # CPU of a worker's thread for making them, which is a part of cpu_ms
    startup_ms: float | None = None  # until the first worker was ready
    next_cpu_ms: float = 0.0  # CPU inside next(), in the loop's process: drawing indices, giving tasks
    spread: float | None = None  # standard deviation of a batch's making, in parts of its mean
    times: tuple[float, ...] = ()  # of making, batch by batch in order, in parts of their mean
    sent_ms: float | None = None  # CPU of a worker for one batch, by the experiments: all of it but the making
    received_ms: float | None = None  # CPU of the loop's process for it
    exchange_ms: float | None = None  # waiting of the loop's process for the worker's answers meanwhile
    waited_for: WaitedFor | None = None  # what the waiting in `stages` was for; None: not seen
    read_ahead_ms: float = 0.0  # of wall_ms: waiting for reads that are ahead of all threads, and of no thread's own
    store: Store | None = None  # None: no store behind a network was asked by Feedline's client


@dataclass(frozen=True)
class Host:
    """The machine during the loop."""

    cpus: float = 1.0  # that the run may use: affinity and quota; of one rank, where ranks share them
    used_cpus: float | None = None  # by the run's processes, on average over its ranks on this machine
    wanted_cpus: float | None = None  # with the time in which they waited for one
    others_cpus: float | None = None  # by everybody else, of this rank's part of the machine
    ranks: int = 1  # of this machine that the run has
    sharing: int = 1  # ranks of this machine that share its CPUs, in the run or not
    step_delayed: float | None = None  # share of the loop process's wish to run
    throttled: float | None = None  # share of the time, by the cgroup's quota
    quota_cpus: float | None = None
    in_kernel: float | None = None  # share of the CPU that makes batches
    memory_pressure: float | None = None  # share of the time
    memory_events: int | None = None
    major_faults_per_s: float | None = None  # pages that the run's processes had to wait for
    io_pressure: float | None = None
    read_bytes_per_s: float | None = None  # from block devices, by the run
    read_bytes_per_sample: float | None = None  # by read(), page cache or not
    device_share: float | None = None  # of what was read: from block devices, not from the page cache
    disk_latency_ms: float | None = None  # per request
    disk_ceiling_bytes_per_s: float | None = None  # measured by a probe, like the following two
    disk_read_bytes: float | None = None  # of the probe's large reads, on average
    disk_small_read_ms: float | None = None
    shared_memory_used: float | None = None  # largest share of /dev/shm
    # of the run's processes, the most; pages that some share count once. None: too dear to look at for so short a run
    memory_bytes: float | None = None
    memory_limit_bytes: float | None = None  # of the cgroup
    files_seen: int | None = None  # that were opened while samples were read
    file_bytes: int | None = None  # median of the dataset's files that were looked at
    files_place: str | None = None  # what they lie on: "nfs", "objects", as `machine.mounts` calls it
    cached_before: float | None = None  # share of them that was in the page cache without being read
    cold_share: float | None = (
        None  # batches per second with their files out of the page cache, of those with them in it
    )


@dataclass(frozen=True)
class Garbage:
    """Full collections of Python's garbage by the loop's process, inside its loops."""

    collections: int = 0
    each_ms: float | None = None  # None: none fell into a wait that was seen
    share: float | None = None  # of the loop's time


@dataclass(frozen=True)
class Copies:
    """Copies of one kind from host memory to a device, per watched step."""

    pinned: bool = False  # from page-locked memory
    asked: bool = False  # with non_blocking=True
    other_stream: bool = False  # not on the device's default stream, which computes
    per_step: float = 0.0
    bytes_per_step: float = 0.0
    host_ms: float = 0.0  # inside the calls, which may hold waiting for earlier kernels
    device_ms: float | None = None  # on the stream, by the device's own events
    timed: int = 0  # copies that `device_ms` comes from


@dataclass(frozen=True)
class Gpu:
    """What NVML says of the GPU that the loop's process used, or of all that it used; means over the loop."""

    indices: tuple[int, ...] = ()
    name: str = ""
    capability: int | None = None  # 10 * major + minor
    utilisation: float = 0.0  # GPU-Util: share of the time in which any kernel ran, however small
    lowest: float = 0.0  # a tenth of its samples are at most this
    highest: float = 0.0
    memory_used_bytes: int | None = None  # the most
    memory_bytes: int = 0
    received_bytes_per_s: float | None = None  # over PCIe
    power_w: float | None = None  # of one
    idle_power_w: float | None = None  # of one, in samples with next to no kernels; None: there were none
    clock_mhz: float | None = None  # of its multiprocessors
    slowed: float | None = None  # share of the samples with clocks held down by power or heat
    shared: bool = False  # with processes that are not of this run


@dataclass(frozen=True)
class Loop:
    """The training loop's own time."""

    steps: int = 0
    loop_s: float = 0.0
    step_ms: float = 0.0  # mean, of the loop's own work between two calls of next()
    wait_ms: float = 0.0  # mean, inside next(), without the first batch of an epoch
    epochs: int = 0
    order_ms: float = 0.0  # of the loop's process at each further epoch's begin, beside what every batch takes there
    step_cpu_ms: float = 0.0  # of the thread that runs the loop
    synchronising_calls: float | None = None  # per step
    synchronising: float | None = None  # share of the step's time


@dataclass(frozen=True)
class OnDevice:
    """What the steps did on a device, and how batches got there."""

    watched_steps: int = 0  # in which calls and copies were counted
    # mean of a step on the device's stream, from where the stream came to its begin to its end, copies and gaps in it
    device_step_ms: float | None = None
    timed_steps: int = 0  # that it comes from
    copies: tuple[Copies, ...] = ()
    # by change: what copies take with it of what they take without, [low, high], measured after the run
    copies_with: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # that the steps used: type, capability, types of parameters
    device: Mapping[str, Any] = field(default_factory=dict)
    gpu: Gpu | None = None


@dataclass(frozen=True)
class Ranks:
    """The ranks of the run; each loop waits for the others' too."""

    ranks: tuple[float, ...] = ()  # share of waiting, by rank
    ranks_alike: bool = False  # they take as long as each other to make a batch, whoever is seen to wait for it


@dataclass(frozen=True)
class Ladder:
    """Numbers of workers and other changes that were tried after the run, with the loader alone."""

    rungs: Mapping[int, float] = field(default_factory=dict)  # batches per second, by workers
    # 95 % of theirs, and of those whose interval is so wide that their rate tells little
    rung_intervals: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    # what each shows beside the best of fewer workers, and of more than now beside the present number
    rungs_beside: Mapping[int, str] = field(default_factory=dict)
    # by change: what was tried in turn with how it is, as (ratio, low, high) of the figure after to before
    tried: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Watching:
    """What watching the run cost it."""

    overhead_share: float | None = None
    overhead: Mapping[str, float] = field(default_factory=dict)  # its parts, and what was paid once: overhead.py


@dataclass(frozen=True)
class Summary:
    loop: Loop = field(default_factory=Loop)
    workers: int = 0  # processes or, of native loaders, threads
    loader: Mapping[str, Any] = field(default_factory=dict)  # its settings
    waits: Waits = field(default_factory=Waits)
    making: Making = field(default_factory=Making)
    host: Host = field(default_factory=Host)
    garbage: Garbage | None = None
    on_device: OnDevice = field(default_factory=OnDevice)
    of_ranks: Ranks = field(default_factory=Ranks)
    ladder: Ladder = field(default_factory=Ladder)
    watching: Watching = field(default_factory=Watching)
    missing: Mapping[str, str] = field(default_factory=dict)  # signal: why

    @property
    def uses_device(self) -> bool:
        return bool(self.on_device.device or self.loader.get("cuda"))

    @property
    def native(self) -> bool:
        """Feedline's threads make the batches."""
        return bool(self.loader.get("native"))

    @property
    def makers(self) -> str:
        """What makes the batches, in a word."""
        return "threads" if self.native else "workers"

    def counted(self, workers: int) -> str:
        """So many of them."""
        return f"{workers} {self.makers[:-1] if workers == 1 else self.makers}"

    def as_dict(self) -> dict[str, Any]:
        """As run records have it: figures of the loop, the ranks and so on stand beside the others there."""
        made = asdict(self)
        for group in ("loop", "on_device", "of_ranks", "ladder", "watching"):
            made |= made.pop(group)
        del made["making"]["times"]
        return {name: finite(value) for name, value in made.items()}
