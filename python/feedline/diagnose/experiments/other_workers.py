# SPDX-License-Identifier: Apache-2.0
"""The script's own loader with another number of workers or, of Feedline's, threads: a rung of the ladder."""

from __future__ import annotations

from typing import Any

from feedline.diagnose.experiments import rungs


def can_be_made_again(loader: Any) -> bool:
    return hasattr(loader, "dataset") or _again(loader) is not None


def workers_of(loader: Any) -> int:
    if _again(loader) is not None:
        return int(loader.stats()["threads"])
    return int(loader.num_workers)


def fewest(loader: Any) -> int:
    """A Feedline loader has a thread at least."""
    return 0 if _again(loader) is None else 1


def with_workers(loader: Any, workers: int) -> Any:
    """A loader of the same samples in the same kind of order."""
    again = _again(loader)
    if again is not None:
        return again(num_workers=workers)
    return _drop_in(loader, workers) if is_feedlines(loader) else rungs.loader_like(loader, workers)


def is_feedlines(loader: Any) -> bool:
    return type(loader).__module__.split(".")[0] == "feedline"


def _again(loader: Any) -> Any:
    return loader.__dict__.get("_again") if type(loader).__module__ == "feedline.loader.loader" else None


def _drop_in(loader: Any, workers: int) -> Any:
    """Decides anew what it lowers. Nothing of a GPU's: it runs in a copied process."""
    again = loader._without_iterator()
    settings: dict[str, Any] = {"num_workers": workers, "prefetch_factor": None, "persistent_workers": workers > 0}
    if workers > 0:
        settings["prefetch_factor"] = loader.prefetch_factor or 2
    else:
        settings["timeout"] = 0
    settings |= {"pin_memory": False, "device": None, "_target_device": None}
    again.__dict__.update(settings)  # torch refuses to change some of them
    return again
