# SPDX-License-Identifier: Apache-2.0
"""The path of a batch from storage to GPU: the time of each stage and the slowest stage, drawn for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .figures import link

TITLES = {"storage": "storage", "host": "host", "pcie": "PCIe", "gpu": "GPU"}
WAITING, _STEP = "waiting", "loop's step"
_OF_STORAGE, _HALF = ("file", "store"), 0.5
_MADE = ("storage", "host")  # executed in sequence by the same worker
_FEWEST_TIMED = 5  # steps or copies required to report their time on the device
_INSIDE = 14  # characters inside a box: four of them and three arrows are 75 wide
_ARROW = "-->"
_SIZES = ("B", "kB", "MB", "GB", "TB")


def of_diagnosis(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the stages. `summary`: the summary of ``feedline diagnose``; empty if no loop was observed."""
    making, host = summary.get("making") or {}, summary.get("host") or {}
    shares, made_ms = making.get("stages"), making.get("wall_ms") or None
    storage_ms = shares["storage"] * making["wall_ms"] if shares and "storage" in shares else None
    host_ms = made_ms - (storage_ms or 0.0) if made_ms is not None else None
    makers = max(summary.get("workers") or 0, 1)
    has_gpu = _has_gpu(summary)
    return [
        link(
            "storage",
            storage_ms,
            host.get("read_bytes_per_s"),
            f"time waiting without CPU while a batch is read{_reasons(summary)}; rate of bytes from block devices"
            if shares
            else "stages not observed",
            makers,
            None if waits_for_storage(summary) else WAITING,
        ),
        link(
            "host",
            host_ms,
            None,
            "decoding, transforms and collation" if made_ms else "batch production was not observed",
            makers,
        ),
        _link_of(summary) | ({} if has_gpu else {"title": ""}),
        _gpu_of(summary) | ({} if has_gpu else {"title": _STEP}),
    ]


def title_of(one: Mapping[str, Any]) -> str:
    """Returns the title of a stage; "" if the run has no such stage."""
    return str(one.get("title", TITLES.get(one["name"], one["name"])))


def waits_for_storage(summary: Mapping[str, Any]) -> bool | None:
    """Whether batch production waits for files or a remote store, rather than for locks, sleeps or other processes;
    None if the reasons were not observed.
    """
    if (summary.get("loader") or {}).get("native"):
        return True  # native threads wait only for storage
    kinds = _kinds_of_waits(summary)
    return sum(kinds.get(kind, 0.0) for kind in _OF_STORAGE) >= _HALF if kinds else None


def _kinds_of_waits(summary: Mapping[str, Any]) -> Mapping[str, float]:
    seen = (summary.get("making") or {}).get("waited_for") or {}
    return seen.get("kinds") or {}


def _reasons(summary: Mapping[str, Any]) -> str:
    kinds = sorted(_kinds_of_waits(summary).items(), key=lambda one: -one[1])
    return f" (for: {', '.join(f'{kind} {share:.0%}' for kind, share in kinds[:3])})" if kinds else ""


def _has_gpu(summary: Mapping[str, Any]) -> bool:
    """Whether the run used a GPU, as far as was observed."""
    device = (summary.get("device") or {}).get("type")
    used = summary.get("device_step_ms") is not None or bool(summary.get("copies")) or bool(summary.get("gpu"))
    return used or bool((summary.get("loader") or {}).get("cuda")) or device not in (None, "cpu")


def _link_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    copies = summary.get("copies") or []
    if not copies:
        seen = summary.get("watched_steps")
        return link("pcie", None, None, "no copy to a device was observed" if seen else "copies were not observed")
    timed = [one for one in copies if one["device_ms"] is not None and one["timed"] >= _FEWEST_TIMED]
    size = sum(one["bytes_per_step"] for one in copies)
    kinds = _kinds(copies)
    if len(timed) < len(copies):
        spent = sum(one["host_ms"] for one in copies)
        return link("pcie", spent, None, f"time in copy calls{kinds}, which may wait for earlier kernels")
    ms = sum(one["device_ms"] for one in copies)
    return link(
        "pcie", ms, size / ms * 1000 if ms else None, f"copies{kinds}, measured on their stream by device events"
    )


def _kinds(copies: Sequence[Mapping[str, Any]]) -> str:
    """Describes the properties that all copies have in common."""
    pinned = {bool(one["pinned"]) for one in copies}
    if len(pinned) > 1:
        return ""
    return " from page-locked memory" if True in pinned else " from pageable memory"


def _gpu_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    if not summary:
        return link("gpu", None, None, "no loop was observed")
    took, own = summary.get("device_step_ms"), summary.get("step_ms")
    if took is not None and (summary.get("timed_steps") or 0) >= _FEWEST_TIMED:
        return link("gpu", took, None, "time of a step on the device's stream, including copies and gaps")
    return link("gpu", own, None, "time of the loop's own work, on any device")


def pace_ms(one: Mapping[str, Any]) -> float | None:
    """Returns a stage's time per batch in ms: the time that a batch spends in the stage, divided by the number of
    concurrent batches.
    """
    took: float | None = one["ms_per_batch"]
    return None if took is None else took / max(one.get("at_once") or 1, 1)


def slowest(links: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns the name of the slowest stage; None if the times of fewer than two stages are known.

    The same worker first reads and then produces a batch, so the times of these two stages are added.
    """
    paces = {one["name"]: pace for one in links if (pace := pace_ms(one)) is not None}
    if len(paces) < 2:
        return None
    made = [paces[name] for name in _MADE if name in paces]
    others = [pace for name, pace in paces.items() if name not in _MADE]
    among = _MADE if made and sum(made) >= max(others, default=0.0) else paces.keys() - set(_MADE)
    return max((name for name in paces if name in among), key=lambda name: paces[name])


def lines(links: Sequence[Mapping[str, Any]]) -> list[str]:
    """Draws boxes from storage to GPU, 75 characters wide; the slowest stage has thick vertical lines."""
    if not any(one["ms_per_batch"] is not None for one in links):
        return []
    hot = slowest(links)
    links = [one for one in links if title_of(one)]
    edges, titles, times, paces, rates = [], [], [], [], []
    for one in links:
        is_hot = one["name"] == hot
        edges.append("+" + ("=" if is_hot else "-") * _INSIDE + "+")
        times.append(_cell("not measured" if one["ms_per_batch"] is None else _ms(one["ms_per_batch"]), is_hot))
        titles.append(_cell(title_of(one), is_hot))
        paces.append(_cell(_pace(one), is_hot))
        rates.append(_cell("" if one["bytes_per_s"] is None else f"{_size(one['bytes_per_s'])}/s", is_hot))
    rows = [titles, times, paces, rates]
    rows = [row for row in rows if any(cell.strip("|# ") for cell in row)]
    middle = len(rows) // 2
    gap = " " * len(_ARROW)
    drawn = [(_ARROW if i == middle else gap).join(row) for i, row in enumerate(rows)]
    return [gap.join(edges), *drawn, gap.join(edges)]


def _cell(text: str, is_hot: bool) -> str:
    side = "#" if is_hot else "|"
    return f"{side}{text[:_INSIDE]:^{_INSIDE}}{side}"


def _pace(one: Mapping[str, Any]) -> str:
    count, pace = one.get("at_once") or 1, pace_ms(one)
    return f"/{count:.3g} = {_ms(pace)}" if count > 1 and pace is not None else ""


def _ms(value: float) -> str:
    return f"{value / 1000:.3g} s" if value >= 10_000 else f"{value:.0f} ms" if value >= 100 else f"{value:.3g} ms"


def _size(count: float) -> str:
    unit = 0
    while count >= 999.5 and unit < len(_SIZES) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.3g} {_SIZES[unit]}"
