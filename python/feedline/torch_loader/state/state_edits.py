# SPDX-License-Identifier: Apache-2.0
"""Edits a loader's state to implement `loader.skip(n)`."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, SupportsIndex

from ...data.arguments import integer
from ...errors import ConfigError
from ..options.settings import Settings
from . import state as states

_MOST = 2**63 - 1  # batches


def skipped(state: Mapping[str, Any], batches: SupportsIndex, settings: Settings) -> dict[str, Any]:
    """Returns `state` as it would be after `batches` more batches.

    Raises:
        ConfigError: `batches` is not a non-negative integer, or the new position can only be determined by reading
            samples.
    """
    count = integer("skip", "batches", batches, 0, _MOST)
    found: dict[str, Any] = copy.deepcopy(dict(state))
    if not count:
        return found
    if state["kind"] == "iterable":
        _skip_stream(found, count, max(1, settings.num_workers))
    elif states.are_stateful(settings.order):
        raise ConfigError(
            "skip: the sampler's own state changes only when indices are drawn, so batches cannot be skipped"
        )
    else:
        for entry in found.get("workers", ()):
            entry["since"] = 0
        waiting = found.pop("waiting", [])[count:]
        found |= {"waiting": waiting} if waiting else {}
    found |= {"delivered": found["delivered"] + count, "last_index": None}
    return found


def _skip_stream(found: dict[str, Any], batches: int, workers: int) -> None:
    """Adds the batches to the workers' counts, one worker after the other. The workers read and drop the skipped
    batches.
    """
    entries = found.setdefault("workers", [{"batches": 0, "state": None, "since": 0} for _ in range(workers)])
    if any(entry.get("ended") for entry in entries):
        raise ConfigError(
            "skip: the dataset's state was saved at the end of an epoch; call iter(loader) or set_epoch first"
        )
    first = (found.get("last_worker", workers - 1) + 1) % workers
    for worker, entry in enumerate(entries):
        share = (batches - (worker - first) % workers + workers - 1) // workers
        entry["batches"] += share
        entry["since"] += share
    found["last_worker"] = (first + batches - 1) % workers
