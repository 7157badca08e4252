# SPDX-License-Identifier: Apache-2.0
"""A run as its rules see it: a summary, and the shares of the loop's time that no rule has explained yet."""

from __future__ import annotations

from collections.abc import Mapping

from feedline.diagnose import fixes
from feedline.diagnose.causes import gains
from feedline.diagnose.findings import Verdict
from feedline.diagnose.model import prediction
from feedline.diagnose.summary.figures import Summary

NAMED = 0.05  # a smaller share is no cause worth a change
IDLE_LOADER = 0.10  # waiting below this: the loader is not the problem
SMALL = 0.10  # one that is never certain
UNCERTAIN = 0.85  # the most where a signal is missing
LARGE = 0.3  # a share that a busy machine does not make by itself
CROWDED = 3.0  # workers per usable CPU
EXPLAINED = 0.3  # of a hand-over's time: CPU of packing and unpacking
_FEWEST_STEPS = 20
_CPU_OF_PAGING = ("cpu_decode", "cpu_transform", "collate")
_IDLE_WORKERS, _AT_WORK = 0.5, 0.85  # shares of their time: up to the first they wait for tasks, from the second on not


class Case:
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
            confidence = min(confidence, UNCERTAIN)
            against.append("not seen: " + "; ".join(summary.missing[signal] for signal in absent))
        if summary.steps < _FEWEST_STEPS:
            confidence = min(confidence, 0.6)
            against.append(f"only {summary.steps} steps were seen")
        others = summary.host.others_cpus
        if others is not None and others > summary.host.cpus / 2 and cause != "compute_bound":
            against.append(f"other programs used {others:.1f} CPUs meanwhile")
            if share < LARGE:
                confidence = min(confidence, UNCERTAIN)
        if share < SMALL:
            confidence = min(confidence, UNCERTAIN)
        if cause in _CPU_OF_PAGING and any(verdict.cause == "memory_pressure" for verdict in self.verdicts):
            confidence = min(confidence, UNCERTAIN)
            against.append("its CPU time holds that of reading pages again")
        share = min(max(share, 0.0), 1.0)
        low, high = gain if gain is not None else gains.of_cause(cause, share, summary)
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
    if making.busy is None or making.pickle_ms + making.unpickle_ms > EXPLAINED * waited:
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
