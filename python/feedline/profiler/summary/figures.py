# SPDX-License-Identifier: Apache-2.0
"""The measured metrics of a run, on which verdicts are based.

Shares are fractions of ``loop_s``: the time inside training loops over the loader that took most of the time, from
``iter()`` to the end of each epoch, excluding the script's work between epochs. A metric is None if the data to compute
it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from feedline.profiler.intervals import finite

DROP_IN = "feedline.DataLoader"  # as a replacement of torch's: one of the experiments
# Stages of making one batch. "storage" is waiting without CPU, "python" the dataset's own code.
STAGES = ("storage", "decode", "transform", "python", "collate")


@dataclass(frozen=True)
class Waits:
    """Shares of the loop's time spent waiting, by cause; the sum of these shares and ``step`` is 1."""

    production: float = 0.0  # the batch was still being made, at the usual speed
    straggler: float = 0.0  # the batch was still being made, and one sample took much longer than others
    handover: float = 0.0  # the batch was finished and in transit from the worker
    startup: float = 0.0  # workers were starting or stopping
    border: float = 0.0  # another epoch began: order, first batches
    step: float = 1.0  # no wait: the loop's own work
    # part of `handover`: packing in the worker and unpacking in next(), including slowdown by a lack of CPUs; the rest
    # waited for a wake-up, or for a CPU before anything began. None if not recorded
    packed: float | None = None
    packed_cpu: float | None = None  # part of `packed`: on a machine that always has a free CPU

    @property
    def loader(self) -> float:
        return self.production + self.straggler + self.handover + self.startup + self.border


@dataclass(frozen=True)
class WaitLocation:
    """Where a wait occurred: the kind of wait, and the line of Python code."""

    kind: str
    line: str
    share: float  # of the samples that found a wait


@dataclass(frozen=True)
class WaitedFor:
    """The reasons why processes that produce batches waited without running."""

    looks: int = 0  # samples that found a wait
    kinds: Mapping[str, float] = field(default_factory=dict)  # shares of them, by the kinds of probe/system_calls.py
    places: tuple[WaitLocation, ...] = ()  # other than files, the most frequent first

    @property
    def in_files(self) -> float:
        """Fraction of waits that were in file system calls or in page faults on mapped files."""
        return self.kinds.get("file", 0.0)

    @property
    def outside(self) -> str:
        """The most frequent kind of wait other than for files; "" if there were no such waits."""
        others = {kind: share for kind, share in self.kinds.items() if kind != "file"}
        return max(others, key=lambda kind: others[kind], default="")


@dataclass(frozen=True)
class Store:
    """Requests from Feedline's HTTP client to the host with the most requests, while batches were produced."""

    host: str = ""
    requests: int = 0
    bytes: int = 0  # of response bodies
    latency_ms: float | None = None  # recent: from a request to the first byte of its response
    bytes_per_s: float | None = None  # recent: of one response, after its first byte


@dataclass(frozen=True)
class Blocks:
    """Compressed blocks that Feedline's threads decompressed while batches were produced."""

    bytes: int = 0  # after decompression
    delivered_bytes: int = 0  # of the samples' values

    @property
    def per_byte(self) -> float:
        """Bytes decompressed per byte delivered."""
        return self.bytes / max(self.delivered_bytes, 1)


@dataclass(frozen=True)
class Making:
    """Metrics of batch production; times in ms per batch."""

    batches: int = 0
    wall_ms: float = 0.0  # without the time in which a worker was runnable but had no CPU
    cpu_ms: float = 0.0
    stages: Mapping[str, float] | None = None  # shares of the wall time, summing to 1
    transforms: Mapping[str, float] = field(default_factory=dict)  # CPU ms per sample, by name
    busy: float | None = None  # share of the workers' time in which they had a task
    delayed: float | None = None  # share of the time in which workers were runnable and waited for a CPU
    pickle_ms: float = 0.0  # CPU, in the worker
    unpickle_ms: float = 0.0  # CPU, in the loop's process
    pin_ms: float | None = None  # in the loop's process, by torch's loader: page-locking
    message_bytes: float = 0.0
    sample_ms: float | None = None
    slowest_sample_ms: float | None = None
    slowest_sample: int | None = None
    fewest: int | None = None  # batches made by one of the workers
    most: int | None = None
    nested_pools: int = 0
    collating_pools: float = 0.0  # share of these that collate_fn creates
    pools_ms: float = 0.0  # CPU of a worker's thread for making them, part of cpu_ms
    startup_ms: float | None = None  # until the first worker was ready
    next_cpu_ms: float = 0.0  # CPU inside next(), in the loop's process: drawing indices, sending tasks
    spread: float | None = None  # standard deviation of a batch's time of making, relative to its mean
    times: tuple[float, ...] = ()  # times of making, batch by batch in order, relative to their mean
    sent_ms: float | None = None  # CPU of a worker for one batch, by the experiments, without making it
    received_ms: float | None = None  # CPU of the loop's process for it
    exchange_ms: float | None = None  # time that the loop's process waits for the worker's replies
    waited_for: WaitedFor | None = None  # cause of the waiting in `stages`; None if not recorded
    read_ahead_ms: float = 0.0  # part of wall_ms: waiting for prefetched reads, which belong to no thread
    store: Store | None = None  # None if Feedline's client made no requests to a remote store
    reading: float = 0.0  # share of the wall time: CPU time of Feedline's threads for reading samples, part of `stages`
    blocks: Blocks | None = None  # None if Feedline's threads decompressed no blocks


@dataclass(frozen=True)
class Host:
    """State of the machine during the loop."""

    cpus: float = 1.0  # CPUs that the run may use: affinity and quota; those of one rank, if ranks share them
    machine_cpus: float | None = None  # the same without the quota
    used_cpus: float | None = None  # CPUs used by the run's processes, on average over its ranks on this machine
    wanted_cpus: float | None = None  # including the time in which they waited for one
    others_cpus: float | None = None  # used by other processes, for this rank's part of the machine
    ranks: int = 1  # the run's ranks on this machine
    sharing: int = 1  # ranks on this machine that share its CPUs, in the run or not
    step_delayed: float | None = None  # share of the time in which the loop's process was runnable
    throttled: float | None = None  # share of the time, by the cgroup's quota
    quota_cpus: float | None = None
    in_kernel: float | None = None  # share of the CPU that makes batches
    memory_pressure: float | None = None  # share of the time
    memory_events: int | None = None
    major_faults_per_s: float | None = None  # major page faults of the run's processes
    io_pressure: float | None = None
    read_bytes_per_s: float | None = None  # from block devices, by the run
    read_bytes_per_sample: float | None = None  # by read(), including the page cache
    reads_per_sample: float | None = None  # calls of read() and pread()
    device_share: float | None = None  # share of reads from block devices, not from the page cache
    disk_latency_ms: float | None = None  # per request
    disk_ceiling_bytes_per_s: float | None = None  # measured by a probe, as are the next two
    disk_read_bytes: float | None = None  # average size of the probe's large reads
    disk_small_read_ms: float | None = None
    shared_memory_used: float | None = None  # maximum share of /dev/shm
    # maximum of the run's processes; shared pages count once. None if too expensive to read in so short a run
    memory_bytes: float | None = None
    memory_limit_bytes: float | None = None  # of the cgroup
    files_seen: int | None = None  # files opened while samples were read
    file_bytes: int | None = None  # median of the examined dataset files
    files_place: str | None = None  # their storage family: "nfs", "objects", as in `machine.mounts`
    cached_before: float | None = None  # share of them that was in the page cache without being read
    cold_share: float | None = None  # ratio of batches per second with uncached files to that with cached files

    @property
    def contended(self) -> bool:
        """Whether other programs use more than half of the CPUs, and leave fewer of them than a quota allows."""
        if self.others_cpus is None or self.others_cpus <= self.cpus / 2:
            return False
        return not self.quota_cpus or self.machine_cpus is None or self.machine_cpus - self.others_cpus < self.cpus

    @property
    def limited_by_others(self) -> bool:
        """Whether other programs limit the run more than its quota does: without them, the run could use the rest of
        its quota; without the quota, it could use the time in which the quota stopped it.
        """
        if not self.contended or not self.quota_cpus or not self.used_cpus:
            return False
        stopped = min(self.throttled or 0.0, 0.99)
        return self.quota_cpus / (self.ranks * self.used_cpus) > 1 / (1 - stopped)


@dataclass(frozen=True)
class Garbage:
    """Full garbage collections by Python in the loop's process, inside its loops."""

    collections: int = 0
    each_ms: float | None = None  # None if none ran in a recorded wait
    share: float | None = None  # of the loop's time


@dataclass(frozen=True)
class Copies:
    """Copies of one kind from host memory to a device, per watched step."""

    pinned: bool = False  # from page-locked memory
    asked: bool = False  # with non_blocking=True
    other_stream: bool = False  # not on the device's default stream, which computes
    per_step: float = 0.0
    bytes_per_step: float = 0.0
    host_ms: float = 0.0  # inside the calls, which may include waiting for earlier kernels
    device_ms: float | None = None  # on the stream, by the device's events
    timed: int = 0  # number of copies that `device_ms` is based on


@dataclass(frozen=True)
class Gpu:
    """Mean values of NVML's metrics over the loop, for the GPUs that the loop's process used."""

    indices: tuple[int, ...] = ()
    name: str = ""
    capability: int | None = None  # 10 * major + minor
    utilisation: float = 0.0  # GPU-Util: share of the time in which any kernel ran, however small
    lowest: float = 0.0  # 10th percentile of its samples
    highest: float = 0.0
    memory_used_bytes: int | None = None  # maximum
    memory_bytes: int = 0
    received_bytes_per_s: float | None = None  # over PCIe
    power_w: float | None = None  # of one
    idle_power_w: float | None = None  # of one GPU, in samples with almost no kernels; None if there were none
    clock_mhz: float | None = None  # of its multiprocessors
    slowed: float | None = None  # share of the samples with clocks throttled by power or heat
    shared: bool = False  # including processes outside this run


@dataclass(frozen=True)
class Loop:
    """Time of the training loop itself."""

    steps: int = 0
    loop_s: float = 0.0
    step_ms: float = 0.0  # mean of the loop's own work between two calls to next()
    wait_ms: float = 0.0  # mean inside next(), without the first batch of an epoch
    # "p50", "p90", "p99" and "max" of the same waits, in ms; None if there were none
    wait_percentiles_ms: Mapping[str, float] | None = None
    epochs: int = 0
    order_ms: float = 0.0  # CPU of the loop's process at the start of each later epoch, beyond that of every batch
    step_cpu_ms: float = 0.0  # of the thread that runs the loop
    synchronising_calls: float | None = None  # per step
    synchronising: float | None = None  # share of the step's time


@dataclass(frozen=True)
class OnDevice:
    """The work of the steps on a device, and copies of batches to the device."""

    watched_steps: int = 0  # steps in which calls and copies were counted
    # mean time of a step on the device's stream, from the stream's time at its start to that at its end, with copies
    # and gaps
    device_step_ms: float | None = None
    timed_steps: int = 0  # number of steps that `device_step_ms` is based on
    copies: tuple[Copies, ...] = ()
    # by change: time of copies with it as a share of that without, [low, high], measured after the run
    copies_with: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # device used by the steps: type, capability, types of parameters
    device: Mapping[str, Any] = field(default_factory=dict)
    gpu: Gpu | None = None


@dataclass(frozen=True)
class Ranks:
    """The ranks of the run; the loop of each rank also waits for the other ranks."""

    ranks: tuple[float, ...] = ()  # share of waiting, by rank
    ranks_alike: bool = False  # whether ranks take equally long to make a batch, whichever rank waits for it


@dataclass(frozen=True)
class Ladder:
    """Results of trials after the run, without the loop's work: numbers of workers and other changes."""

    rungs: Mapping[int, float] = field(default_factory=dict)  # batches per second, by workers
    # 95 % intervals of those rates, and of trials too uncertain for a rate
    rung_intervals: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    # comparison of each with the best of fewer workers, and of larger numbers with the present one
    rungs_over_fewer: Mapping[int, str] = field(default_factory=dict)
    # by change: (ratio, low, high) of the figure after to before, from alternating measurements
    tried: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Profiling:
    """Overhead of profiling this run."""

    overhead_share: float | None = None
    overhead: Mapping[str, float] = field(default_factory=dict)  # its parts, and one-time costs: overhead.py


@dataclass(frozen=True)
class Summary:
    loop: Loop = field(default_factory=Loop)
    workers: int = 0  # processes or, for native loaders, threads
    loader: Mapping[str, Any] = field(default_factory=dict)  # its settings
    waits: Waits = field(default_factory=Waits)
    making: Making = field(default_factory=Making)
    host: Host = field(default_factory=Host)
    garbage: Garbage | None = None
    on_device: OnDevice = field(default_factory=OnDevice)
    of_ranks: Ranks = field(default_factory=Ranks)
    ladder: Ladder = field(default_factory=Ladder)
    profiling: Profiling = field(default_factory=Profiling)
    missing: Mapping[str, str] = field(default_factory=dict)  # signal: why

    @property
    def uses_device(self) -> bool:
        return bool(self.on_device.device or self.loader.get("cuda"))

    @property
    def native(self) -> bool:
        """Whether Feedline's threads produce the batches."""
        return bool(self.loader.get("native"))

    @property
    def makers(self) -> str:
        """The kind of threads or processes that produce batches: "threads" or "workers"."""
        return "threads" if self.native else "workers"

    def counted(self, workers: int) -> str:
        """The number of threads or workers as text, such as "4 workers"."""
        return f"{workers} {self.makers[:-1] if workers == 1 else self.makers}"

    def as_dict(self) -> dict[str, Any]:
        """Returns the summary as in run records, with the metrics of the loop, the ranks and other groups at the top
        level.
        """
        made = asdict(self)
        for group in ("loop", "on_device", "of_ranks", "ladder", "profiling"):
            made |= made.pop(group)
        del made["making"]["times"]
        return {name: finite(value) for name, value in made.items()}
