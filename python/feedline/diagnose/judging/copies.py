# SPDX-License-Identifier: Apache-2.0
"""Copies to the device, of three kinds, each a cause of its own.

A copy holds up the stream that it is made on, and what computes there waits: its time there, by the device's own
events, is lost whether or not the host waits too. The host's time in the call is not: it may be waiting for earlier
kernels, which are needed anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

from feedline.diagnose.judging.case import Case
from feedline.diagnose.judging.cause import Found
from feedline.diagnose.judging.shares import DOUBTFUL, IDLE_LOADER, NAMED, UNCERTAIN
from feedline.findings import Threshold
from feedline.watching.experiments import LOCKED, OWN
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Copies, Summary

FEWEST_TIMED = Threshold(10, "copies, for their time to be more than an impression")
TRACE = "feedline trace on a torch.profiler trace shows it"


@dataclass(frozen=True)
class Kind:
    """Copies of one kind, and what the change to them gives back."""

    pinned: bool
    asked: bool | None  # with non_blocking=True; None: either
    confidence: float
    least: float  # part of the time that the change gives back at least
    words: str
    change: str = ""  # whose experiment says what it gives back
    sure: float = 1.0  # part of what the experiment shows that the change gives back at least

    def of(self, summary: Summary) -> list[Copies]:
        return [
            copies
            for copies in summary.on_device.copies
            if copies.pinned == self.pinned and self.asked in (None, copies.asked) and not copies.other_stream
        ]

    def books(self, case: Case) -> Found | None:
        """Their time on the device's stream, which is taken off the step's."""
        summary = case.summary
        made = [copies for copies in self.of(summary) if copies.device_ms is not None]
        on_device = sum(copies.device_ms or 0.0 for copies in made)
        share = min(on_device / max(prediction.current_ms(summary), 1e-9), case.step)
        if share < NAMED:
            return None
        case.step -= share
        return self._found(summary, made, share, on_device)

    def unseen(self, summary: Summary) -> str | None:
        """Why they could not be judged in a run that used a device; None: they could, or there is none."""
        if not summary.uses_device:
            return None
        if not summary.on_device.watched_steps:
            why = ", as torch.compile is in use or steps were too short" if "synchronising" in summary.missing else ""
            return f"no step was watched for copies{why}; {TRACE}"
        untimed = [copies for copies in self.of(summary) if copies.device_ms is None]
        if not untimed:
            return None
        size = sum(copies.bytes_per_step for copies in untimed) / 1e6
        return (
            f"{size:.3g} MB per step are copied from {self.words}, and how long the device takes for it was not "
            f"seen: this kind of device has no timed events in torch, or the run was too short; {TRACE}"
        )

    def _found(self, summary: Summary, made: list[Copies], share: float, on_device: float) -> Found:
        size = sum(copies.bytes_per_step for copies in made)
        evidence = [
            f"{sum(copies.per_step for copies in made):.3g} copies of {size / 1e6:.3g} MB in all per step, from "
            f"{self.words}, hold the device's stream for {on_device:.2f} ms ({size / on_device / 1e6:.3g} GB/s)",
            f"the calls hold the loop for {sum(copies.host_ms for copies in made):.2f} ms",
        ]
        if not self.pinned and any(copies.asked for copies in made):
            evidence.append("non_blocking=True gains little from memory that is not page-locked")
        confidence, against = self._sure(summary, made)
        low, high = prediction.gain_of_share(share, self.least)
        if self.change in summary.on_device.copies_with:
            low, high = self._measured_gain(summary, share)
            least, most = summary.on_device.copies_with[self.change]
            evidence.append(
                f"measured after the run: {self.change} leaves {least:.0%} to {most:.0%} of a batch's copying"
            )
        if summary.waits.loader >= IDLE_LOADER:
            low = 0.0
            against.append("the loop also waits for its loader, which may take up what the copies give back")
        return Found(share, confidence, evidence, against, (low, high))

    def _sure(self, summary: Summary, made: list[Copies]) -> tuple[float, list[str]]:
        confidence, against = self.confidence, []
        if self.pinned and self.asked:
            against.append("whether kernels of other streams ran beside the copies is not seen")
        timed = sum(copies.timed for copies in made)
        if timed < FEWEST_TIMED:
            confidence = min(confidence, DOUBTFUL)
            against.append(f"only {timed} copies were timed")
        if summary.on_device.gpu is not None and summary.on_device.gpu.shared:
            confidence = min(confidence, UNCERTAIN)
            against.append("other programs use the same GPU")
        return confidence, against

    def _measured_gain(self, summary: Summary, share: float) -> tuple[float, float]:
        least, most = summary.on_device.copies_with[self.change]
        low, high = self.sure * (1.0 - most), 1.0 - least
        if self.change == LOCKED and summary.workers == 0:  # no thread beside the loop: next() page-locks
            low -= summary.on_device.copies_with.get(OWN, (0.0, 0.0))[1]
        gains = (prediction.gain_of_share(share, min(max(part, 0.0), 1.0))[0] for part in (low, high))
        return next(gains), next(gains)
