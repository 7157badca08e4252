# SPDX-License-Identifier: Apache-2.0
"""The report of `feedline trace` as plain values that can be written as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..findings.formats import as_step_cause
from . import memory_use, operators, ranks, steps, synchronisation
from .causes import evaluate
from .device import Device, devices
from .events import Trace
from .intervals import covered_within, total, union
from .rules import Analysis

VERSION = 1
_MOST_OPERATORS = 30


@dataclass
class _Analysis:
    steps: steps.Steps
    device: Device | None
    result: dict[str, Any]


def analyse(traces: Sequence[Trace]) -> dict[str, Any]:
    """Analyses one trace, or the traces of several ranks of a run; docs/trace.md describes the keys."""
    analysed = [_analyse(trace) for trace in traces]
    numbers = [ranks.number_of(trace, i) for i, trace in enumerate(traces)]
    if len(set(numbers)) < len(numbers):  # duplicate ranks: two runs, or no rank numbers in the files
        numbers = list(range(len(traces)))
    first = analysed[numbers.index(min(numbers))].result
    result = {"version": VERSION, **first, "files": [analysis.result["file"] for analysis in analysed]}
    if len(traces) > 1:
        compared = ranks.compare(
            {
                number: (analysis.steps, ranks.collectives(trace, analysis.steps, analysis.device))
                for number, analysis, trace in zip(numbers, analysed, traces, strict=True)
            }
        )
        result["ranks"] = compared["ranks"]
        if compared["verdict"]:
            verdicts = [*result["verdicts"], as_step_cause(compared["verdict"])]
            result["verdicts"] = sorted(verdicts, key=lambda verdict: -verdict["share"])
        if compared["missing"]:
            result["abstained"] = [*result["abstained"], {"cause": "straggling_rank", "missing": compared["missing"]}]
    return result


def has_problems(result: dict[str, Any]) -> bool:
    """Whether the `result` of :func:`analyse` contains a cause to fix, or a file that could not be read completely."""
    bad = [one for one in result["verdicts"] if one["severity"] != "note" and one["cause"] != "compute_bound"]
    files = [*result["files"], result.get("merged", {})]
    return bool(bad) or any(file.get("damage") for file in files)


def _analyse(trace: Trace) -> _Analysis:
    found = steps.find(trace)
    window = (int(found.windows[0, 0]), int(found.windows[-1, 1])) if len(found.windows) else (0, 0)
    gpus = devices(trace, window)
    device = gpus[0] if gpus else None
    tree = operators.Operators(trace)
    waits = synchronisation.find(trace, found, tree)
    findings = evaluate(Analysis(trace, found, waits, device))
    summary = steps.summary(found)
    result = {
        "file": _file(trace),
        "step_ms": summary["step_ms"]["mean"],
        "wait_ms": summary["loader"]["wait_ms"]["mean"],
        "wait_share": summary["loader"]["share"],
        "steps": summary,
        "verdicts": [as_step_cause(finding) for finding in findings.verdicts],
        "abstained": [{"cause": one.code, "missing": one.missing} for one in findings.abstained],
        "gpus": [_gpu(gpu, found, waits, trace) for gpu in gpus],
        "synchronisation": synchronisation.table(waits, device, found),
        "operators": tree.ranking(found.windows)[:_MOST_OPERATORS],
        "kernels": operators.kernels(trace, found.windows)[:_MOST_OPERATORS],
        "in_loader": operators.in_loader(trace, found.loader, found.thread),
        "stages": _stages(trace, found),
        "peak_bytes": memory_use.peaks(trace),
        "memory": memory_use.of_devices(trace, found.windows, tree),
        "profiler_overhead_ms": float((trace["overhead"].end - trace["overhead"].start).sum() / 1e6),
        "missing": _missing(trace, device),
    }
    return _Analysis(found, device, result)


def _file(trace: Trace) -> dict[str, Any]:
    header = trace.header
    info = header.get("distributedInfo")
    return {
        "path": trace.path,
        "events": trace.events,
        "unreadable_events": trace.unreadable,
        "damage": trace.damage,
        "gpu": next((p.get("name") for p in trace.device_properties), None),
        "host": header.get("host_name"),
        "rank": info.get("rank") if isinstance(info, dict) else None,
        "base_time_ns": header.get("baseTimeNanoseconds"),
        "with_stack": bool(header.get("with_stack")) or len(trace["python"]) > 0,
    }


def _gpu(gpu: Device, found: steps.Steps, waits: synchronisation.Waits, trace: Trace) -> dict[str, Any]:
    length = max(1, gpu.window[1] - gpu.window[0])
    states = synchronisation.host_states(found, waits, gpu, trace)
    return {
        "device": gpu.number,
        "busy_share": total(gpu.busy) / length,
        "kernel_share": total(gpu.kernels) / length,
        "copy_only_share": (total(gpu.busy) - total(gpu.kernels)) / length,
        "idle_share": total(gpu.idle) / length,
        "idle_while": {name: total(when) / length for name, when in states.items()},
        "copies": gpu.copy_kinds(),
        "collectives_share": total(gpu.kernels_where(ranks.COLLECTIVE)) / length,
        "gaps": gpu.gaps(states),
        "tensor_cores": gpu.tensor_cores(),
        "occupancy_percent": gpu.occupancy(),
    }


def _stages(trace: Trace, found: steps.Steps) -> list[dict[str, Any]]:
    """Returns the times of Feedline's stages if they were merged into the trace."""
    column = trace["stage"]
    if not len(column):
        return []
    windows = union(found.windows[:, 0], found.windows[:, 1])
    inside = covered_within(windows, np.stack((column.start, column.end), axis=1)) > 0
    names, spent = column.name[inside], (column.end - column.start)[inside]
    items, busy = np.bincount(names), np.bincount(names, weights=spent / 1e6)
    return [{"stage": trace.names[i], "items": int(items[i]), "busy_ms": float(busy[i])} for i in np.flatnonzero(items)]


def _missing(trace: Trace, device: Device | None) -> list[str]:
    """Returns the kinds of data missing from the trace, with the torch.profiler option that records each kind."""
    missing = []
    if device is None:
        missing.append("GPU events: activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]")
    if not len(trace["python"]) and not trace.stacks:
        missing.append("Python stacks: with_stack=True")
    if not trace.memory:
        missing.append("memory: profile_memory=True")
    if not len(trace["stage"]):
        missing.append(
            "Feedline's own stages: run a Feedline loader in feedline.profile(...), or in feedline.trace.record(...) "
            "and --merge"
        )
    return missing
