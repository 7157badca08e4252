# SPDX-License-Identifier: Apache-2.0
"""Parts of a record that several subcommands write."""

from __future__ import annotations

from typing import Any


def figure(
    name: str,
    label: str,
    unit: str,
    value: float,
    low: float | None = None,
    high: float | None = None,
    *,
    better: str | None,
) -> dict[str, Any]:
    """Returns an entry of a record's ``figures``."""
    return {"name": name, "label": label, "unit": unit, "value": value, "low": low, "high": high, "better": better}


def link(
    name: str,
    ms_per_batch: float | None,
    bytes_per_s: float | None,
    note: str,
    at_once: float = 1,
    title: str | None = None,
) -> dict[str, Any]:
    """Returns an entry of a record's ``chain``. `at_once`: number of concurrent batches, such as one per worker.
    `title`: shown instead of the usual title of `name`; "" to show nothing.
    """
    made = {"name": name, "ms_per_batch": ms_per_batch, "bytes_per_s": bytes_per_s, "note": note}
    made |= {} if title is None else {"title": title}
    return made if at_once <= 1 else {**made, "at_once": at_once}
