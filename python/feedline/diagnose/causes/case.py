# SPDX-License-Identifier: Apache-2.0
"""A run as its rules see it: a summary, and the shares of the loop's time that no rule has explained yet."""

from __future__ import annotations

from collections.abc import Mapping

from feedline.diagnose import fixes
from feedline.diagnose.causes import contradictions, gains
from feedline.diagnose.causes.certainty import Claim, limited, others_cpus
from feedline.diagnose.findings import Verdict
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Summary

NAMED = 0.05  # a smaller share is no cause worth a change
IDLE_LOADER = 0.10  # waiting below this: the loader is not the problem
CROWDED = 3.0  # workers per usable CPU
EXPLAINED = 0.3  # of a hand-over's time: CPU of packing and unpacking
_UNEVEN = 2.0
_IDLE_WORKERS, _AT_WORK = 0.5, 0.85  # shares of their time: up to the first they wait for tasks, from the second on not


class Case:
    """A summary, the shares that no rule has explained yet, and the verdicts so far."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self.production = max(summary.waits.production, 0.0)
        self.step = max(summary.waits.step, 0.0)
        self.handover = max(summary.waits.handover, 0.0)
        self.unexplained = 0.0  # waiting for a batch that was made, while nobody packed or unpacked it
        self.stretched = 0.0  # of `handover`: while it was packed or unpacked, without a CPU
        self.verdicts: list[Verdict] = []
        stages = summary.making.stages
        self.stages = dict(stages) if stages else {}
        self._divide_handover()

    def _divide_handover(self) -> None:
        """Into packing and unpacking, the making of later batches that it gave way to, and what is left."""
        packed, cpu = self.summary.waits.packed, self.summary.waits.packed_cpu
        work = 0.0 if packed is None else min(packed, self.handover)
        late = self.handover - work
        hidden = late * _hidden_by_work(self.summary)
        self.production += hidden
        if packed is None:
            self.handover -= hidden
        else:
            self.handover, self.unexplained = work, late - hidden
            self.stretched = work - min(work if cpu is None else cpu, work)

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
        claim = Claim(summary, cause, share, needs, tuple(verdict.cause for verdict in self.verdicts))
        confidence, reasons = limited(claim, confidence)
        contradicted = contradictions.against(summary, cause, share)
        against = [*(counter or []), *reasons, *contradicted]
        busy = others_cpus(claim)
        if busy is not None and busy not in against:
            against.append(busy)
        share = min(max(share, 0.0), 1.0)
        low, high = gain if gain is not None else gains.of_cause(cause, share, summary)
        if contradicted:
            confidence = min(confidence, contradictions.MOST)
        if contradicted or "consumer" in summary.missing:
            low = 0.0
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


def gain_of_workers(summary: Summary, workers: int) -> tuple[tuple[float, float], list[str]]:
    """The gain of so many workers, and what speaks against it."""
    low, high = prediction.gain(summary, prediction.cycle_ms(summary, workers))
    if not summary.loader.get("iterable") or workers in summary.rungs:
        return (low, high), []
    counter = ["an IterableDataset divides its samples itself: more workers may have none to read, or read them twice"]
    fewest, most = summary.making.fewest, summary.making.most
    if fewest is not None and most is not None and most >= _UNEVEN * max(fewest, 1):
        counter.append(f"one worker made {most} batches, another {fewest}, and had nothing left to do")
    return (0.0, high), counter


def _hidden_by_work(summary: Summary) -> float:
    """Share of a finished batch's lateness that no faster hand-over would save: the workers make batches all the while.

    A worker's thread that sends a batch shares the interpreter with the next batch's Python, so a finished batch may
    arrive a whole batch late, every time; how many arrive per second is up to the making alone.
    """
    making = summary.making
    waited = summary.waits.handover * prediction.current_ms(summary)
    unseen = summary.waits.packed is None  # then the packing may be all of it
    if making.busy is None or (unseen and making.pickle_ms + making.unpickle_ms > EXPLAINED * waited):
        return 0.0
    return min(max((making.busy - _IDLE_WORKERS) / (_AT_WORK - _IDLE_WORKERS), 0.0), 1.0)


def normalise(case: Case) -> None:
    whole = sum(case.stages.values())
    case.stages = {name: part / whole for name, part in case.stages.items()} if whole > 0 else {}


def stage_sentence(stages: Mapping[str, float] | None) -> str:
    if not stages:
        return "how that divides among reading, decoding and transforms was not seen"
    words = {"storage": "waiting", "python": "own code"}
    parts = [f"{words.get(name, name)} {share:.0%}" for name, share in sorted(stages.items(), key=lambda s: -s[1])]
    return "of it: " + ", ".join(parts)
