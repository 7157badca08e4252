# SPDX-License-Identifier: Apache-2.0
"""What a rung tries: the settings of a loader, and the limits that they must keep."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

TORCH, DROP_IN, SOURCE = "torch", "feedline", "source"


@dataclass(frozen=True)
class Setting:
    """Settings of one loader: torch's DataLoader, our drop-in, or ``Dataset.loader`` over a source.

    `num_workers` are threads for a source; `auto` is its ``num_workers="auto"``, which begins with so many and adapts
    them. `memory_budget` is a source's alone (bytes held ahead; None: the engine's
    choice), `prefetch_factor`, `persistent_workers` and `pin_memory` are the other two's.
    """

    loader: str
    num_workers: int
    prefetch_factor: int | None = None
    persistent_workers: bool = False
    pin_memory: bool = False
    batch_size: int | None = None
    memory_budget: int | None = None
    auto: bool = False

    def but(self, **changes: Any) -> Setting:
        """The same with changes, and with what torch insists on: without workers nothing is fetched ahead.

        A number of workers that is given is no longer ``"auto"``.
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
        """Of torch's protocol: what the workers have made or are making, and the one in the training loop."""
        return self.num_workers * (self.prefetch_factor or 0) + 1


def words(setting: Setting) -> str:
    """For a table: ``4 workers, prefetch 2``."""
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
        parts += ["pinned"] * setting.pin_memory + ["persistent"] * setting.persistent_workers
    if setting.batch_size is not None:
        parts.append(f"batch {setting.batch_size}")
    return ", ".join(parts)


@dataclass(frozen=True)
class Options:
    """What the user allows."""

    budget_s: float = 60.0
    cpus: int | None = None  # None: this rank's share of those that may be used
    memory: int | None = None  # bytes of batches ahead; None: a quarter of what is left
    batch_sizes: tuple[int, int] | None = None  # from, to; None: the batch size stays
    keep_running: bool = False  # a script, when its loader has been measured


@dataclass(frozen=True)
class Limits:
    """What settings may take."""

    cpus: int  # that the loader may keep busy
    memory: int  # bytes of batches held ahead
    most_workers: int
    batch_sizes: tuple[int, int] | None = None  # from, to; None: the batch size stays
    gpu: bool = False
    ahead: int = 0  # bytes that a source's loader holds ahead by its own choice
