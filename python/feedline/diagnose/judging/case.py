# SPDX-License-Identifier: Apache-2.0
"""A run as its rules see it: a summary, and the shares of the loop's time that no rule has explained yet."""

from __future__ import annotations

from collections.abc import Mapping

from feedline.diagnose.judging.shares import EXPLAINED
from feedline.findings import Finding
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Summary

_UNEVEN = 2.0  # times the batches of one worker, by another
_IDLE_WORKERS, _AT_WORK = 0.5, 0.85  # shares of their time: up to the first they wait for tasks, from the second on not


class Case:
    """A summary, the shares that no rule has explained yet, and the findings so far."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self.production = max(summary.waits.production, 0.0)
        self.step = max(summary.waits.step, 0.0)
        self.handover = max(summary.waits.handover, 0.0)
        self.unexplained = 0.0  # waiting for a batch that was made, while nobody packed or unpacked it
        self.stretched = 0.0  # of `handover`: while it was packed or unpacked, without a CPU
        self.reading_is_taken = False  # by one of the causes of reading.py
        self.outside_is_taken = False  # what was waited for outside of files
        self.findings: list[Finding] = []
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

    def normalise(self) -> None:
        """The stages that are left are all that is left of production."""
        whole = sum(self.stages.values())
        self.stages = {name: part / whole for name, part in self.stages.items()} if whole > 0 else {}

    def take_waiting(self, share: float) -> None:
        """A stopped task waits without CPU, as one that reads does: the share is taken from there first."""
        waiting = self.stage_share("storage")
        left = {name: part * self.production for name, part in self.stages.items()}
        if waiting > 0:
            left["storage"] = max(waiting - share, 0.0)
        self.production = max(self.production - share, 0.0)
        self.stages = left
        self.normalise()

    def take_stages(self, *names: str) -> float:
        """Takes these stages off production; the share that they had of the time."""
        share = self.stage_share(*names)
        self.production -= share
        self.stages = {name: part for name, part in self.stages.items() if name not in names}
        self.normalise()
        return share

    def keep_stages(self, *names: str) -> None:
        """All of production but these stages is explained."""
        left = {name: part for name, part in self.stages.items() if name in names}
        self.production *= sum(left.values())
        self.stages = left
        self.normalise()

    def named(self, code: str) -> bool:
        """Whether this cause was found already."""
        return any(finding.code == code for finding in self.findings)


def gain_of_workers(summary: Summary, workers: int) -> tuple[tuple[float, float], list[str]]:
    """The gain of so many workers, and what speaks against it."""
    low, high = prediction.gain(summary, prediction.cycle_ms(summary, workers))
    if not summary.loader.get("iterable") or workers in summary.ladder.rungs:
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


def stage_sentence(stages: Mapping[str, float] | None) -> str:
    if not stages:
        return "how that divides among reading, decoding and transforms was not seen"
    words = {"storage": "waiting", "python": "own code"}
    parts = [f"{words.get(name, name)} {share:.0%}" for name, share in sorted(stages.items(), key=lambda s: -s[1])]
    return "of it: " + ", ".join(parts)
