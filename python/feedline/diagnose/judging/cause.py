# SPDX-License-Identifier: Apache-2.0
"""The shape of a cause: everything that is known of it. Each file of `feedline.diagnose.causes` makes one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from feedline.diagnose.judging import signals
from feedline.diagnose.judging.case import Case
from feedline.diagnose.judging.signals import Signal
from feedline.findings import Abstention, Entry
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Summary

Gain = tuple[float, float]  # [low, high], share more batches per second


@dataclass(frozen=True)
class Found:
    """What a rule found.

    Attributes:
        share: of the loop's time.
        confidence: 0 to 1, before what limits it.
        evidence: sentences.
        against: sentences.
        gain: share more batches per second; None: what the cause's own `gain` says.
        needs: names of signals that could speak against it; where one is missing it is not certain.
    """

    share: float
    confidence: float
    evidence: list[str]
    against: list[str] = field(default_factory=list)
    gain: Gain | None = None
    needs: tuple[str, ...] = ()


class Rule(NamedTuple):
    """Rules are asked by their turns; the first that explains time takes it."""

    turn: int
    books: Callable[[Case], Found | None]  # takes what it explains off the case; None: it is not this cause


class Claim(NamedTuple):
    """What a rule has found."""

    summary: Summary
    cause: Cause
    share: float
    needs: tuple[str, ...]  # signals that could speak against it
    before: tuple[str, ...]  # codes of causes that were named already


class Limit(NamedTuple):
    most: float
    speaks: Callable[[Claim], str | None]  # why, in words; "" where the share says it; None: nothing


def _half_to_all(_summary: Summary, share: float) -> Gain:
    return prediction.gain_of_share(share)


@dataclass(frozen=True)
class Cause:
    """A cause.

    Attributes:
        page: what ``feedline explain`` prints, without the thresholds, which the file's constants give.
        rules: mostly one.
        fix: what to change in this run, in one or two sentences.
        gain: what it would give if it were gone and all else stayed, of a summary and its share.
        workers: the number of workers that is the change to make; None: another change is.
        settings: the loader's arguments that are the change to make, beside their number; None: no argument is.
        signals: without one of these it is abstained from. With :data:`signals.WORKERS` among them its rules are not
            asked where nothing of the workers was seen.
        unseen: why it could not be judged in this run, where that is more than a missing signal; None: it could.
        contradicted: by name, what was measured and speaks against it: a sentence, or None.
        limits: by name, what keeps it from being certain beside what keeps every cause from it.
        beside_paging: what else its time may be where memory is short too; "": nothing.
        collects_garbage: it makes objects in the loop's process, so full collections of garbage are told with it.
        minds_others: other programs' work speaks against it.
        is_fault: something in the loader is to be mended; else it is a note, however much of the time it takes.
    """

    page: Entry
    rules: tuple[Rule, ...]
    fix: Callable[[Summary], str]
    gain: Callable[[Summary, float], Gain] = _half_to_all
    workers: Callable[[Summary], int | None] = lambda _summary: None
    settings: Callable[[Summary], dict[str, Any] | None] = lambda _summary: None
    signals: tuple[Signal, ...] = ()
    unseen: Callable[[Summary], str | None] = lambda _summary: None
    contradicted: Mapping[str, Callable[[Summary, float], str | None]] = field(default_factory=dict)
    limits: Mapping[str, Limit] = field(default_factory=dict)
    beside_paging: str = ""
    collects_garbage: bool = False
    minds_others: bool = True
    is_fault: bool = True

    @property
    def code(self) -> str:
        return self.page.code

    @property
    def of_workers(self) -> bool:
        """Whether it is judged by what makes the batches."""
        return signals.WORKERS in self.signals

    def change(self, summary: Summary) -> dict[str, Any] | None:
        """The loader's arguments that express the change; None: none do."""
        workers = self.workers(summary)
        return self.settings(summary) if workers is None else {"num_workers": workers}

    def abstentions(self, summary: Summary) -> Iterator[Abstention]:
        """Why it could not be judged."""
        for signal in self.signals:
            if signal.name in summary.missing:
                yield Abstention(self.code, f"{summary.missing[signal.name]}; {signal.test}")
                if signal == signals.WORKERS:  # of what they did nothing was seen, so no other signal is worth a word
                    return
        why = self.unseen(summary)
        if why is not None:
            yield Abstention(self.code, why)
