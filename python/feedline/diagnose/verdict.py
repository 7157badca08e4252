# SPDX-License-Identifier: Apache-2.0
"""From a summary to causes: a pure function. docs/diagnose.md explains each cause to users.

Each rule books a share of the loop's time under one name, so shares never sum to more than 1. ``confidence`` is 0 to 1;
0.9 and above is a certain verdict, which needs every signal that could speak against it.
"""

from __future__ import annotations

from feedline.diagnose import rungs_told
from feedline.diagnose.causes import RULES, WITHOUT_WORKERS, gpu
from feedline.diagnose.causes.case import NAMED, Case
from feedline.diagnose.findings import CAUSES, Abstention, Diagnosis, Verdict
from feedline.diagnose.more_workers import more_workers
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Summary

__all__ = ["CAUSES", "CERTAIN", "Abstention", "Diagnosis", "Verdict", "judge"]

CERTAIN = 0.9


def judge(summary: Summary | None) -> Diagnosis:
    """The causes of a run's time. None: no loop was seen, and everything is abstained from."""
    if summary is None or summary.steps == 0:
        missing = "no training loop over a DataLoader or a Feedline loader was seen; see the notes"
        return Diagnosis(abstained=[Abstention(cause, missing) for cause in CAUSES])
    case = Case(prediction.comparable(summary))
    for rule in WITHOUT_WORKERS if "workers" in summary.missing else RULES:
        rule(case)
    named = sorted((v for v in case.verdicts if v.share >= NAMED), key=lambda v: -v.share)
    _tell_of_garbage(summary, named)
    abstained = _abstentions(summary, {v.cause for v in named})
    return Diagnosis(named, abstained, more_workers(summary, named), rungs_told.of_drop_in(summary))


def _tell_of_garbage(summary: Summary, named: list[Verdict]) -> None:
    """Collections are a part of whatever makes the objects that set them off, and have a remedy of their own."""
    garbage = summary.garbage
    if garbage is None or garbage.share is None or garbage.share < NAMED or not named:
        return
    where = next((v for v in named if v.cause in _COLLECTS), named[0])
    where.evidence.append(
        f"{garbage.collections} full collections of Python's garbage, {garbage.each_ms:.0f} ms each, are "
        f"{garbage.share:.0%} of the time: gc.freeze() before the loop spares them what was made before it"
    )


_COLLECTS = ("worker_handover", "python_main_process")  # where next() itself makes objects

# What is judged by what the workers, or the threads in their place, were seen to do.
_OF_WORKERS = (
    "python_main_process",
    "worker_handover",
    "too_few_workers",
    "oversubscribed",
    "worker_startup",
    "epoch_border",
    "straggling_sample",
    "straggling_rank",
    "nested_pool",
    "cpu_decode",
    "cpu_transform",
    "collate",
    "storage_latency",
    "storage_bandwidth",
    "small_files",
    "blocked_outside_files",
)


def _abstentions(summary: Summary, named: set[str]) -> list[Abstention]:
    missing, told = summary.missing, set(named)
    abstained: list[Abstention] = []

    def abstain(signal: str, causes: tuple[str, ...], test: str) -> None:
        if signal in missing:
            abstained.extend(Abstention(c, f"{missing[signal]}; {test}") for c in causes if c not in told)

    abstain("workers", _OF_WORKERS, "the notes may say why, and the ladder measures the loader alone")
    told |= set(_OF_WORKERS) if "workers" in missing else set()
    stage_causes = ("cpu_decode", "cpu_transform", "collate", "storage_latency", "blocked_outside_files")
    abstain("stages", stage_causes, "time the data set's own code, or run the loop longer")
    abstain("samples", ("straggling_sample",), "feedline.profile() puts every sample on a time line")
    abstain("processes", ("oversubscribed", "too_few_workers"), "run longer, for a few seconds at least")
    of_counters = ("oversubscribed", "too_few_workers", "cpu_quota", "memory_pressure", "shared_memory_limit")
    abstain("host", of_counters, "run longer, for a few seconds at least")
    abstain("io", ("storage_bandwidth", "small_files"), "run as the user that owns the processes")
    abstain("disk", ("storage_bandwidth",), "run without --quick")
    abstain("throttled", ("cpu_quota",), "look at cpu.stat of the container's cgroup on its host")
    abstain("pressure", ("memory_pressure",), "watch swap and major faults with vmstat 1")
    abstain("synchronising", ("loop_synchronisation",), "feedline trace on a torch.profiler trace shows them")
    return abstained + gpu.abstentions(summary, named)
