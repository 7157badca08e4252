# SPDX-License-Identifier: Apache-2.0
"""Summarises the sampled waits of the processes that produce batches; see probe/wait_sampler.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from feedline.profiler.probe.system_calls import KINDS
from feedline.profiler.summary.figures import WaitedFor, WaitLocation

_PLACES = 3


def waited_for(samples: Iterable[Mapping[str, Any]], processes: Collection[int]) -> WaitedFor | None:
    """Returns the waits of these processes; None if no sample found any of them waiting."""
    seen: Counter[tuple[str, str]] = Counter()
    looks = 0
    for one in samples:
        if one.get("pid") in processes:
            looks += int(one["waiting"])
            seen.update({(str(kind), str(location)): int(count) for kind, location, count in one["seen"]})
    whole = sum(seen.values())
    if whole == 0:
        return None
    kinds = {kind: sum(n for (k, _), n in seen.items() if k == kind) / whole for kind in KINDS}
    places = [WaitLocation(kind, location, count / whole) for (kind, location), count in seen.most_common() if location]
    return WaitedFor(looks, {kind: share for kind, share in kinds.items() if share}, tuple(places[:_PLACES]))
