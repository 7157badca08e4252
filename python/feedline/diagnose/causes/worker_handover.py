# SPDX-License-Identifier: Apache-2.0
"""Finished batches take too long to reach the loop."""

from __future__ import annotations

from feedline.diagnose.rules import gains, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Claim, Found, Gain, Limit, Rule
from feedline.diagnose.rules.fixes import Fix, drop_in_may_help, with_workers
from feedline.diagnose.rules.shares import DOUBTFUL, EXPLAINED, LARGE, NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary

PIPE_BYTES_PER_MS = Threshold(500_000.0, "minimum throughput of a pipe between two processes in bytes per ms")
MUCH_LONGER = Threshold(
    1.5, "maximum time of passing a batch on a fully loaded machine, relative to the time of pickling and unpickling"
)
MOST_DELAYED = Threshold(
    0.9, "maximum share of the time that is attributed to waits for a CPU; longer waits are attributed to this cause"
)
HANDED = Threshold(
    0.1,
    "time of passing the same batch without other work, as a fraction of the waiting time, below which the "
    "measurement contradicts the cause",
)
OBJECTS = Threshold(16384, "minimum bytes of a message with objects to free; smaller messages only refer to tensors")
MOST_FREED = Threshold(1 / 3, "maximum fraction of the remaining cycle time that is attributed to freeing objects")
_WORDS = Fix(
    "Send fewer Python objects: tensors or NumPy arrays instead of lists, dicts and strings per sample; "
    "feedline.DataLoader passes arrays without pickling.",
    without_drop_in="Send fewer Python objects: tensors or NumPy arrays instead of lists, dicts and strings.",
)

_FEW_OBJECTS = Fix(
    "Use larger batches: the message only names tensors in shared memory, and each batch has a fixed cost for its "
    "files and descriptors. feedline.DataLoader passes arrays without a file for each.",
    without_drop_in="Use larger batches: the message only names tensors in shared memory, and each batch has a fixed "
    "cost for its files and descriptors.",
)


def _evaluate(analysis: Analysis) -> Found | None:
    summary, making = analysis.summary, analysis.summary.making
    cycle = max(prediction.current_ms(summary), 1e-9)
    against = [] if summary.waits.packed is not None else _unseen_packing(analysis, cycle)
    share = analysis.handover
    if share < NAMED:
        return None
    waited = share * cycle
    evidence = [
        f"batches were ready in a worker, but next() still waited {waited:.2f} ms for each",
        f"pickling takes {making.pickle_ms:.2f} ms of CPU, unpickling {making.unpickle_ms:.2f} ms, "
        f"for a message of {making.message_bytes / 1024:.1f} KiB",
    ]
    if (making.pin_ms or 0.0) > EXPLAINED * waited:
        evidence.append(f"torch's loader takes {making.pin_ms:.2f} ms to copy each batch into page-locked memory")
    certain = not against and analysis.unexplained < share / 2
    if analysis.unexplained >= NAMED:
        against.append(
            f"for another {analysis.unexplained:.0%} of the time, batches waited without being pickled or unpickled"
        )
    fewer = prediction.fewer_workers(summary)
    gain = None if fewer is None else prediction.gain(summary, prediction.cycle_ms(summary, fewer))
    return Found(share, 0.92 if certain else 0.6, evidence, against, gain)


def _unseen_packing(analysis: Analysis, cycle: float) -> list[str]:
    """Excludes hand-over time that packing and unpacking do not explain, and returns a sentence about it."""
    making, host, share = analysis.summary.making, analysis.summary.host, analysis.handover
    delay = min(making.delayed or 0.0, MOST_DELAYED)
    running = making.pickle_ms + making.unpickle_ms
    if running > EXPLAINED * share * cycle:
        return []
    if (host.others_cpus or 0.0) > host.cpus / 4 or (host.wanted_cpus or 0.0) > host.cpus:
        moving = running / (1 - delay) + making.message_bytes / PIPE_BYTES_PER_MS
        analysis.unexplained = max(share - MUCH_LONGER * min(moving, 2 * running) / cycle, 0.0)
        analysis.handover -= analysis.unexplained
    return ["pickling and unpickling take less time, so the processes may have waited for CPUs"]


def _gain(summary: Summary, share: float) -> Gain:
    """Returns the gain if batches arrive immediately. The upper bound also includes the time that the step spends
    freeing unpickled objects.
    """
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
    return f"measured: passing a batch without other work takes {took:.2f} ms, but the loop waits {waited:.2f} ms"


def _words(summary: Summary) -> str:
    return _WORDS(summary) if summary.making.message_bytes >= OBJECTS else _FEW_OBJECTS(summary)


def _small(claim: Claim) -> str | None:
    cpu = claim.summary.waits.packed_cpu  # the rest is due to a fully loaded machine
    return "" if min(claim.share, claim.share if cpu is None else cpu) < LARGE else None


CAUSE = Cause(
    Entry(
        code="worker_handover",
        verb="diagnose",
        title="pickling and unpickling of many Python objects delays batches",
        means="A worker's result is pickled, sent through a pipe and unpickled in the loop's process. Tensors and "
        "arrays are passed by name in shared memory; lists, dicts and strings are pickled object by object.",
        recognised="Measures pickling in the worker and CPU time in `next()` while the loop waits for a "
        "finished batch. "
        "Waits of a finished batch for a CPU or a wake-up are not counted: fewer objects would not shorten "
        "them.",
        to_do="Return tensors or arrays, or use fewer workers if these were measured to make the loop faster.",
        abstains="The workers were not observed.",
        example="pickling takes 4.00 ms of CPU, unpickling 4.00 ms, for a message of 488.3 KiB.",
    ),
    rules=(Rule(80, _evaluate),),
    fix=lambda summary: with_workers(prediction.fewer_workers(summary), _words(summary)),
    gain=_gain,
    drop_in=drop_in_may_help,
    workers=prediction.fewer_workers,
    signals=(signals.WORKERS,),
    contradicted={"batches are passed quickly": _handing_is_cheap},
    limits={"the share of the time is small": Limit(DOUBTFUL, _small)},
    collects_garbage=True,
)
