# SPDX-License-Identifier: Apache-2.0
"""Which part of a loader runs in the engine's native threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol


class LoweredPlan(Protocol):
    """A loader, or a prefix of its pipeline, that runs natively."""

    stages: list[Stage]

    def iterate(self, loader: Any) -> Iterator[Any]:
        """Batches of one epoch, in the order of the loader's own samplers."""
        ...


@dataclass(frozen=True)
class Stage:
    """One line of `explain()`."""

    name: str
    what: str
    runs: str
    why: str


@dataclass(frozen=True)
class Reason:
    """Nothing is lowered: what each stage does instead, and why."""

    stages: list[Stage]


def plan_lowering(loader: Any) -> LoweredPlan | Reason:
    """What of `loader` runs natively. At present nothing does, whatever it is made of."""
    where = _where(loader)
    why = 'lower="never"' if loader.lower == "never" else "nothing is lowered yet"
    transform = getattr(loader.dataset, "transform", None)
    stages = [Stage("order", type(loader._index_sampler).__name__, "Python, in this process", "samplers are yours")]
    stages.append(Stage("read", type(loader.dataset).__qualname__, where, why))
    if transform is not None:
        stages.append(Stage("transform", type(transform).__qualname__, where, why))
    collate = getattr(loader.collate_fn, "__qualname__", type(loader.collate_fn).__qualname__)
    stages.append(Stage("collate", collate, where, why))
    return Reason(stages)


def _where(loader: Any) -> str:
    if loader.num_workers == 0:
        return "Python, in this process"
    kind = "threads" if loader.worker_method == "thread" else "processes"
    return f"Python, in {loader.num_workers} worker {kind}"
