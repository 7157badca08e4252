# SPDX-License-Identifier: Apache-2.0
"""Statistics of a loader for experiment loggers, as a flat dict with stable names."""

from __future__ import annotations

import time
from typing import Any

from ..loader.statistics import Statistics


class Meter:
    """Returns a loader's statistics as a flat dict of numbers each time it is called.

    ::

        meter = Meter(loader)
        for step, batch in enumerate(loader):
            ...
            if step % 50 == 0:
                wandb.log(meter(), step)                 # or mlflow.log_metrics, accelerator.log, an ignite logger

    Call it in the thread that iterates over the loader. A call only reads counters.
    """

    def __init__(self, loader: Any, prefix: str = "data/") -> None:
        """`loader`: :class:`feedline.DataLoader`, :class:`feedline.Loader`, or Accelerate's wrapper of the former.

        `prefix`: text prepended to every name.

        Raises:
            TypeError: the loader has a different type.
        """
        ours = feedline_loader(loader)
        if ours is None:
            raise TypeError(f"Meter: {type(loader).__qualname__} is not a Feedline loader")
        self._loader, self._prefix = ours, prefix
        self._before = self._totals()
        self._at_s = time.monotonic()

    def __call__(self) -> dict[str, float]:
        """Returns the current numbers.

        The dict contains ``epoch``; ``batches`` delivered and ``wait_s``, the seconds spent in ``next()``, in the
        current epoch for a DataLoader and in all epochs for a Loader; ``bad_samples`` in all epochs; and
        ``held_bytes``. ``batches_per_s`` and ``wait_share`` (0 to 1) are measured since the previous call, or since the
        meter was created. In the first call after an epoch began, both count only that epoch's batches and waits.
        ``wait_s`` and ``wait_share`` are missing if waits are not measured, as in a DataLoader that reads in the
        calling thread.
        """
        now_s, now = time.monotonic(), self._totals()
        before, passed_s = self._before, max(now_s - self._at_s, 1e-9)
        self._before, self._at_s = now, now_s
        if now["batches"] < before["batches"] or (now["epoch"] != before["epoch"] and not self._is_lifelong()):
            before = {}
        shown = dict(now)
        shown["batches_per_s"] = (now["batches"] - before.get("batches", 0.0)) / passed_s
        if "wait_s" in now:
            waited_s = now["wait_s"] - before.get("wait_s", 0.0)
            shown["wait_share"] = min(1.0, max(0.0, waited_s / passed_s))
        return {self._prefix + name: value for name, value in shown.items()}

    def _is_lifelong(self) -> bool:
        """Returns whether the loader's counters include all its epochs."""
        return not hasattr(self._loader, "_progress")

    def _totals(self) -> dict[str, float]:
        stats = self._loader.stats()
        found = {name: stats.get(name) for name in ("batches", "bad_samples", "wait_s")}
        found["epoch"] = stats.get("epoch", getattr(self._loader, "epoch", None))
        found["held_bytes"] = stats.get("bytes_held", stats.get("held_bytes"))
        if "stages" in stats:
            found["wait_s"] = stats["stages"]["consumer"]["starved_s"]
        return {name: float(value) for name, value in found.items() if value is not None}


def feedline_loader(loader: Any) -> Any:
    """Returns `loader`, or the loader that Accelerate has wrapped; None if neither is Feedline's."""
    for found in (loader, getattr(loader, "base_dataloader", None)):
        stats = getattr(found, "stats", None)
        if callable(stats) and isinstance(stats(), Statistics):
            return found
    return None
