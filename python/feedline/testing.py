# SPDX-License-Identifier: Apache-2.0
"""For tests that hold every path of the engine against each other; no training needs it."""

from __future__ import annotations

from . import _engine


def force_simd_variant(name: str) -> None:
    """Uses one of :func:`feedline.simd_variants` in the whole process; ``""`` is the best. Not while a loader runs.

    Raises:
        ConfigError: none of them.
    """
    _engine.force_simd_variant(name)
