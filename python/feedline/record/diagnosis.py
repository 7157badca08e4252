# SPDX-License-Identifier: Apache-2.0
"""Creates a run record from the result of ``feedline diagnose``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import chain, series
from .figures import figure

# (seconds since the first, ms waited, ms of the loop's own work)
Step = tuple[float, float, float]
_WAITED_FOR = ("production", "straggler", "handover", "startup", "border")  # with "step", the whole time
_SETTINGS = (str, int, float, bool, type(None))
# Keys that only identify processes and loaders of one run, or that are facts of the machine, which are stored
# elsewhere.
_NO_SETTINGS = ("pid", "number", "cpus", "local_rank", "sharing_ranks", "torch", "threads", "cuda", "copied")


def from_diagnosis(
    document: Mapping[str, Any], steps: Iterable[Step] = (), source: str | None = None
) -> dict[str, Any]:
    """Returns the record of a diagnosis made just now on this machine, consisting of `document` and the other parts of
    a record.

    Args:
        document: the output of ``feedline diagnose --json`` (``feedline.diagnose.report.as_json``).
        steps: the result of :func:`feedline.diagnose.steps.steps_of`; without steps, the record has no timeline and no
        histogram.
        source: a path in the dataset, if known.
    """
    from .files import envelope, finite

    made = join(envelope("diagnose", document["command"], "", source=source), document, steps)
    whole: dict[str, Any] = finite(made)
    return whole


def join(record: dict[str, Any], document: Mapping[str, Any], steps: Iterable[Step] = ()) -> dict[str, Any]:
    """Adds the measurements of `document` to `record`."""
    summary = document.get("summary") or {}
    taken = list(steps)
    loader = summary.get("loader") or {}
    settings = {
        name: value for name, value in loader.items() if name not in _NO_SETTINGS and isinstance(value, _SETTINGS)
    }
    if summary:
        settings.setdefault("num_workers", summary["workers"])
    return {
        **document,
        **record,
        "machine": _with_clocks(record["machine"], summary),
        "command": list(document["command"]),
        "wall_s": document["wall_s"],
        "subject": " ".join(document["command"]),
        "configuration": settings,
        "figures": _figures(summary, taken),
        "stages": _stages(summary),
        "chain": chain.of_diagnosis(summary),
        "waits": {name: summary["waits"][name] for name in (*_WAITED_FOR, "step")} if summary.get("waits") else None,
        "histograms": _histograms(taken),
        "timeline": _timeline(taken),
        "ladder": _ladder(document),
        "verdicts": document["verdicts"],
        "abstained": document["abstained"],
        "notes": record["notes"] + list(document.get("notes", [])),
    }


def _with_clocks(machine: dict[str, Any] | None, summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the GPU's clock rate during the loop, since the idle clock rate is not meaningful."""
    gpu = summary.get("gpu") or {}
    known = {f"gpu_{name}": gpu[name] for name in ("clock_mhz", "slowed") if gpu.get(name) is not None}
    return machine if machine is None or not known else machine | known


def _figures(summary: Mapping[str, Any], steps: Sequence[Step]) -> list[dict[str, Any]]:
    if not summary or not summary["loop_s"]:
        return []
    seconds = [(wait + step) / 1000 for _, wait, step in steps]
    low, high = series.rate_interval([1.0] * len(seconds), seconds)
    rate = summary["steps"] / summary["loop_s"]
    if low is None or high is None or not low <= rate <= high:
        low = high = None  # the stored steps are not representative, according to the first epochs
    share = sum(summary["waits"][name] for name in _WAITED_FOR)
    return [
        figure("batches_per_s", "batches per second", "1/s", rate, low, high, better="higher"),
        figure("wait_share", "time spent waiting for data", "share", share, better="lower"),
        figure(
            "wait_ms", "wait per batch, except for the first of each epoch", "ms", summary["wait_ms"], better="lower"
        ),
        figure("step_ms", "the loop's own work per batch", "ms", summary["step_ms"], better="lower"),
    ]


def _stages(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    making = summary.get("making") or {}
    shares = making.get("stages") or {}
    titles = {"storage": chain.WAITING} if chain.waits_for_storage(summary) is False else {}
    found = [
        {"name": titles.get(name, name), "ms_per_batch": share * making["wall_ms"]} for name, share in shares.items()
    ]
    if found and making.get("pickle_ms"):
        found.append({"name": "hand-over", "ms_per_batch": making["pickle_ms"] + making.get("unpickle_ms", 0.0)})
    return found


def _histograms(steps: Sequence[Step]) -> dict[str, Any]:
    made = {
        "wait_ms": series.histogram(wait for _, wait, _ in steps),
        "step_ms": series.histogram(step for _, _, step in steps),
    }
    return {name: value for name, value in made.items() if value is not None}


def _timeline(steps: Sequence[Step]) -> dict[str, Any] | None:
    if not steps:
        return None
    times = [time for time, _, _ in steps]
    return {
        "series": [
            {"name": "wait_ms", "points": series.points(times, [wait for _, wait, _ in steps])},
            {"name": "step_ms", "points": series.points(times, [step for _, _, step in steps])},
        ]
    }


def _without_interval(rung: Mapping[str, Any]) -> dict[str, None]:
    """Returns None for both ends of an interval if the interval is unknown; otherwise an empty dict."""
    return {"low": None, "high": None} if rung["high"] is None else {}


def _ladder(document: Mapping[str, Any]) -> dict[str, Any] | None:
    experiments = document.get("experiments")
    if experiments is None:
        return None
    predicted = {row["workers"]: row["batches_per_s"] for row in document.get("what_if") or []}
    names = ("workers", "batches_per_s", "low", "high", "kept")
    return {
        "refused": experiments["refused"],
        "rungs": [
            {
                **{name: rung[name] for name in names},
                **_without_interval(rung),
                "predicted": predicted.get(rung["workers"]),
            }
            for rung in experiments["rungs"]
        ],
    }
