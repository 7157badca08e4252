# SPDX-License-Identifier: Apache-2.0
"""Defines a cause. Each file in `feedline.diagnose.causes` creates one cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from feedline.diagnose.rules import signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.signals import Signal
from feedline.findings import Abstention, Entry
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary

Gain = tuple[float, float]  # [low, high], relative gain in batches per second


@dataclass(frozen=True)
class Found:
    """The result of a rule.

    Attributes:
        share: share of the loop's time.
        confidence: 0 to 1, before limits are applied.
        evidence: sentences.
        against: sentences with evidence against the cause.
        gain: relative gain in batches per second; None to use the cause's own `gain`.
        needs: names of signals that could contradict the finding; if one is missing, the finding is uncertain.
    """

    share: float
    confidence: float
    evidence: list[str]
    against: list[str] = field(default_factory=list)
    gain: Gain | None = None
    needs: tuple[str, ...] = ()


class Rule(NamedTuple):
    """A rule; rules are evaluated in order of `priority`, and the first one that explains some of the time claims
    it.
    """

    priority: int
    evaluate: Callable[[Analysis], Found | None]  # subtracts the time that it explains; None if it does not apply


class Claim(NamedTuple):
    """A rule's finding before its confidence is limited."""

    summary: Summary
    cause: Cause
    share: float
    needs: tuple[str, ...]  # signals that could contradict it
    before: tuple[str, ...]  # codes of the causes found before


class Limit(NamedTuple):
    most: float
    reason: Callable[[Claim], str | None]  # the reason, "" if the share is one, None if it does not apply


def _half_to_all(_summary: Summary, share: float) -> Gain:
    return prediction.gain_of_share(share)


@dataclass(frozen=True)
class Cause:
    """A cause.

    Attributes:
        page: printed by ``feedline explain``, except for the thresholds, which come from the file's constants.
        rules: usually one.
        fix: returns what to change in this run, in one or two sentences.
        gain: computes the gain from removing only this cause, from a summary and the cause's share.
        workers: the number of workers to change to; None if the fix is a different change.
        settings: other loader arguments to change; None if no argument applies.
        signals: the signals required to judge the cause. If `signals` includes :data:`signals.WORKERS`, the rules are
            evaluated only if the workers were observed.
        unseen: returns why the cause could not be judged in this run, apart from missing signals; None if it could be.
        contradicted: functions, by name, that return a sentence about a contradicting measurement, or None.
        limits: additional limits, by name, on the certainty of this cause.
        paging_instead: an alternative explanation of the time, used after memory pressure was found; "" if none.
        collects_garbage: the cause creates objects in the loop's process, so full garbage collections are reported with
        it.
        minds_others: whether CPU use by other programs is evidence against the cause.
        drop_in: returns whether Feedline's DataLoader may remove the cause in this run.
        is_fault: whether the loader has a problem to fix; otherwise the finding is a note, whatever its share of the
        time.
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
    paging_instead: str = ""
    collects_garbage: bool = False
    minds_others: bool = True
    drop_in: Callable[[Summary], bool] = lambda _summary: False
    is_fault: bool = True

    @property
    def code(self) -> str:
        return self.page.code

    @property
    def of_workers(self) -> bool:
        """Whether judging the cause requires observing the workers."""
        return signals.WORKERS in self.signals

    def change(self, summary: Summary) -> dict[str, Any] | None:
        """Returns the loader arguments that make the change, or None."""
        workers = self.workers(summary)
        return self.settings(summary) if workers is None else {"num_workers": workers}

    def abstentions(self, summary: Summary) -> Iterator[Abstention]:
        """Yields the reasons why the cause could not be judged."""
        for signal in self.signals:
            if signal.name in summary.missing:
                yield Abstention(self.code, f"{summary.missing[signal.name]}; {signal.test}")
                if signal == signals.WORKERS:  # the workers were not observed, so no other signal is worth reporting
                    return
        why = self.unseen(summary)
        if why is not None:
            yield Abstention(self.code, why)
