# SPDX-License-Identifier: Apache-2.0
"""Writes tuning results as JSON, a table, a run record, and a settings file."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from feedline.loader import tuned_settings as saved
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary
from feedline.record import envelope, series
from feedline.record.figures import figure
from feedline.record.files import finite
from feedline.tune import outcome
from feedline.tune.ab_test import Comparison
from feedline.tune.script import Tuned
from feedline.tune.search import Rung, SearchResult
from feedline.tune.settings import DROP_IN, SOURCE, Setting, words
from feedline.tune.source import TunedSource

SCHEMA = "feedline.tune/1"


def as_json(tuned: Tuned | TunedSource) -> dict[str, Any]:
    """Returns the object described in docs/tune.md."""
    subject = {"source": tuned.source} if isinstance(tuned, TunedSource) else {"command": tuned.command}
    refused = None if isinstance(tuned, TunedSource) else tuned.refused
    result = tuned.result
    document: dict[str, Any] = {"schema": SCHEMA, **subject, "refused": refused, "notes": tuned.notes}
    if result is None:
        nothing = dict.fromkeys(("outcome", "conclusion", "base", "best", "gain", "settings"))
        return {**document, **nothing, "rungs": []}
    summary = tuned.summary
    return {
        **document,
        "outcome": outcome.of(result),
        "conclusion": outcome.sentence(result),
        "base": result.base.as_dict(),
        "best": result.best.as_dict(),
        "gain": None if result.proof is None else _comparison(result.proof),
        "finished": result.finished,
        "step_ms": None if summary is None or not summary.loop.steps else summary.loop.step_ms,
        "limits": None if tuned.limits is None else asdict(tuned.limits),
        "rungs": [_rung(rung, result, summary) for rung in result.rungs],
        "settings": settings_of(tuned),
    }


def settings_of(tuned: Tuned | TunedSource) -> dict[str, Any] | None:
    """Returns the settings for ``feedline.load_settings``, or None if no settings were shown to gain."""
    assert tuned.result is not None
    if not outcome.is_shown(tuned.result):
        return None
    best, base = tuned.result.best, tuned.result.base
    arguments: dict[str, Any] = {"num_workers": "auto" if best.auto else best.num_workers}
    if isinstance(tuned, TunedSource):
        data: dict[str, Any] = {"source": tuned.source, "samples": tuned.samples}
        if best.memory_budget is not None:
            arguments["memory_budget"] = best.memory_budget
    else:
        data = {"dataset": tuned.facts["loader"]["dataset"], "samples": tuned.facts["samples"]}
        batch_bytes = tuned.facts.get("batch_bytes")
        if batch_bytes and base.batch_size:
            data["sample_bytes"] = round(batch_bytes / base.batch_size)
        arguments |= {name: getattr(best, name) for name in ("prefetch_factor", "persistent_workers", "pin_memory")}
    if best.batch_size != base.batch_size:
        arguments["batch_size"] = best.batch_size
    is_source = best.loader == SOURCE
    return {
        "feedline_settings": saved.VERSION,
        "use": "feedline" if best.loader in (DROP_IN, SOURCE) else "torch",
        "arguments": {"DataLoader": None if is_source else arguments, "loader": arguments if is_source else None},
        "machine": saved.machine_fingerprint(),
        "data": data,
    }


def record_of(tuned: Tuned | TunedSource, command: Sequence[str], began: float, wall_s: float) -> dict[str, Any]:
    """Returns a run record (docs/run-record.md). The search shows the numbers of workers or threads that were tried."""
    source = tuned.source if isinstance(tuned, TunedSource) else None
    subject = source if source is not None else " ".join(tuned.command) if isinstance(tuned, Tuned) else ""
    document, result = as_json(tuned), tuned.result
    record = {**document, **envelope("tune", command, subject, began=began, source=source), "wall_s": wall_s}
    record["notes"] = record["notes"] + document["notes"]
    if result is None:
        record["ladder"] = {"rungs": [], "refused": document["refused"]}
    else:
        shown = outcome.is_shown(result)
        record["configuration"] = (result.best if shown else result.base).as_dict()
        record["tuning"] = _tuning(tuned, result)
        record["figures"] = _figures(result)
        record["ladder"] = {"rungs": _ladder(result, tuned.summary), "refused": None}
        waits = series.histogram(wait for visit in result.visits.get(result.best, []) for wait in visit.waits_ms)
        record["histograms"] = {} if waits is None else {"wait_ms": waits}
    whole: dict[str, Any] = finite(record)
    return whole


def columns(tuned: Tuned | TunedSource) -> tuple[str, ...]:
    if _is_ladder(tuned):
        return ("change", "in loop/s", "wait", "GPU", "expected", "ratio [95 %]", "")
    looped = any(visit.looped is not None for visits in _visits(tuned) for visit in visits)
    return ("change", "alone/s", *(("in loop/s",) if looped else ()), "model/s", "ratio [95 %]", "")


def row(tuned: Tuned | TunedSource, rung: Rung) -> tuple[str, ...]:
    """Returns the table's row for `rung`."""
    assert tuned.result is not None
    one = _rung(rung, tuned.result, tuned.summary)
    looped = (_interval_words(one["looped"]),) if "in loop/s" in columns(tuned) else ()
    off = one["prediction_error"]
    model = "" if one["predicted"] is None else f"{one['predicted']:.1f}" + ("" if off is None else f" ({off:+.0%})")
    ratio = ""
    if rung.comparison is not None:
        bounds = rung.comparison
        ratio = f"{bounds.ratio:.2f} "
        ratio += f"[{bounds.low:.2f}, {bounds.high:.2f}]" if bounds.pairs > 1 else "[one pair]"
    verdict = rung.why
    if rung.kept and rung.comparison is not None:
        is_open = outcome.of(tuned.result) == outcome.UNDECIDED
        verdict = (
            "not confirmed: looked faster" if is_open and rung.comparison.verdict == "faster" else f"kept: {verdict}"
        )
    name = words(rung.candidate.setting) if rung.against is None else rung.candidate.change
    if _is_ladder(tuned):
        shares = ("" if one[share] is None else f"{one[share]:.0%}" for share in ("wait_share", "gpu"))
        expected = "" if rung.expected is None else str(rung.expected)
        return (name, _interval_words(one["looped"]), *shares, expected, ratio, verdict)
    return (name, _interval_words(one["alone"]), *looped, model, ratio, verdict)


def _tuning(tuned: Tuned | TunedSource, result: SearchResult) -> dict[str, Any]:
    """Returns the table and its conclusion for a page."""
    best = outcome.best_rung(result)
    rows = [list(row(tuned, rung)) for rung in result.rungs]
    if best is not None and best.against is not None:  # a change is relative to the settings accepted before it
        rows[result.rungs.index(best)][0] += f": {words(best.candidate.setting)}"
    return {
        "outcome": outcome.of(result),
        "conclusion": outcome.sentence(result),
        "columns": list(columns(tuned)),
        "rows": rows,
        "best": None if best is None else result.rungs.index(best),
    }


def _rung(rung: Rung, result: SearchResult, summary: Summary | None) -> dict[str, Any]:
    setting = rung.candidate.setting
    visits = result.visits.get(setting, [])
    alone = _mean([visit.alone for visit in visits if visit.alone is not None])
    looped = _mean([visit.looped for visit in visits if visit.looped is not None])
    predicted = _predicted(setting, result.base, summary)
    error = None if predicted is None or alone is None else predicted / alone["value"] - 1
    waits = sorted(wait for visit in visits for wait in visit.waits_ms)
    return {
        "change": rung.candidate.change,
        "setting": setting.as_dict(),
        "against": None if rung.against is None else rung.against.as_dict(),
        "kept": rung.kept,
        "undecided": rung.undecided,
        "why": rung.why,
        "comparison": None if rung.comparison is None else _comparison(rung.comparison),
        "alone": alone,
        "looped": looped,
        "wait_ms": {"p50": waits[len(waits) // 2], "p99": waits[int(0.99 * (len(waits) - 1))]} if waits else None,
        "wait_share": _middle([visit.wait_share for visit in visits if visit.wait_share is not None]),
        "gpu": _middle([visit.gpu for visit in visits if visit.gpu is not None]),
        "expected": None if rung.expected is None else asdict(rung.expected),
        "predicted": predicted,
        "prediction_error": error,
    }


def _middle(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _is_ladder(tuned: Tuned | TunedSource) -> bool:
    """Whether the loop's waits were measured, in separate processes."""
    return any(visit.wait_share is not None for visits in _visits(tuned) for visit in visits)


def _predicted(setting: Setting, base: Setting, summary: Summary | None) -> float | None:
    """Returns the loader's predicted batches per second, or None for loaders or batch sizes other than the script's."""
    if summary is None or setting.loader != base.loader or setting.batch_size != base.batch_size:
        return None
    if summary.making.wall_ms <= 0:
        return None
    return prediction.loader_rate(summary, setting.num_workers)


def _mean(rates: Sequence[float]) -> dict[str, Any] | None:
    """Returns the mean and 95 % interval over the turns."""
    if not rates:
        return None
    low, high = series.rate_interval([1.0] * len(rates), [1 / rate for rate in rates])
    return {"value": len(rates) / sum(1 / rate for rate in rates), "low": low, "high": high}


def _comparison(comparison: Comparison) -> dict[str, Any]:
    """Returns the comparison for JSON; the interval of a single pair is unknown."""
    return {**asdict(comparison), **({} if comparison.pairs > 1 else {"low": None, "high": None})}


def _interval_words(rate: Mapping[str, Any] | None) -> str:
    if rate is None:
        return ""
    value, high = rate["value"], rate["high"]
    return f"{value:.1f}" + ("" if high is None else f" ±{high / value - 1:.0%}")


def _figures(result: SearchResult) -> list[dict[str, Any]]:
    """Returns the figures of a run record. The first figure is for the settings to use: the best ones
    if they were shown to gain, else the original ones.
    """
    figures = []
    as_it_was = ("samples_per_s", result.base, "as it was")
    if outcome.is_shown(result):
        sides = [
            ("samples_per_s", result.best, "with the settings found"),
            ("base_" + as_it_was[0], *as_it_was[1:]),
        ]
    else:
        sides = [as_it_was]
    for name, setting, label in sides:
        found = _mean([visit.speed() for visit in result.visits.get(setting, [])])
        if found is not None:
            value = found["value"]
            figures.append(
                figure(name, f"samples per second, {label}", "1/s", value, found["low"], found["high"], better="higher")
            )
    if result.proof is not None and result.proof.pairs > 1:
        proof = result.proof
        figures.append(
            figure("gain", "over the original settings", "ratio", proof.ratio, proof.low, proof.high, better="higher")
        )
    return figures


def _ladder(result: SearchResult, summary: Summary | None) -> list[dict[str, Any]]:
    rungs: dict[int, dict[str, Any]] = {}
    for rung in result.rungs:
        setting = rung.candidate.setting
        fixed = setting.but(num_workers=setting.num_workers)
        if fixed != result.base.but(num_workers=setting.num_workers, pin_memory=setting.pin_memory):
            continue
        one = _rung(rung, result, summary)
        if one["alone"] is None:
            continue
        value = one["alone"]["value"]
        rungs[setting.num_workers] = {
            "workers": setting.num_workers,
            "batches_per_s": value,
            "low": value if one["alone"]["low"] is None else one["alone"]["low"],
            "high": value if one["alone"]["high"] is None else one["alone"]["high"],
            "predicted": one["predicted"],
            "kept": rung.kept,
            "undecided": rung.undecided,
        }
    return [rungs[workers] for workers in sorted(rungs)]


def _visits(tuned: Tuned | TunedSource) -> Sequence[Any]:
    return [] if tuned.result is None else list(tuned.result.visits.values())
