# SPDX-License-Identifier: Apache-2.0
"""The device's side of a step: copies to it, and the precision of its work.

A copy holds up the stream that it is made on, and what computes there waits: its time there, by the device's own
events, is lost whether or not the host waits too. The host's time in the call is not: it may be waiting for earlier
kernels, which are needed anyway.
"""

from __future__ import annotations

from typing import NamedTuple

from feedline.diagnose.causes.case import IDLE_LOADER, NAMED, Case
from feedline.diagnose.causes.certainty import UNCERTAIN
from feedline.diagnose.findings import Abstention
from feedline.watching.experiments import ASKED, LOCKED, OWN
from feedline.watching.model import prediction
from feedline.watching.summary.figures import Copies, Summary

_FEWEST_TIMED = 10  # copies, for their time to be more than an impression
_FEWEST_WATCHED = 5  # steps, to say that none of them used autocast
_BUSY = 0.8  # GPU-Util: below, the GPU's own speed is not what a step waits for
_MATRIX = 0.5  # of a busy GPU's time, taken to be products and convolutions; only kernels' names would tell
_VOLTA, _AMPERE = 70, 80  # the first with Tensor Cores, and the first with TF32
_TRACE = "feedline trace on a torch.profiler trace shows it"


class _Kind(NamedTuple):
    cause: str
    pinned: bool
    asked: bool | None  # None: either
    confidence: float
    least: float  # part of the time that the change gives back at least
    words: str
    change: str = ""  # whose experiment says what it gives back
    sure: float = 1.0  # part of what the experiment shows that the change gives back at least


_KINDS = (
    _Kind("unpinned_copy", False, None, 0.92, 0.4, "pageable memory", LOCKED),
    _Kind("blocking_copy", True, False, 0.92, 0.5, "page-locked memory without non_blocking=True", ASKED, 0.5),
    _Kind("host_to_device", True, True, UNCERTAIN, 0.7, "page-locked memory, on the stream that computes"),
)


def _of_kind(kind: _Kind, summary: Summary) -> list[Copies]:
    return [
        copies
        for copies in summary.copies
        if copies.pinned == kind.pinned and kind.asked in (None, copies.asked) and not copies.other_stream
    ]


def copies(case: Case) -> None:
    summary = case.summary
    for kind in _KINDS:
        made = [copies for copies in _of_kind(kind, summary) if copies.device_ms is not None]
        on_device = sum(copies.device_ms or 0.0 for copies in made)
        share = min(on_device / max(prediction.current_ms(summary), 1e-9), case.step)
        if share < NAMED:
            continue
        case.step -= share
        _name(case, kind, made, share, on_device)


def _name(case: Case, kind: _Kind, made: list[Copies], share: float, on_device: float) -> None:
    summary = case.summary
    size = sum(copies.bytes_per_step for copies in made)
    evidence = [
        f"{sum(copies.per_step for copies in made):.3g} copies of {size / 1e6:.3g} MB in all per step, from "
        f"{kind.words}, hold the device's stream for {on_device:.2f} ms ({size / on_device / 1e6:.3g} GB/s)",
        f"the calls hold the loop for {sum(copies.host_ms for copies in made):.2f} ms",
    ]
    if not kind.pinned and any(copies.asked for copies in made):
        evidence.append("non_blocking=True gains little from memory that is not page-locked")
    confidence, counter = kind.confidence, []
    if kind.pinned and kind.asked:
        counter.append("whether kernels of other streams ran beside the copies is not seen")
    if sum(copies.timed for copies in made) < _FEWEST_TIMED:
        confidence = min(confidence, 0.6)
        counter.append(f"only {sum(copies.timed for copies in made)} copies were timed")
    if summary.gpu is not None and summary.gpu.shared:
        confidence = min(confidence, UNCERTAIN)
        counter.append("other programs use the same GPU")
    low, high = prediction.gain_of_share(share, kind.least)
    if kind.change in summary.copies_with:
        low, high = _measured_gain(kind, summary, share)
        least, most = summary.copies_with[kind.change]
        evidence.append(f"measured after the run: {kind.change} leaves {least:.0%} to {most:.0%} of a batch's copying")
    if summary.waits.loader >= IDLE_LOADER:
        low = 0.0
        counter.append("the loop also waits for its loader, which may take up what the copies give back")
    case.name(kind.cause, share, confidence, evidence, counter, (low, high))


def _measured_gain(kind: _Kind, summary: Summary, share: float) -> tuple[float, float]:
    least, most = summary.copies_with[kind.change]
    low, high = kind.sure * (1.0 - most), 1.0 - least
    if kind.change == LOCKED and summary.workers == 0:  # no thread beside the loop: next() page-locks
        low -= summary.copies_with.get(OWN, (0.0, 0.0))[1]
    gains = (prediction.gain_of_share(share, min(max(part, 0.0), 1.0))[0] for part in (low, high))
    return next(gains), next(gains)


def idle_share(summary: Summary) -> float | None:
    """At least so much of the loop's time the GPU was idle without the loader's doing. None: nobody knows.

    GPU-Util counts a moment as busy in which any kernel runs, so what it calls idle was idle.
    """
    if summary.gpu is None:
        return None
    return max(1.0 - summary.gpu.utilisation - summary.waits.loader, 0.0)


def _capability(summary: Summary) -> int | None:
    known = summary.device.get("capability")
    return known if isinstance(known, int) else summary.gpu.capability if summary.gpu else None


def _is_reduced(summary: Summary) -> bool | None:
    """Whether the work runs in lower precision than float32; None where too little was seen."""
    if summary.device.get("autocast"):
        return True
    elements = summary.device.get("elements") or {}
    if not elements or summary.watched_steps < _FEWEST_WATCHED:
        return None
    if elements.get("torch.float32", 0) < 0.5 * sum(elements.values()):
        return True
    tf32 = (_capability(summary) or 0) >= _AMPERE and summary.device.get("matmul_precision") in ("high", "medium")
    return bool(tf32)


def precision(case: Case) -> None:
    summary, gpu = case.summary, case.summary.gpu
    capability = _capability(summary)
    if gpu is None or gpu.shared or gpu.utilisation < _BUSY or summary.waits.loader >= IDLE_LOADER:
        return
    if capability is None or capability < _VOLTA or _is_reduced(summary) is not False:
        return
    share = case.step * gpu.utilisation * _MATRIX
    case.step -= share
    evidence = [
        f"{gpu.name or 'the GPU'} (compute capability {capability / 10:.1f}) has Tensor Cores, and is busy "
        f"{gpu.utilisation:.0%} of the time",
        "parameters are float32, no autocast was entered, "
        f"float32 matrix products are set to {summary.device.get('matmul_precision', '(unknown)')!r}",
    ]
    counter = [f"that products and convolutions take {_MATRIX:.0%} of it is assumed, not seen; {_TRACE}"]
    if capability >= _AMPERE and summary.device.get("cudnn_tf32"):
        counter.append("convolutions use TF32 already, cuDNN's default")
    low, high = 0.0, prediction.gain_of_share(share, 0.8)[0]
    case.name("precision_not_reduced", share, 0.5, evidence, counter, (low, high))


def abstentions(summary: Summary, named: set[str]) -> list[Abstention]:
    """What could not be seen of a run that used a device."""
    if not summary.uses_device:
        return []
    reasons: dict[str, str] = {}
    unwatched = "no step was watched for copies"
    if "synchronising" in summary.missing:
        unwatched += ", as torch.compile is in use or steps were too short"
    for kind in _KINDS:
        untimed = [copies for copies in _of_kind(kind, summary) if copies.device_ms is None]
        if not summary.watched_steps:
            reasons[kind.cause] = f"{unwatched}; {_TRACE}"
        elif untimed:
            size = sum(copies.bytes_per_step for copies in untimed) / 1e6
            reasons[kind.cause] = (
                f"{size:.3g} MB per step are copied from {kind.words}, and how long the device takes for it was not "
                f"seen: this kind of device has no timed events in torch, or the run was too short; {_TRACE}"
            )
    calls = summary.synchronising_calls or 0.0
    if summary.gpu is None and 0.0 < calls < 2 and (summary.synchronising or 0.0) >= NAMED:
        reasons["loop_synchronisation"] = (
            "one call of .item() per step waits for work that is needed anyway, and how long the device was idle "
            f"behind it was not seen; {_TRACE}"
        )
    if (summary.loader.get("cuda") or summary.device.get("type") == "cuda") and summary.waits.loader < IDLE_LOADER:
        unseen = _unseen_of_precision(summary)
        if unseen is not None:
            reasons["precision_not_reduced"] = f"{unseen}; {_TRACE}"
    return [Abstention(cause, missing) for cause, missing in reasons.items() if cause not in named]


def _unseen_of_precision(summary: Summary) -> str | None:
    if _is_reduced(summary) is None:
        return "no optimizer's step over parameters on the GPU was seen in a watched step"
    if _is_reduced(summary):
        return None
    if summary.gpu is None:
        return summary.missing.get("gpu", "how busy the GPU is was not seen")
    if summary.gpu.shared:
        return "other programs use the same GPU, so how busy this one keeps it was not seen"
    return "the GPU's compute capability was not seen" if _capability(summary) is None else None
