# SPDX-License-Identifier: Apache-2.0
"""Worker processes: how many there are, when they start, and how their batches arrive."""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.causes import blocked
from feedline.diagnose.causes.case import (
    CROWDED,
    EXPLAINED,
    NAMED,
    Case,
    gain_of_workers,
    normalise,
    stage_sentence,
)
from feedline.diagnose.causes.certainty import LARGE, UNCERTAIN
from feedline.diagnose.model import prediction

_BUSY_WORKERS = 0.7
_FREE_CPUS = 0.75  # of the usable ones wanted: below, there is room for another worker
_LADDER_GAIN = 1.15  # measured with more workers: below, they do not help
_USEFUL = 0.95  # of the cycle as it is: a change that leaves more is none
_DELAYED = 0.3
_PIPE_BYTES_PER_MS = 500_000.0  # what a pipe between two processes moves at least


def nested_pool(case: Case) -> None:
    making = case.summary.making
    if not making.nested_pools:
        return
    share = case.stage_share("python", "storage")
    evidence = [f"workers made {making.nested_pools} pools of their own"]
    case.production -= share
    case.stages = {name: part for name, part in case.stages.items() if name not in ("python", "storage")}
    normalise(case)
    case.name("nested_pool", share, 0.8, evidence)


def drawing(case: Case) -> None:
    """What next() itself does in the loop's process: samplers run there, whatever the number of workers."""
    summary = case.summary
    cycle = max(prediction.current_ms(summary), 1e-9)
    share = min(summary.making.next_cpu_ms / cycle, case.handover + case.production)
    if summary.workers == 0 or summary.native or share < NAMED:
        return
    evidence = [
        f"next() itself takes {summary.making.next_cpu_ms:.1f} ms of CPU per batch in the loop's process, beside "
        "unpacking: samplers and batch samplers run there"
    ]
    case.handover, late = max(case.handover - share, 0.0), max(share - case.handover, 0.0)
    case.production -= late
    case.name("python_main_process", share, 0.9 if share >= LARGE / 2 else 0.75, evidence)


def handover(case: Case) -> None:
    summary, making = case.summary, case.summary.making
    cycle = max(prediction.current_ms(summary), 1e-9)
    counter = [] if summary.waits.packed is not None else _unseen_packing(case, cycle)
    share = case.handover
    if share < NAMED:
        return
    waited = share * cycle
    evidence = [
        f"batches were ready in a worker, and next() still waited {waited:.2f} ms each",
        f"packing takes {making.pickle_ms:.2f} ms of CPU, unpacking {making.unpickle_ms:.2f} ms, "
        f"for a message of {making.message_bytes / 1024:.1f} KiB",
    ]
    if (making.pin_ms or 0.0) > EXPLAINED * waited:
        evidence.append(f"torch's loader takes {making.pin_ms:.2f} ms to move each into page-locked memory")
    certain = not counter and case.unexplained < share / 2
    if case.unexplained >= NAMED:
        counter.append(f"for {case.unexplained:.0%} of the time more they waited, and nobody packed or unpacked them")
    fewer = prediction.fewer_workers(summary)
    gain = None if fewer is None else prediction.gain(summary, prediction.cycle_ms(summary, fewer))
    case.name("worker_handover", share, 0.92 if certain else 0.6, evidence, counter, gain)


def _unseen_packing(case: Case, cycle: float) -> list[str]:
    """Where packing and unpacking were not seen one by one, what their mean CPU leaves unexplained; in words."""
    making, host, share = case.summary.making, case.summary.host, case.handover
    delay = min(making.delayed or 0.0, 0.9)
    running = making.pickle_ms + making.unpickle_ms
    if running > EXPLAINED * share * cycle:
        return []
    if (host.others_cpus or 0.0) > host.cpus / 4 or (host.wanted_cpus or 0.0) > host.cpus:
        moving = running / (1 - delay) + making.message_bytes / _PIPE_BYTES_PER_MS
        case.unexplained = max(share - 1.5 * min(moving, 2 * running) / cycle, 0.0)
        case.handover -= case.unexplained
    return ["packing and unpacking do not take that long: the processes may have waited for CPUs"]


def startup(case: Case) -> None:
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


def border(case: Case) -> None:
    summary, share = case.summary, case.summary.waits.border
    if share < NAMED:
        return
    later = max(summary.epochs - 1, 1)
    evidence = [
        f"between epochs the loop waits {1000 * share * summary.loop_s / later:.0f} ms "
        f"longer than for other batches, {later} times"
    ]
    case.name("epoch_border", share, 0.9, evidence)


def straggler(case: Case) -> None:
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
    sure = len(evidence) > 1 and share >= LARGE / 2
    case.name("straggling_sample", share, 0.92 if sure else 0.75, evidence, needs=("samples",))


def main_process(case: Case) -> None:
    summary, host = case.summary, case.summary.host
    if summary.workers > 0 or summary.loader.get("native") or case.production < NAMED:
        return
    best = prediction.advised_workers(summary, range(1, 17))
    cycle = prediction.cycle_ms(summary, best or 1)
    waiting = case.stages.get("storage", 0.0)
    if cycle > 0.9 * (summary.step_ms + summary.making.wall_ms) and host.cpus < 2:
        return  # one CPU, all of it used: another process has none to run on
    evidence = [
        f"num_workers=0: next() makes each batch itself in {summary.wait_ms:.1f} ms, and the loop waits",
        stage_sentence(case.summary.making.stages),
    ]
    counter = [] if waiting < 0.5 else ["most of that is waiting, which threads would hide as well"]
    evidence += blocked.sentences(summary.making.waited_for if waiting >= NAMED else None)
    confidence = 0.95 if host.cpus >= 2 else 0.8
    known = "were not shown to help the loop" if prediction.some_are_better(summary) else "gained nothing just now"
    gain, against = (0.0, 0.0), [f"measured, the loader alone: workers {known}"]
    if best is not None:
        gain, against = gain_of_workers(summary, best)
    if best is None or (best in summary.rungs and cycle > _USEFUL * prediction.cycle_ms(summary, 0)):
        confidence = 0.6
    counter += against
    case.name("python_main_process", case.production, confidence, evidence, counter, gain, needs=("stages",))
    case.production = 0.0


def too_few_workers(case: Case) -> None:
    summary, making, host = case.summary, case.summary.making, case.summary.host
    share = case.stage_share("decode", "transform", "python")
    wanted = host.wanted_cpus
    if summary.workers == 0 or share < NAMED or (making.busy is not None and making.busy < _BUSY_WORKERS):
        return
    if wanted is None or wanted > _FREE_CPUS * host.cpus:
        return
    if prediction.best_workers(replace(summary, rungs={})) <= summary.workers:
        return
    evidence = [
        f"{summary.counted(summary.workers)} at work {making.busy or 0:.0%} of the time",
        f"the run wanted {wanted:.1f} of {host.cpus:.3g} CPUs: there is room for more",
    ]
    confidence = 0.92
    more = {workers: rate for workers, rate in summary.rungs.items() if workers > summary.workers}
    if more and summary.workers in summary.rungs:
        ratio = max(more.values()) / max(summary.rungs[summary.workers], 1e-9)
        if ratio < _LADDER_GAIN:
            return  # tried, and of no use: the work itself is what costs
        shown = prediction.best_workers(summary, {summary.workers, *more}) > summary.workers
        confidence = 0.95 if shown else UNCERTAIN
        measured = "" if shown else ", which their intervals leave undecided"
        evidence.append(f"measured, the loader alone: {ratio:.2f} times the batches with more{measured}")
    elif prediction.memory_is_short(host):
        return
    best = prediction.advised_workers(summary, range(summary.workers + 1, 65))
    if best is None:
        return
    gain, counter = gain_of_workers(summary, best)
    case.name("too_few_workers", share, confidence, evidence, counter, gain, needs=("stages", "processes"))
    _take_running(case)


def _take_running(case: Case) -> None:
    """Running code is explained; what is left of production is storage and collation."""
    left = {name: part for name, part in case.stages.items() if name in ("storage", "collate")}
    case.production *= sum(left.values())
    case.stages = left
    normalise(case)


def oversubscribed(case: Case) -> None:
    summary, making, host = case.summary, case.summary.making, case.summary.host
    delayed = making.delayed
    if delayed is None or delayed < _DELAYED or summary.workers < CROWDED * host.cpus:
        return
    if any(verdict.cause == "cpu_quota" for verdict in case.verdicts):
        return  # it is the quota that they wait for
    running = case.stage_share("decode", "transform", "python", "collate")
    share = running * delayed + case.unexplained
    if share < NAMED:
        return
    best = prediction.best_workers(summary, range(1, max(int(host.cpus), 1) + 1))
    evidence = [
        f"{summary.counted(summary.workers)} on {host.cpus:.3g} CPUs: ready to run, they waited {delayed:.0%} "
        "of the time",
        f"{summary.counted(best)} can use all of these CPUs",
    ]
    counter = ["fewer of them free CPUs and memory; the work itself stays"]
    case.production -= running * delayed
    case.name("oversubscribed", share, 0.92, evidence, counter, (0.0, prediction.gain_of_share(share, 0.1)[0] + 0.1))
