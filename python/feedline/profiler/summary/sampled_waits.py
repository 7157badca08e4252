# SPDX-License-Identifier: Apache-2.0
"""Summarises the sampled waits of the processes that make batches: probe/seen_waits.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from feedline.profiler.probe.system_calls import KINDS
from feedline.profiler.summary.figures import Place, WaitedFor

_PLACES = 3


def waited_for(told: Iterable[Mapping[str, Any]], processes: Collection[int]) -> WaitedFor | None:
    """Waits of these processes; None if no sample found any of them waiting."""
    seen: Counter[tuple[str, str]] = Counter()
    looks = 0
    for one in told:
        if one.get("pid") in processes:
            looks += int(one["waiting"])
            seen.update({(str(kind), str(place)): int(count) for kind, place, count in one["seen"]})
    whole = sum(seen.values())
    if whole == 0:
        return None
    kinds = {kind: sum(n for (k, _), n in seen.items() if k == kind) / whole for kind in KINDS}
    places = [Place(kind, place, count / whole) for (kind, place), count in seen.most_common() if place]
    return WaitedFor(looks, {kind: share for kind, share in kinds.items() if share}, tuple(places[:_PLACES]))
