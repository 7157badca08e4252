# SPDX-License-Identifier: Apache-2.0
"""Batches are made, and travel slowly from the worker to the loop."""

from __future__ import annotations

from feedline.diagnose.judging import gains, signals
from feedline.diagnose.judging.case import Case
from feedline.diagnose.judging.cause import Cause, Claim, Found, Gain, Limit, Rule
from feedline.diagnose.judging.fixes import Fix, with_workers
from feedline.diagnose.judging.shares import DOUBTFUL, EXPLAINED, LARGE, NAMED
from feedline.findings import Entry, Threshold
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Summary

PIPE_BYTES_PER_MS = Threshold(500_000.0, "what a pipe between two processes moves at least")
MUCH_LONGER = Threshold(1.5, "times the packing and unpacking: what a full machine stretches them to")
MOST_DELAYED = Threshold(0.9, "of the time without a CPU: more is counted as this")
HANDED = Threshold(0.1, "of the waiting: what handing over the same batch took by itself")
OBJECTS = Threshold(16384, "bytes of a message: smaller ones say where tensors lie, and hold no objects to free")
MOST_FREED = Threshold(1 / 3, "of what is left of a cycle, for freeing objects: more would be a guess")
_WORDS = Fix(
    "Send fewer Python objects: tensors or NumPy arrays instead of lists, dicts and strings per sample; "
    "feedline.DataLoader hands arrays over without pickling."
)


def _books(case: Case) -> Found | None:
    summary, making = case.summary, case.summary.making
    cycle = max(prediction.current_ms(summary), 1e-9)
    against = [] if summary.waits.packed is not None else _unseen_packing(case, cycle)
    share = case.handover
    if share < NAMED:
        return None
    waited = share * cycle
    evidence = [
        f"batches were ready in a worker, and next() still waited {waited:.2f} ms each",
        f"packing takes {making.pickle_ms:.2f} ms of CPU, unpacking {making.unpickle_ms:.2f} ms, "
        f"for a message of {making.message_bytes / 1024:.1f} KiB",
    ]
    if (making.pin_ms or 0.0) > EXPLAINED * waited:
        evidence.append(f"torch's loader takes {making.pin_ms:.2f} ms to move each into page-locked memory")
    certain = not against and case.unexplained < share / 2
    if case.unexplained >= NAMED:
        against.append(f"for {case.unexplained:.0%} of the time more they waited, and nobody packed or unpacked them")
    fewer = prediction.fewer_workers(summary)
    gain = None if fewer is None else prediction.gain(summary, prediction.cycle_ms(summary, fewer))
    return Found(share, 0.92 if certain else 0.6, evidence, against, gain)


def _unseen_packing(case: Case, cycle: float) -> list[str]:
    """Where packing and unpacking were not seen one by one, what their mean CPU leaves unexplained; in words."""
    making, host, share = case.summary.making, case.summary.host, case.handover
    delay = min(making.delayed or 0.0, MOST_DELAYED)
    running = making.pickle_ms + making.unpickle_ms
    if running > EXPLAINED * share * cycle:
        return []
    if (host.others_cpus or 0.0) > host.cpus / 4 or (host.wanted_cpus or 0.0) > host.cpus:
        moving = running / (1 - delay) + making.message_bytes / PIPE_BYTES_PER_MS
        case.unexplained = max(share - MUCH_LONGER * min(moving, 2 * running) / cycle, 0.0)
        case.handover -= case.unexplained
    return ["packing and unpacking do not take that long: the processes may have waited for CPUs"]


def _gain(summary: Summary, share: float) -> Gain:
    """Batches arrive at once. Objects that were unpacked are freed too, in the step, for as much CPU at most."""
    low, high = gains.of_share(summary, share)
    if summary.making.message_bytes < OBJECTS:
        return low, high
    unpacking = prediction.batch_of(summary).unpacking
    freed = min(summary.loop.step_cpu_ms, unpacking) / max(prediction.current_ms(summary), 1e-9)
    left = 1.0 - share / (1.0 - gains.first_start(summary))
    return low, gains.of_share(summary, share + min(freed, MOST_FREED * left))[1]


def _handing_is_cheap(summary: Summary, share: float) -> str | None:
    making = summary.making
    if making.sent_ms is None or making.received_ms is None:
        return None
    waited = share * 1000 * summary.loop.loop_s / max(summary.loop.steps, 1)
    took = making.sent_ms + making.received_ms + (making.exchange_ms or 0.0)
    if took >= HANDED * waited:
        return None
    return f"measured: handing over a batch by itself takes {took:.2f} ms, and the loop waits {waited:.2f} ms for it"


def _small(claim: Claim) -> str | None:
    cpu = claim.summary.waits.packed_cpu  # a full machine stretches the rest
    return "" if min(claim.share, claim.share if cpu is None else cpu) < LARGE else None


CAUSE = Cause(
    Entry(
        code="worker_handover",
        verb="diagnose",
        title="batches are made and travel slowly: many Python objects, pickled and unpickled",
        means="What a worker returns is pickled, sent through a pipe and unpickled in the loop's process. Tensors and "
        "arrays go as a name in shared memory; lists, dicts and strings go object by object.",
        recognised="Packing in that worker, and CPU inside `next()`, during waits after the batch was made. What else "
        "a finished batch waits for, a CPU or a wake-up, is not counted: fewer objects would not shorten it.",
        to_do="Return tensors or arrays; or fewer workers, where fewer were measured to make the loop faster.",
        abstains="Nothing of the workers was seen.",
        example="packing takes 4.00 ms of CPU, unpacking 4.00 ms, for a message of 488.3 KiB.",
    ),
    rules=(Rule(80, _books),),
    fix=lambda summary: with_workers(prediction.fewer_workers(summary), _WORDS(summary)),
    gain=_gain,
    workers=prediction.fewer_workers,
    signals=(signals.WORKERS,),
    contradicted={"handing over is quick": _handing_is_cheap},
    limits={"a small hand-over": Limit(DOUBTFUL, _small)},
    collects_garbage=True,
)
