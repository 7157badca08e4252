# SPDX-License-Identifier: Apache-2.0
"""The state of an analysis: a summary, and the shares of the loop's time that no rule has explained yet."""

from __future__ import annotations

from collections.abc import Mapping

from feedline.diagnose.rules.shares import EXPLAINED, MUCH_KERNEL
from feedline.findings import Finding, Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Host, Summary

FROM_DEVICE = Threshold(
    0.3, "fraction of the bytes read from block devices below which a local disk is not the bottleneck"
)
FEWEST_BYTES = Threshold(1 << 10, "minimum bytes per sample; fewer bytes may be due to the start of workers")
MANY_BYTES = Threshold(
    16 << 10, "bytes per sample above which reads cannot be due to the start of workers, even if no file was observed"
)
MANY_FILES = Threshold(32, "files opened for samples above which a sample may be a file, however small")
_A_FILE = 0.5  # fraction of a file's bytes: others may have been in the page cache
_UNEVEN = 2.0  # ratio of batches between two workers
_IDLE_WORKERS, _AT_WORK = 0.5, 0.85  # busy shares: below the first, workers wait for tasks; above the second, they do
# not


class Analysis:
    """A summary, the shares of the time that no rule has explained yet, and the findings so far."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self.production = max(summary.waits.production, 0.0)
        self.step = max(summary.waits.step, 0.0)
        self.handover = max(summary.waits.handover, 0.0)
        self.unexplained = 0.0  # waiting for a finished batch that was not being packed or unpacked
        self.stretched = 0.0  # part of `handover`: being packed or unpacked, but without a CPU
        self.reading_is_taken = False  # by one of the causes in reading.py
        self.outside_is_taken = False  # waiting for something other than files
        self.findings: list[Finding] = []
        stages = summary.making.stages
        self.stages = dict(stages) if stages else {}
        self._move_kernel_time()
        self._divide_handover()

    def _move_kernel_time(self) -> None:
        """Counts the CPU time in the kernel as reading if samples come from a local disk: it copies the bytes. At a
        memory limit, the kernel also reclaims pages.
        """
        host = self.summary.host
        kernel = host.in_kernel or 0.0
        if kernel <= MUCH_KERNEL or host.memory_events or not is_read_from_device(self.summary):
            return
        copying = kernel * self.stages.get("python", 0.0)
        if copying:
            self.stages["python"] -= copying
            self.stages["storage"] = self.stages.get("storage", 0.0) + copying

    def _divide_handover(self) -> None:
        """Divides the waiting time into packing and unpacking, delays caused by the production of later batches, and
        the rest.
        """
        packed, cpu = self.summary.waits.packed, self.summary.waits.packed_cpu
        work = 0.0 if packed is None else min(packed, self.handover)
        stretched = work - min(work if cpu is None else cpu, work)
        late, part = self.handover - work, _hidden_by_work(self.summary)
        hidden = part * (late + stretched)  # packing that waits for a CPU is held up by the same work
        self.production += hidden
        if packed is None:
            self.handover -= hidden
        else:
            self.stretched = (1.0 - part) * stretched
            self.handover, self.unexplained = work - part * stretched, (1.0 - part) * late

    def stage_share(self, *names: str) -> float:
        return self.production * sum(self.stages.get(name, 0.0) for name in names)

    def normalise(self) -> None:
        """Rescales the remaining stages so that their sum equals the remaining production."""
        whole = sum(self.stages.values())
        self.stages = {name: part / whole for name, part in self.stages.items()} if whole > 0 else {}

    def take_waiting(self, share: float) -> None:
        """Subtracts `share`, first from the storage stage, because a throttled task, like a read, waits without using a
        CPU.
        """
        self.take_part("storage", share)

    def take_part(self, stage: str, share: float) -> None:
        """Subtracts `share` of the loop's time, first from this stage."""
        left = {name: part * self.production for name, part in self.stages.items()}
        if left.get(stage, 0.0) > 0:
            left[stage] = max(left[stage] - share, 0.0)
        self.production = max(self.production - share, 0.0)
        self.stages = left
        self.normalise()

    def take_stages(self, *names: str) -> float:
        """Removes these stages from production and returns their share of the time."""
        share = self.stage_share(*names)
        self.production -= share
        self.stages = {name: part for name, part in self.stages.items() if name not in names}
        self.normalise()
        return share

    def keep_stages(self, *names: str) -> None:
        """Marks all of production except these stages as explained."""
        left = {name: part for name, part in self.stages.items() if name in names}
        self.production *= sum(left.values())
        self.stages = left
        self.normalise()

    def named(self, code: str) -> bool:
        """Whether this cause has already been found."""
        return any(finding.code == code for finding in self.findings)


def is_read_from_device(summary: Summary) -> bool:
    """Whether samples come from a local disk: most bytes do, and more bytes are read than starting a worker
    requires.

    Bytes are read by read() or, for larger amounts, by page faults in memory mappings. If no opened file was observed,
    native code may have opened files, or there are none; then only a large amount counts.
    """
    host, batch = summary.host, summary.loader.get("batch_size")
    samples = summary.loop.steps * (batch if isinstance(batch, int) else 1)
    faulted = (host.read_bytes_per_s or 0.0) * summary.loop.loop_s / max(samples, 1)
    least = MANY_BYTES if host.files_seen == 0 and not summary.native else FEWEST_BYTES
    read = (
        (host.read_bytes_per_sample or 0.0) >= least
        or is_file_per_sample(host)
        or (host.files_seen != 0 and faulted >= MANY_BYTES)
    )
    return (host.device_share or 0.0) > FROM_DEVICE and read


def is_file_per_sample(host: Host) -> bool:
    """Whether each sample reads a whole file: many were opened, and a sample reads about as many bytes as a file
    has.
    """
    read, size = host.read_bytes_per_sample or 0.0, host.file_bytes or 0
    return (host.files_seen or 0) >= MANY_FILES and _A_FILE * size <= read <= size / _A_FILE


def gain_of_workers(summary: Summary, workers: int) -> tuple[tuple[float, float], list[str]]:
    """Returns the gain with this number of workers, and reasons to doubt it."""
    known = prediction.comparable_with(summary, workers)
    low, high = prediction.gain(known, prediction.cycle_ms(known, workers))
    if not summary.loader.get("iterable") or workers in summary.ladder.rungs:
        return (low, high), []
    counter = [
        "an IterableDataset divides its own samples: additional workers may have no samples, or read samples twice"
    ]
    fewest, most = summary.making.fewest, summary.making.most
    if fewest is not None and most is not None and most >= _UNEVEN * max(fewest, 1):
        counter.append(f"one worker produced {most} batches, while another ran out of work after {fewest}")
    return (0.0, high), counter


def _hidden_by_work(summary: Summary) -> float:
    """Returns the share of a finished batch's delay that a faster hand-over would not save, because workers produce
    batches concurrently.

    The thread that sends a batch shares the interpreter with the Python code of the next batch, so a finished batch may
    always arrive a whole batch late; the throughput depends only on production.
    """
    making = summary.making
    waited = summary.waits.handover * prediction.current_ms(summary)
    unseen = summary.waits.packed is None  # packing may then take all of the time
    if making.busy is None or (unseen and making.pickle_ms + making.unpickle_ms > EXPLAINED * waited):
        return 0.0
    return min(max((making.busy - _IDLE_WORKERS) / (_AT_WORK - _IDLE_WORKERS), 0.0), 1.0)


def stage_sentence(stages: Mapping[str, float] | None) -> str:
    if not stages:
        return "the shares of reading, decoding and transforms were not observed"
    words = {"storage": "waiting", "python": "own code"}
    parts = [f"{words.get(name, name)} {share:.0%}" for name, share in sorted(stages.items(), key=lambda s: -s[1])]
    return "by stage: " + ", ".join(parts)
