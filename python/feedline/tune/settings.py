# SPDX-License-Identifier: Apache-2.0
"""A loader's settings and the limits that they must respect."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import SettingsWarning as SettingsWarning  # this and the next were defined here: imports still work
from ..loader.tuned_settings import load_settings as load_settings

TORCH, DROP_IN, SOURCE = "torch", "feedline", "source"


@dataclass(frozen=True)
class Setting:
    """Settings of one loader, which is torch's DataLoader, Feedline's DataLoader, or ``Dataset.loader`` over a
    source.

    For a source, `num_workers` is the number of threads, and `auto` means ``num_workers="auto"``, which starts with
    that number and adapts it. `memory_budget` (bytes prefetched; None for the engine's choice) is only for a source;
    `prefetch_factor`, `persistent_workers`, `pin_memory` and `non_blocking` are for the two other loaders.
    """

    loader: str
    num_workers: int
    prefetch_factor: int | None = None
    persistent_workers: bool = False
    pin_memory: bool = False
    batch_size: int | None = None
    memory_budget: int | None = None
    auto: bool = False
    non_blocking: bool = False  # whether the loop copies batches to the GPU without waiting; only for a ladder

    def but(self, **changes: Any) -> Setting:
        """Returns a changed copy that torch accepts: without workers, nothing is prefetched.

        An explicit number of workers replaces ``"auto"``.
        """
        changed = replace(self, **{"auto": self.auto and "num_workers" not in changes, **changes})
        if changed.loader == SOURCE:
            return changed
        workers = changed.num_workers
        return replace(
            changed,
            prefetch_factor=(changed.prefetch_factor or 2) if workers else None,
            persistent_workers=changed.persistent_workers and workers > 0,
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def batches_ahead(self) -> int:
        """Returns the number of batches that exist at the same time in torch's protocol: batches that workers have
        produced or are producing, and the batch in the training loop.
        """
        return self.num_workers * (self.prefetch_factor or 0) + 1


def words(setting: Setting) -> str:
    """Formats a setting for a table, such as ``4 workers, prefetch 2``."""
    if setting.loader == SOURCE:
        threads = f"{setting.num_workers} thread{'s' * (setting.num_workers != 1)}"
        parts = [f"auto ({threads})" if setting.auto else threads]
        if setting.memory_budget is not None:
            parts.append(f"{setting.memory_budget / 1e6:.0f} MB ahead")
    else:
        parts = ["Feedline"] if setting.loader == DROP_IN else []
        parts.append(f"{setting.num_workers} worker{'s' * (setting.num_workers != 1)}")
        if setting.prefetch_factor not in (None, 2):
            parts.append(f"prefetch {setting.prefetch_factor}")
        parts += ["pinned"] * setting.pin_memory + ["non_blocking"] * setting.non_blocking
        parts += ["persistent"] * setting.persistent_workers
    if setting.batch_size is not None:
        parts.append(f"batch {setting.batch_size}")
    return ", ".join(parts)


@dataclass(frozen=True)
class Options:
    """Limits set by the user."""

    budget_s: float = 60.0
    cpus: int | None = None  # None: this rank's share of the available ones
    memory: int | None = None  # bytes of prefetched batches; None: a quarter of the free memory
    batch_sizes: tuple[int, int] | None = None  # from, to; None: the batch size is fixed
    keep_running: bool = False  # of a script, after its loader has been measured
    ladder: bool = False  # whether to run a script again for each measurement


@dataclass(frozen=True)
class Limits:
    """Limits on the resources that settings may use."""

    cpus: int  # that the loader may use
    memory: int  # bytes of prefetched batches
    most_workers: int
    batch_sizes: tuple[int, int] | None = None  # from, to; None: the batch size is fixed
    gpu: bool = False
    ahead: int = 0  # bytes that a source's loader prefetches by default
    advised_workers: int = 0  # for a ladder, based on cores and storage
