# SPDX-License-Identifier: Apache-2.0
"""For tests that hold every path of the engine against each other; no training needs it."""

from __future__ import annotations

from . import _engine
from .data import arguments
from .data.dataset import Dataset
from .data.facts import Drawn


def force_simd_variant(name: str) -> None:
    """Uses one of :func:`feedline.simd_variants` in the whole process; ``""`` is the best. Not while a loader runs.

    Raises:
        ConfigError: none of them.
    """
    _engine.force_simd_variant(name)


def draw_for_size(
    dataset: Dataset, height: int, width: int, index: int, *, seed: int = 0, epoch: int = 0
) -> list[Drawn]:
    """What the operations of ``dataset`` would decide for sample ``index`` if its image were of this size, in pixels.

    Nothing is read, and there need not be as many samples.

    Raises:
        ConfigError: a size below 1, or a number that is no integer.
    """
    where = "draw_for_size"
    rows = dataset._engine.draw_for_size(
        arguments.integer(where, "height", height, low=1),
        arguments.integer(where, "width", width, low=1),
        arguments.integer(where, "index", index, low=0, high=2**63 - 1),
        arguments.integer(where, "seed", seed, low=0, high=2**64 - 1),
        arguments.integer(where, "epoch", epoch, low=0, high=2**64 - 1),
    )
    return [Drawn(operation, name, tuple(values)) for operation, name, values in rows]
