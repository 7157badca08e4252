# SPDX-License-Identifier: Apache-2.0
"""Combinations that are not drawn because of faults that are known and not yet mended. Empty is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .case import Case


def is_excluded(case: Case) -> bool:
    return (
        case.source in ("jsonl of text", "csv of text", "lists without elements")
        or case.way in ("pickled", "shared_iterator", "resume_elsewhere")
        or case.door == "odd values"
        or (case.options.get("batch_size") or 0) > 10**6
        or case.source == "bmp"
        or (case.options.get("dtype") == "bfloat16" and any(name == "map" for name, _ in case.steps))
    )
