# SPDX-License-Identifier: Apache-2.0
"""General limits on the certainty of causes, independent of the causes' rules."""

from __future__ import annotations

from feedline.diagnose.rules.cause import Claim, Limit
from feedline.diagnose.rules.shares import DOUBTFUL, LARGE, UNCERTAIN
from feedline.findings import Threshold

FEWEST_STEPS = Threshold(20, "minimum number of steps for a conclusive result")
SMALL = Threshold(
    0.15,
    "share of the time above which a finding can be certain: shares of the same script vary by about 0.05 between "
    "runs, and so does the unexplained share",
)
DEAR = Threshold(0.05, "share of the time spent on profiling above which the measurement may mainly show the overhead")
CPU_OF_PAGING = "the CPU time of this cause includes that of rereading pages"
READS_OF_PAGING = "some reads may be of pages that the kernel had evicted because memory was short"
# Without these signals, any finding may have another reason.
_ALWAYS = ("host", "consumer", "recording")


def limited(claim: Claim, confidence: float) -> tuple[float, list[str]]:
    """Returns the limited confidence and the reasons for limits."""
    against = []
    for limit in (*LIMITS.values(), *claim.cause.limits.values()):
        reason = limit.reason(claim)
        if reason is not None:
            confidence = min(confidence, limit.most)
            against += [reason] if reason else []
    return confidence, against


def _unseen(claim: Claim) -> str | None:
    missing = claim.summary.missing
    absent = [signal for signal in dict.fromkeys((*claim.needs, *_ALWAYS)) if signal in missing]
    return "not seen: " + "; ".join(missing[signal] for signal in absent) if absent else None


def _few_steps(claim: Claim) -> str | None:
    steps = claim.summary.loop.steps
    return f"only {steps} steps were observed" if steps < FEWEST_STEPS else None


def others_cpus(claim: Claim) -> str | None:
    """Describes the CPU use of other programs if it is high."""
    host = claim.summary.host
    if not host.contended or not claim.cause.minds_others:
        return None
    return f"other programs used {host.sharing * (host.others_cpus or 0.0):.1f} CPUs at the same time"


def _busy_machine(claim: Claim) -> str | None:
    return others_cpus(claim) if claim.share < LARGE else None


def _small(claim: Claim) -> str | None:
    return "" if claim.share < SMALL else None


def _paging(claim: Claim) -> str | None:
    return claim.cause.paging_instead or None if "memory_pressure" in claim.before else None


def _dear(claim: Claim) -> str | None:
    cost = claim.summary.profiling.overhead_share
    return f"profiling itself took {cost:.0%} of the time" if cost is not None and cost > DEAR else None


# Limits of every cause; those of a single cause are in its file.
LIMITS = {
    "a signal is missing": Limit(UNCERTAIN, _unseen),
    "few steps": Limit(DOUBTFUL, _few_steps),
    "a busy machine": Limit(UNCERTAIN, _busy_machine),
    "a small share": Limit(UNCERTAIN, _small),
    "CPU time under memory pressure": Limit(UNCERTAIN, _paging),
    "profiling was expensive": Limit(UNCERTAIN, _dear),
}
