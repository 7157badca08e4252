# SPDX-License-Identifier: Apache-2.0
"""Three kinds of copies to the device, each with its own cause.

A copy occupies its stream, so computation queued on that stream waits. The copy's time on the stream, measured with
device events, is lost whether or not the host waits too. The time that the host spends in the call does not count: it
may be a wait for earlier kernels, which are needed anyway. If the stream has no other work and waits for the host, the
time between two events is longer than the copy, so the time of a copy is capped at the time that its bytes need over
the slowest link. No change saves more than the avoidable time: the bytes still cross the link, and the loop still does
its own work.
"""

from __future__ import annotations

from dataclasses import dataclass

from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Found
from feedline.diagnose.rules.shares import DOUBTFUL, IDLE_LOADER, NAMED, UNCERTAIN
from feedline.findings import Threshold
from feedline.profiler.experiments import LOCKED, OWN
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Copies, Summary

FEWEST_TIMED = Threshold(8, "minimum number of copies for a conclusive time")
SLOWEST = Threshold(0.25, "bandwidth in GB/s of PCIe 1.0 with one lane: a slower copy waits for something else")
LAUNCH = Threshold(0.02, "launch overhead of a copy in ms")
FASTEST = Threshold(64.0, "bandwidth in GB/s of PCIe 5.0 with 16 lanes, assumed for page-locked copies if not measured")
TRACE = "use feedline trace on a torch.profiler trace"


@dataclass(frozen=True)
class Kind:
    """Copies of one kind, and the time that changing them saves."""

    pinned: bool
    asked: bool | None  # with non_blocking=True; None for either
    confidence: float
    least: float  # minimum part of the time that the change saves
    words: str
    change: str = ""  # the change whose experiment measures the saving
    sure: float = 1.0  # minimum part of the measured saving

    def of(self, summary: Summary) -> list[Copies]:
        return [
            copies
            for copies in summary.on_device.copies
            if copies.pinned == self.pinned and self.asked in (None, copies.asked) and not copies.other_stream
        ]

    def evaluate(self, analysis: Analysis) -> Found | None:
        """Attributes the copy time on the device's stream, and subtracts it from the step's time."""
        summary = analysis.summary
        made = [copies for copies in self.of(summary) if copies.device_ms is not None]
        on_device = sum(min(copies.device_ms or 0.0, _longest_ms(copies)) for copies in made)
        share = min(on_device / max(prediction.current_ms(summary), 1e-9), analysis.step)
        if share < NAMED:
            return None
        analysis.step -= share
        return self._found(summary, made, share, on_device)

    def unseen(self, summary: Summary) -> str | None:
        """Returns why the copies could not be judged in a run that used a device, or None."""
        if not summary.uses_device:
            return None
        if not summary.on_device.watched_steps:
            why = (
                ", because torch.compile is in use or steps were too short"
                if "synchronising" in summary.missing
                else ""
            )
            return f"copies were not observed in any step{why}; {TRACE}"
        untimed = [copies for copies in self.of(summary) if copies.device_ms is None]
        if sum(_longest_ms(copies) for copies in untimed) < NAMED * prediction.current_ms(summary):
            return None
        size = sum(copies.bytes_per_step for copies in untimed) / 1e6
        return (
            f"{size:.3g} MB per step are copied from {self.words}, but the device time of the copies was not "
            f"observed: torch has no timed events for this device type, or the run was too short; {TRACE}"
        )

    def _found(self, summary: Summary, made: list[Copies], share: float, on_device: float) -> Found:
        size = sum(copies.bytes_per_step for copies in made)
        evidence = [
            f"{sum(copies.per_step for copies in made):.3g} copies ({size / 1e6:.3g} MB in total) per step, from "
            f"{self.words}, occupy the device's stream for {on_device:.2f} ms ({size / on_device / 1e6:.3g} GB/s)",
            f"the calls block the loop for {sum(copies.host_ms for copies in made):.2f} ms",
        ]
        if not self.pinned and any(copies.asked for copies in made):
            evidence.append("non_blocking=True gains little if memory is not page-locked")
        apart = sum(copies.device_ms or 0.0 for copies in made)
        if apart > on_device:
            evidence.append(
                f"the events around the copies are {apart:.2f} ms apart; at {SLOWEST:g} GB/s such copies take only "
                f"{on_device:.2f} ms"
            )
        confidence, against = self._sure(summary, made)
        back, why = self._most_back(summary, made, share)
        low, high = prediction.gain_of_share(back, self.least)
        if self.change in summary.on_device.copies_with:
            low, high = self._measured_gain(summary, back)
            least, most = summary.on_device.copies_with[self.change]
            evidence.append(
                f"measured after the run: {self.change} leaves {least:.0%} to {most:.0%} of a batch's copy time"
            )
        if why:
            evidence.append(why)
        if summary.waits.loader >= IDLE_LOADER:
            low = 0.0
            against.append("the loop also waits for its loader, which may use up the time saved")
        return Found(share, confidence, evidence, against, (low, high))

    def _most_back(self, summary: Summary, made: list[Copies], share: float) -> tuple[float, str]:
        """Returns the largest share that can be saved and, if it is less than `share`, a description of the rest."""
        cycle = max(prediction.current_ms(summary), 1e-9)
        size, stays, why = sum(copies.bytes_per_step for copies in made), 1.0 - share, ""
        if self.pinned and share > stays:  # overlaps with the step, and takes longer than everything else in it
            stays = share
            why = (
                f"on a separate stream, the copies still take {share * cycle:.2f} ms, so the loop takes at least "
                "as long"
            )
        elif not self.pinned and self.change not in summary.on_device.copies_with:
            crossing = min(size / FASTEST / 1e6, share * cycle)
            stays += crossing / cycle
            why = f"page-locked copies still take at least {crossing:.2f} ms, at the {FASTEST:g} GB/s of PCIe 5.0 x16"
        if not any(copies.asked for copies in made):  # the host waits during the calls and works between them
            outside = 1.0 - sum(copies.host_ms for copies in made) / cycle
            if outside > stays:
                stays, why = outside, f"the loop still takes {outside * cycle:.2f} ms outside of the calls"
        return min(share, max(1.0 - stays, 0.0)), why

    def _sure(self, summary: Summary, made: list[Copies]) -> tuple[float, list[str]]:
        confidence, against = self.confidence, []
        if self.pinned and self.asked:
            against.append("kernels of other streams may have overlapped with the copies, which was not observed")
        if any((copies.device_ms or 0.0) > _longest_ms(copies) for copies in made):
            confidence = min(confidence, DOUBTFUL)
            against.append("the stream waits for the host between the events of a copy")
        timed = sum(copies.timed for copies in made)
        if timed < FEWEST_TIMED:
            confidence = min(confidence, DOUBTFUL)
            against.append(f"only {timed} copies were timed")
        if summary.on_device.gpu is not None and summary.on_device.gpu.shared:
            confidence = min(confidence, UNCERTAIN)
            against.append("other programs use the same GPU")
        return confidence, against

    def _measured_gain(self, summary: Summary, share: float) -> tuple[float, float]:
        """Returns the gain that the experiment shows, applied to the share that can be saved."""
        least, most = summary.on_device.copies_with[self.change]
        low, high = self.sure * (1.0 - most), 1.0 - least
        if self.change == LOCKED and summary.workers == 0:  # no pinning thread: next() page-locks
            low -= summary.on_device.copies_with.get(OWN, (0.0, 0.0))[1]
        gains = (prediction.gain_of_share(share, min(max(part, 0.0), 1.0))[0] for part in (low, high))
        return next(gains), next(gains)


def _longest_ms(copies: Copies) -> float:
    """Returns the maximum time that copies of this kind take per step, assuming the slowest link."""
    return copies.bytes_per_step / SLOWEST / 1e6 + copies.per_step * LAUNCH
