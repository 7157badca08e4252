# SPDX-License-Identifier: Apache-2.0
"""From a summary to causes: a pure function. docs/diagnose.md explains each cause to users.

Each rule books a share of the loop's time under one name, so shares never sum to more than 1. ``confidence`` is 0 to 1;
0.9 and above is a certain verdict, which needs every signal that could speak against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from feedline.diagnose import fixes, prediction
from feedline.diagnose.summary import Summary

CAUSES = (
    "compute_bound",
    "storage_latency",
    "storage_bandwidth",
    "small_files",
    "cpu_decode",
    "cpu_transform",
    "python_main_process",
    "collate",
    "worker_handover",
    "host_to_device",
    "unpinned_copy",
    "blocking_copy",
    "too_few_workers",
    "oversubscribed",
    "cpu_quota",
    "memory_pressure",
    "shared_memory_limit",
    "worker_startup",
    "epoch_border",
    "straggling_sample",
    "straggling_rank",
    "loop_synchronisation",
    "nested_pool",
    "precision_not_reduced",
)

NAMED = 0.05  # a smaller share is no cause worth a change
IDLE_LOADER = 0.10  # waiting below this: the loader is not the problem
CERTAIN = 0.9
_UNCERTAIN = 0.85  # the most where a signal is missing
_FEWEST_STEPS = 20
_BUSY_WORKERS = 0.7
_IDLE_WORKERS, _AT_WORK = 0.5, 0.85  # shares of their time: up to the first they wait for tasks, from the second on not
_EXPLAINED = 0.3  # of a hand-over's time: CPU of packing and unpacking
_FREE_CPUS = 0.75  # of the usable ones wanted: below, there is room for another worker
_LADDER_GAIN = 1.15  # measured with more workers: below, they do not help
_USEFUL = 0.95  # of the cycle as it is: a change that leaves more is none
_CROWDED = 3.0  # workers per usable CPU
_DELAYED = 0.3
_LARGE = 0.3  # a share that a busy machine does not make by itself
_SMALL_FILE_BYTES = range(2 << 10, 128 << 10)
_FROM_DEVICE = 0.3
_NEAR_CEILING = 0.7
_PIPE_BYTES_PER_MS = 500_000.0  # what a pipe between two processes moves at least


@dataclass(frozen=True)
class Verdict:
    cause: str
    share: float  # of the loop's time
    confidence: float
    evidence: list[str]
    counter_evidence: list[str]
    fix: str
    predicted_gain: tuple[float, float]  # share more batches per second, [low, high]


@dataclass(frozen=True)
class Abstention:
    cause: str
    missing: str  # the signal, and the cheapest way to get it


@dataclass(frozen=True)
class Diagnosis:
    verdicts: list[Verdict] = field(default_factory=list)  # the largest share first
    abstained: list[Abstention] = field(default_factory=list)
    more_workers: str | None = None  # why more workers will not help, or how many will

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdicts": [{**asdict(v), "predicted_gain": list(v.predicted_gain)} for v in self.verdicts],
            "abstained": [asdict(a) for a in self.abstained],
            "more_workers": self.more_workers,
        }


def judge(summary: Summary | None) -> Diagnosis:
    """The causes of a run's time. None: no loop was seen, and everything is abstained from."""
    if summary is None or summary.steps == 0:
        missing = "no training loop over a DataLoader or a Feedline loader was seen; see the notes"
        return Diagnosis(abstained=[Abstention(cause, missing) for cause in CAUSES])
    case = _Case(summary)
    for rule in _RULES:
        rule(case)
    named = sorted((v for v in case.verdicts if v.share >= NAMED), key=lambda v: -v.share)
    return Diagnosis(named, _abstentions(summary, {v.cause for v in named}), _more_workers(summary, named))


class _Case:
    """A summary, the shares that no rule has explained yet, and the verdicts so far."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self.production = max(summary.waits.production, 0.0)
        self.step = max(summary.waits.step, 0.0)
        self.handover = max(summary.waits.handover, 0.0)
        self.unexplained = 0.0  # waiting for a batch that was made, and that nothing but a lack of CPUs held up
        self.verdicts: list[Verdict] = []
        stages = summary.making.stages
        self.stages = dict(stages) if stages else {}
        late = self.handover * _hidden_by_work(summary)
        self.handover -= late
        self.production += late

    def stage_share(self, *names: str) -> float:
        return self.production * sum(self.stages.get(name, 0.0) for name in names)

    def name(
        self,
        cause: str,
        share: float,
        confidence: float,
        evidence: list[str],
        counter: list[str] | None = None,
        gain: tuple[float, float] | None = None,
        needs: tuple[str, ...] = (),
    ) -> None:
        summary = self.summary
        against = list(counter or [])
        absent = [signal for signal in needs if signal in summary.missing]
        if absent:
            confidence = min(confidence, _UNCERTAIN)
            against.append("not seen: " + "; ".join(summary.missing[signal] for signal in absent))
        if summary.steps < _FEWEST_STEPS:
            confidence = min(confidence, 0.6)
            against.append(f"only {summary.steps} steps were seen")
        others = summary.host.others_cpus
        if others is not None and others > summary.host.cpus / 2 and cause != "compute_bound":
            against.append(f"other programs used {others:.1f} CPUs meanwhile")
            if share < _LARGE:
                confidence = min(confidence, _UNCERTAIN)
        share = min(max(share, 0.0), 1.0)
        low, high = gain if gain is not None else prediction.gain_of_share(share)
        self.verdicts.append(
            Verdict(
                cause,
                round(share, 4),
                round(min(max(confidence, 0.0), 1.0), 2),
                evidence,
                against,
                fixes.fix_of(cause, summary),
                (round(low, 3), round(high, 3)),
            )
        )


def _hidden_by_work(summary: Summary) -> float:
    """Share of the hand-over's time that no faster hand-over would save, as the workers make batches all the while.

    A worker's thread that sends a batch shares the interpreter with the next batch's Python, so a finished batch may
    arrive a whole batch late, every time; how many arrive per second is up to the making alone.
    """
    making = summary.making
    waited = summary.waits.handover * prediction.current_ms(summary)
    if making.busy is None or making.pickle_ms + making.unpickle_ms > _EXPLAINED * waited:
        return 0.0
    return min(max((making.busy - _IDLE_WORKERS) / (_AT_WORK - _IDLE_WORKERS), 0.0), 1.0)


# -- the rules, in this order: the first that explains time takes it


def _compute_bound(case: _Case) -> None:
    summary, waits = case.summary, case.summary.waits
    crowded = summary.workers >= _CROWDED * summary.host.cpus  # then the lack of CPUs is the loader's own doing
    loader = waits.loader - (0.0 if crowded else case.unexplained)
    if loader >= IDLE_LOADER:
        return
    evidence = [
        f"next() waits {summary.wait_ms:.2f} ms, the loop works {summary.step_ms:.2f} ms per step",
        f"a perfect loader would save {loader:.1%}",
    ]
    share = case.step
    confidence = 0.95 if loader < NAMED else 0.8
    counter = []
    if any(verdict.cause == "straggling_rank" for verdict in case.verdicts):
        counter.append("a step also waits for the other ranks")
        confidence = 0.6
    if case.unexplained >= NAMED:
        counter.append(f"{case.unexplained:.0%} of the time, finished batches waited for a CPU to hand them over")
        confidence = 0.8
    case.name("compute_bound", share, confidence, evidence, counter, prediction.gain_of_share(loader, 0.0))


def _synchronisation(case: _Case) -> None:
    summary = case.summary
    calls, share = summary.synchronising_calls or 0.0, case.step * min(summary.synchronising or 0.0, 1.0)
    if share < NAMED:
        return
    evidence = [
        f"{calls:.0f} calls of .item() or .tolist() per step, and what lies between them, take "
        f"{summary.synchronising or 0:.0%} of its time"
    ]
    counter = []
    confidence = 0.92 if calls >= 2 else 0.7
    if summary.loader.get("cuda"):
        confidence = 0.6
        counter.append("on a GPU such a call also waits for work that is needed anyway")
    case.step -= share
    case.name("loop_synchronisation", share, confidence, evidence, counter)


def _quota(case: _Case) -> None:
    host = case.summary.host
    if not host.throttled or host.throttled < NAMED:
        return
    share = min(host.throttled, case.production)
    quota = f" of {host.quota_cpus:.2g} CPUs" if host.quota_cpus else ""
    evidence = [f"the cgroup's quota{quota} stopped its processes for {host.throttled:.0%} of the time"]
    case.production -= share
    case.name("cpu_quota", share, 0.9, evidence)


def _memory(case: _Case) -> None:
    host = case.summary.host
    if not host.memory_pressure or host.memory_pressure < NAMED:
        return
    share = min(host.memory_pressure, case.production)
    evidence = [f"tasks waited for memory in {host.memory_pressure:.0%} of the time"]
    if host.memory_events:
        evidence.append(f"the cgroup was at its limit {host.memory_events} times")
    case.production -= share
    case.name("memory_pressure", share, 0.9 if host.memory_events else 0.7, evidence)


def _shared_memory(case: _Case) -> None:
    used = case.summary.host.shared_memory_used
    if used is None or used < 0.9:
        return
    share, case.handover = case.handover, 0.0
    if share < NAMED:  # it may stop the run at any time, whatever it costs now
        share = min(NAMED, case.step)
        case.step -= share
    evidence = [f"/dev/shm, through which workers hand over tensors, was {used:.0%} full"]
    case.name("shared_memory_limit", share, 0.7, evidence)


def _nested_pool(case: _Case) -> None:
    making = case.summary.making
    if not making.nested_pools:
        return
    share = case.stage_share("python", "storage")
    evidence = [f"workers made {making.nested_pools} pools of their own"]
    case.production -= share
    case.stages = {name: part for name, part in case.stages.items() if name not in ("python", "storage")}
    _normalise(case)
    case.name("nested_pool", share, 0.8, evidence)


def _normalise(case: _Case) -> None:
    whole = sum(case.stages.values())
    case.stages = {name: part / whole for name, part in case.stages.items()} if whole > 0 else {}


def _handover(case: _Case) -> None:
    summary, making, host = case.summary, case.summary.making, case.summary.host
    share = case.handover
    if share < NAMED:
        return
    delay = min(making.delayed or 0.0, 0.9)
    cycle = max(prediction.current_ms(summary), 1e-9)
    running = making.pickle_ms + making.unpickle_ms
    moving = running / (1 - delay) + making.message_bytes / _PIPE_BYTES_PER_MS
    waited = share * cycle
    explained = running > _EXPLAINED * waited
    counter = []
    if not explained:
        counter.append("packing and unpacking do not take that long: the processes may have waited for CPUs")
        crowded = (host.others_cpus or 0.0) > host.cpus / 4 or (host.wanted_cpus or 0.0) > host.cpus
        if crowded:
            case.unexplained = max(share - 1.5 * min(moving, 2 * running) / cycle, 0.0)
            share -= case.unexplained
    evidence = [
        f"batches were ready in a worker, and next() still waited {waited:.2f} ms each",
        f"packing takes {making.pickle_ms:.2f} ms of CPU, unpacking {making.unpickle_ms:.2f} ms, "
        f"for a message of {making.message_bytes / 1024:.1f} KiB",
    ]
    case.name("worker_handover", share, 0.92 if explained and share >= _LARGE / 2 else 0.6, evidence, counter)


def _startup(case: _Case) -> None:
    summary, share = case.summary, case.summary.waits.startup
    if share < NAMED:
        return
    ready = summary.making.startup_ms
    evidence = [f"{summary.epochs} epochs began with {summary.workers} workers to start"]
    if ready is not None:
        evidence.append(f"a worker takes {ready:.0f} ms from its first line to its first task")
    once = summary.epochs == 1 or bool(summary.loader.get("persistent_workers"))
    counter = ["this is paid once, not per epoch"] if once else []
    case.name("worker_startup", share, 0.7 if once else 0.92, evidence, counter)


def _border(case: _Case) -> None:
    summary, share = case.summary, case.summary.waits.border
    if share < NAMED:
        return
    later = max(summary.epochs - 1, 1)
    evidence = [
        f"between epochs the loop waits {1000 * share * summary.loop_s / later:.0f} ms "
        f"longer than for other batches, {later} times"
    ]
    case.name("epoch_border", share, 0.9, evidence)


def _straggler(case: _Case) -> None:
    making, share = case.summary.making, case.summary.waits.straggler
    if share < NAMED:
        return
    evidence = []
    if making.slowest_sample_ms is not None and making.sample_ms:
        evidence.append(
            f"sample {making.slowest_sample} took {making.slowest_sample_ms:.0f} ms, "
            f"the mean is {making.sample_ms:.2f} ms"
        )
    evidence.append("the batches after it were ready, and waited for it")
    # a worker's own sending thread can hold up a sample too, now and then
    sure = len(evidence) > 1 and share >= _LARGE / 2
    case.name("straggling_sample", share, 0.92 if sure else 0.75, evidence)


def _main_process(case: _Case) -> None:
    summary, host = case.summary, case.summary.host
    if summary.workers > 0 or summary.loader.get("native") or case.production < NAMED:
        return
    best = prediction.best_workers(summary, range(1, 17))
    cycle = prediction.cycle_ms(summary, best)
    waiting = case.stages.get("storage", 0.0)
    if cycle > 0.9 * (summary.step_ms + summary.making.wall_ms) and host.cpus < 2:
        return  # one CPU, all of it used: another process has none to run on
    evidence = [
        f"num_workers=0: next() makes each batch itself in {summary.wait_ms:.1f} ms, and the loop waits",
        _stage_sentence(case.summary.making.stages),
    ]
    counter = [] if waiting < 0.5 else ["most of that is waiting, which threads would hide as well"]
    confidence = 0.95 if host.cpus >= 2 else 0.8
    gain = prediction.gain(summary, cycle)
    if best in summary.rungs and cycle > _USEFUL * prediction.cycle_ms(summary, 0):
        counter.append("measured, the loader alone: workers gained nothing just now")
        confidence = 0.6
    case.name("python_main_process", case.production, confidence, evidence, counter, gain, needs=("stages",))
    case.production = 0.0


def _too_few_workers(case: _Case) -> None:
    summary, making, host = case.summary, case.summary.making, case.summary.host
    share = case.stage_share("decode", "transform", "python")
    wanted = host.wanted_cpus
    if summary.workers == 0 or share < NAMED or (making.busy is not None and making.busy < _BUSY_WORKERS):
        return
    if wanted is None or wanted > _FREE_CPUS * host.cpus:
        return
    best = prediction.best_workers(replace(summary, rungs={}))
    if best <= summary.workers:
        return
    evidence = [
        f"{summary.workers} workers were at work {making.busy or 0:.0%} of the time",
        f"the run wanted {wanted:.1f} of {host.cpus:.3g} CPUs: there is room for more",
    ]
    confidence = 0.92
    more = {workers: rate for workers, rate in summary.rungs.items() if workers > summary.workers}
    if more and summary.workers in summary.rungs:
        ratio = max(more.values()) / max(summary.rungs[summary.workers], 1e-9)
        if ratio < _LADDER_GAIN:
            return  # tried, and of no use: the work itself is what costs
        best = prediction.best_workers(summary, {summary.workers, *more})
        confidence = 0.95
        evidence.append(f"measured, the loader alone: {ratio:.2f} times the batches with more workers")
    gain = prediction.gain(summary, prediction.cycle_ms(summary, best))
    case.name("too_few_workers", share, confidence, evidence, gain=gain, needs=("stages", "processes"))
    _take_running(case)


def _take_running(case: _Case) -> None:
    """Running code is explained; what is left of production is storage and collation."""
    left = {name: part for name, part in case.stages.items() if name in ("storage", "collate")}
    case.production *= sum(left.values())
    case.stages = left
    _normalise(case)


def _oversubscribed(case: _Case) -> None:
    summary, making, host = case.summary, case.summary.making, case.summary.host
    delayed = making.delayed
    if delayed is None or delayed < _DELAYED or summary.workers < _CROWDED * host.cpus:
        return
    running = case.stage_share("decode", "transform", "python", "collate")
    share = running * delayed + case.unexplained
    if share < NAMED:
        return
    best = prediction.best_workers(summary, range(1, max(int(host.cpus), 1) + 1))
    evidence = [
        f"{summary.workers} workers on {host.cpus:.3g} CPUs: ready to run, they waited {delayed:.0%} of the time",
        f"{best} workers can use all of these CPUs",
    ]
    counter = ["fewer workers free CPUs and memory; the work itself stays"]
    case.production -= running * delayed
    case.name("oversubscribed", share, 0.92, evidence, counter, (0.0, prediction.gain_of_share(share, 0.1)[0] + 0.1))


def _stages(case: _Case) -> None:
    making = case.summary.making
    per_batch = f"a batch takes {making.wall_ms:.1f} ms to make, {making.cpu_ms:.1f} ms of it CPU"
    split = _stage_sentence(case.summary.making.stages)
    needs = ("stages", "processes")
    collate = case.stage_share("collate")
    case.name("collate", collate, 0.92, [per_batch, split], needs=needs)
    _storage(case, [per_batch, split])
    transform = case.stage_share("transform", "python")
    evidence = [per_batch, split]
    if making.transforms:
        slowest = ", ".join(f"{name} {ms:.2f} ms" for name, ms in list(making.transforms.items())[:3])
        evidence.append(f"per sample: {slowest}")
    case.name("cpu_decode", case.stage_share("decode"), 0.92, [per_batch, split], needs=needs)
    case.name("cpu_transform", transform, 0.9, evidence, needs=needs)


def _storage(case: _Case, evidence: list[str]) -> None:
    host, share = case.summary.host, case.stage_share("storage")
    if share < NAMED:
        return
    counter = []
    cause, confidence = "storage_latency", 0.9
    rate, ceiling = host.read_bytes_per_s, host.disk_ceiling_bytes_per_s
    from_device = (host.device_share or 0.0) > _FROM_DEVICE
    if rate is not None and ceiling and rate > _NEAR_CEILING * ceiling:
        cause = "storage_bandwidth"
        evidence = [*evidence, f"{rate / 1e6:.0f} MB/s were read, of {ceiling / 1e6:.0f} MB/s that the disk gives"]
    elif from_device and int(host.read_bytes_per_sample or 0) in _SMALL_FILE_BYTES:
        cause, confidence = "small_files", 0.8
        evidence = [*evidence, f"a sample reads {(host.read_bytes_per_sample or 0) / 1024:.0f} KiB, from the disk"]
    elif not from_device:
        confidence = 0.85
        counter.append("little came from local disks: a network, a lock or a sleep can wait like storage")
    gain = None
    best = prediction.best_workers(case.summary, prediction.within_reach(case.summary))
    if cause == "storage_latency" and best > case.summary.workers:
        gain = prediction.gain(case.summary, prediction.cycle_ms(case.summary, best))
    case.name(cause, share, confidence, evidence, counter, gain, needs=("stages", "processes", "io"))


def _ranks(case: _Case) -> None:
    ranks = case.summary.ranks
    if len(ranks) < 2:
        return
    others = sorted(ranks)[: len(ranks) - 1]
    slowest, usual = max(ranks), others[len(others) // 2]
    share = min(slowest - usual, max(case.step, 0.0))
    if share < IDLE_LOADER:
        return
    evidence = [f"rank {ranks.index(slowest)} waits {slowest:.0%} of its time for data, the others {usual:.0%}"]
    case.step -= share
    case.name("straggling_rank", share, 0.8, evidence)


_RULES: tuple[Callable[[_Case], None], ...] = (
    _synchronisation,
    _ranks,
    _shared_memory,
    _handover,
    _compute_bound,
    _quota,
    _memory,
    _startup,
    _border,
    _straggler,
    _nested_pool,
    _main_process,
    _oversubscribed,
    _too_few_workers,
    _stages,
)


def _stage_sentence(stages: Mapping[str, float] | None) -> str:
    if not stages:
        return "how that divides among reading, decoding and transforms was not seen"
    words = {"storage": "waiting", "python": "own code"}
    parts = [f"{words.get(name, name)} {share:.0%}" for name, share in sorted(stages.items(), key=lambda s: -s[1])]
    return "of it: " + ", ".join(parts)


def _more_workers(summary: Summary, named: list[Verdict]) -> str | None:
    """What becomes of the usual advice."""
    if summary.workers == 0 or summary.making.batches == 0:
        return None
    measured = _measured_ladder(summary)
    if measured is not None:
        return measured
    now = prediction.cycle_ms(summary, summary.workers)
    best = prediction.best_workers(summary, prediction.within_reach(summary))
    if best > summary.workers:
        gain = now / prediction.cycle_ms(summary, best) - 1
        return f"{best} workers instead of {summary.workers} would help: {gain:.0%} more batches per second"
    causes = {v.cause for v in named}
    if "compute_bound" in causes:
        return "more workers will not help: the loop does not wait for them"
    making, host = summary.making, summary.host
    if now <= (summary.step_ms + making.unpickle_ms) * 1.01:
        return (
            f"more workers will not help: {summary.workers} workers make a batch every "
            f"{making.wall_ms / summary.workers:.1f} ms, the loop takes {summary.step_ms:.1f} ms for it"
        )
    cpu = making.cpu_ms + making.pickle_ms + making.unpickle_ms + summary.step_cpu_ms
    return (
        f"more workers will not help: a batch needs {cpu:.1f} ms of CPU, so {host.cpus:.3g} CPUs give one every "
        f"{cpu / host.cpus:.1f} ms at best, with any number of workers"
    )


def _measured_ladder(summary: Summary) -> str | None:
    rungs = {workers: rate for workers, rate in summary.rungs.items() if workers >= 1}
    if summary.workers not in rungs or max(rungs) <= summary.workers:
        return None
    best = prediction.best_workers(summary, {w for w in rungs if w >= summary.workers})
    proof = "measured, the loader alone: " + ", ".join(f"{w} give {rate:.1f}/s" for w, rate in sorted(rungs.items()))
    if best <= summary.workers:
        return f"more workers will not help: the loop itself takes {summary.step_ms:.1f} ms per batch; {proof}"
    return f"{best} workers instead of {summary.workers} would help; {proof}"


def _abstentions(summary: Summary, named: set[str]) -> list[Abstention]:
    missing = summary.missing
    abstained: list[Abstention] = []

    def abstain(signal: str, causes: tuple[str, ...], test: str) -> None:
        if signal in missing:
            abstained.extend(Abstention(c, f"{missing[signal]}; {test}") for c in causes if c not in named)

    stage_causes = ("cpu_decode", "cpu_transform", "collate", "storage_latency")
    abstain("stages", stage_causes, "for a Feedline loader, loader.stats() has them")
    abstain("processes", ("oversubscribed", "too_few_workers"), "run longer, for a few seconds at least")
    abstain("host", ("oversubscribed", "too_few_workers", "cpu_quota"), "run longer, for a few seconds at least")
    abstain("io", ("storage_bandwidth", "small_files"), "run as the user that owns the processes")
    abstain("throttled", ("cpu_quota",), "look at cpu.stat of the container's cgroup on its host")
    abstain("pressure", ("memory_pressure",), "watch swap and major faults with vmstat 1")
    abstain("synchronising", ("loop_synchronisation",), "feedline trace on a torch.profiler trace shows them")
    if summary.loader.get("cuda"):
        test = "feedline trace on a torch.profiler trace shows copies and kernels"
        gpu = ("host_to_device", "unpinned_copy", "blocking_copy", "precision_not_reduced")
        abstained += [Abstention(cause, f"copies and kernels of the GPU are not watched; {test}") for cause in gpu]
    return abstained
