# SPDX-License-Identifier: Apache-2.0
"""One sample takes much longer than the others, and finished batches wait for it."""

from __future__ import annotations

import re

from feedline.diagnose.rules import gains, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Rule
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import LARGE, NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.summary.figures import Summary

STRAGGLES = Threshold(2.0, "minimum time of a straggler, relative to the mean time of samples")
_IN_ORDER_SINCE = (2, 6)  # version of torch
_WORDS = Fix(
    "Find out why that sample is slow (its size, damage, or the network). Feedline's own loader distributes samples, "
    "not batches, among threads.",
    own="in_order=False lets later batches overtake the slow one; also find out why that sample is slow (its size, "
    "damage, or the network).",
)


def _evaluate(analysis: Analysis) -> Found | None:
    making, share = analysis.summary.making, analysis.summary.waits.straggler
    if share < NAMED:
        return None
    evidence = []
    if making.slowest_sample_ms is not None and making.sample_ms:
        evidence.append(
            f"sample {making.slowest_sample} took {making.slowest_sample_ms:.0f} ms, "
            f"but the mean is {making.sample_ms:.2f} ms"
        )
    evidence.append("later batches were ready and waited for this sample")
    # a worker's own sending thread can occasionally delay a sample, too
    sure = len(evidence) > 1 and share >= LARGE / 2
    return Found(share, 0.92 if sure else 0.75, evidence, needs=("samples",))


def _fix(summary: Summary) -> str:
    if not summary.native and _takes_in_order(summary):
        return f"{_WORDS(summary)} in_order=False lets later batches overtake the slow one."
    return _WORDS(summary)


def _takes_in_order(summary: Summary) -> bool:
    """Whether DataLoader has this argument in the script's version of torch."""
    version = re.match(r"(\d+)\.(\d+)", str(summary.loader.get("torch") or ""))
    return version is None or tuple(map(int, version.groups())) >= _IN_ORDER_SINCE


def _no_slow_sample(summary: Summary, _share: float) -> str | None:
    making = summary.making
    if making.slowest_sample_ms is None or not making.sample_ms:
        return None
    if making.slowest_sample_ms >= STRAGGLES * making.sample_ms:
        return None
    return f"the slowest sample took {making.slowest_sample_ms:.1f} ms, but the mean is {making.sample_ms:.1f} ms"


CAUSE = Cause(
    Entry(
        code="straggling_sample",
        verb="diagnose",
        title="one sample among many takes much longer than the others, and finished batches wait for it",
        means="Batches are delivered in order. While one worker processes a slow sample, the others finish "
        "their batches, fill their prefetch queues, and stop.",
        recognised="A batch takes more than 3 times as long as usual, mostly due to one sample. In a "
        "stream, the sample "
        "must use CPU, "
        "because waits in a stream are for opening the next file.",
        to_do="Examine the reported sample. If the order does not matter, let later batches overtake the slow one.",
        abstains="Single samples were not observed, for example in native threads.",
        example="sample 7 took 400 ms, but the mean is 0.60 ms; later batches were ready and waited for this sample.",
    ),
    rules=(Rule(150, _evaluate),),
    fix=_fix,
    gain=gains.of_share,
    signals=(signals.WORKERS, signals.SAMPLES),
    contradicted={"no sample is slow": _no_slow_sample},
)
