# SPDX-License-Identifier: Apache-2.0
"""Builds the script's own loader with another number of workers or, for Feedline's loaders, threads."""

from __future__ import annotations

import copy
from typing import Any

from feedline.diagnose.experiments import loader_rates
from feedline.profiler.process_copies import remake_of


def workers_of(loader: Any) -> int:
    if remake_of(loader) is not None:
        return int(loader.stats()["threads"])
    return int(loader.num_workers)


def fewest(loader: Any) -> int:
    """Returns the minimum number of workers, or 1 for a Feedline loader, which needs a thread."""
    return 0 if remake_of(loader) is None else 1


def with_workers(loader: Any, workers: int) -> Any:
    """Returns a loader over the same samples in the same kind of order."""
    remake = remake_of(loader)
    if remake is not None:
        return remake(workers)
    return _drop_in(loader, workers) if is_feedlines(loader) else loader_rates.loader_like(loader, workers)


def is_feedlines(loader: Any) -> bool:
    return type(loader).__module__.split(".")[0] == "feedline"


def _drop_in(loader: Any, workers: int) -> Any:
    """The dataset is lowered again for this loader. The loader runs in a copied process, so it does not use the GPU."""
    changed = copy.copy(loader)
    settings: dict[str, Any] = {"num_workers": workers, "prefetch_factor": None, "persistent_workers": workers > 0}
    if workers > 0:
        settings["prefetch_factor"] = loader.prefetch_factor or 2
    else:
        settings["timeout"] = 0
    settings |= {"pin_memory": False, "device": None}
    changed.__dict__.update(settings)  # torch does not allow changing some of them
    return changed
