# SPDX-License-Identifier: Apache-2.0
"""The result of :meth:`Loader.stats`.

Totals, over all epochs of the loader: ``threads``; ``batches``, ``samples`` (delivered), ``bad_samples``; ``wall_s``
(from the first iteration to now or to the end of the last epoch); ``samples_per_s``, ``batches_per_s`` (over that
time); ``ready_batches`` (complete batches ready now); ``held_bytes``, ``held_bytes_peak`` (prefetched batches and
samples); ``budget_bytes``. ``cache``: None, or for :meth:`Dataset.cache`, over all processes that share it, ``where``,
``samples`` of the dataset, ``present`` of them, their ``bytes``, the limit ``budget_bytes`` (0: none), and ``full``: no
more are added. ``controller``: None if the number of threads was given, else the ``threads`` active now, their
``limit``, the maximum of ``batches_ahead``, how often either has ``changed``, and the latest 64 ``changes``: ``at_s``
since the first iteration, threads ``from`` and ``to``, ``ahead_from`` and ``ahead_to``, and ``why``. ``map``: None
without :meth:`Dataset.map`, else the ``calls`` of its functions, and over all threads ``run_s`` in them (included in
``transform``) and ``waited_s`` for the GIL before. ``mix``: None without ``mixup`` and ``cutmix``, else the ``batches``
and ``rows`` that they processed, and over all threads ``run_s`` (included in ``batch``). ``hedge``: None without
``open(..., hedge=True)``, else, for all loaders of the dataset, the second ``requests``, the number that ``won``, and
the ``dropped_bytes`` of discarded responses. ``stages`` maps the name of a stage (``storage``, ``decode``,
``transform``, ``batch``, ``consumer``) to its output in ``items`` and ``bytes`` (samples; whole batches for ``batch``
and ``consumer``), ``items_per_s``, ``bytes_per_s``; ``busy_s``, ``blocked_s`` (waiting for room downstream),
``starved_s`` (waiting for input), each summed over threads; and ``latency_ms``, the 50th and 99th percentile of the
time per item as ``p50`` and ``p99`` (None before the first item), within a factor of 2. :meth:`Statistics.as_dict`
returns the same as one flat dict of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_STAGE_HEADS = ("stage", "items", "items/s", "busy", "starved", "blocked", "p50", "p99")


class Statistics(dict[str, Any]):
    """Result of a loader's ``stats()``: a dict that also converts itself for loggers."""

    def as_dict(self, prefix: str = "loader/") -> dict[str, float]:
        """Returns every number under a unique name, for Weights & Biases and TensorBoard.

        ``wandb.log(loader.stats().as_dict())``, or ``writer.add_scalar(name, value, step)`` for each. A stage's numbers
        are named ``loader/decode/busy_s``, its percentiles ``loader/decode/latency_p50_ms``. Unknown values are left
        out. ``prefix`` precedes every name.
        """
        flat = {name: value for name, value in self.items() if isinstance(value, (int, float))}
        for stage, values in self.get("stages", {}).items():
            percentiles = values.get("latency_ms", {})
            numbers = {**values, **{f"latency_{name}_ms": value for name, value in percentiles.items()}}
            flat |= {f"{stage}/{name}": value for name, value in numbers.items() if isinstance(value, (int, float))}
        return {prefix + name: value for name, value in flat.items()}

    def __repr__(self) -> str:
        """Returns a readable summary, a line for each stage; ``dict(stats)`` has all values."""
        lines = [f"<feedline stats: {', '.join(f'{name} {value}' for name, value in self._totals())}"]
        rows = [list(_STAGE_HEADS), *self._stage_rows()]
        if len(rows) > 1:
            wide = [max(len(row[column]) for row in rows) for column in range(len(_STAGE_HEADS))]
            lines += [
                "  " + "  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]).rstrip() for row in rows
            ]
        return "\n".join(lines) + ">"

    def _repr_html_(self) -> str:
        from . import html_table

        return html_table.section("feedline stats", self._tables())

    def _tables(self) -> str:
        """Returns tables of the totals and the stages in HTML."""
        from . import html_table

        rows = self._stage_rows()
        return html_table.facts(self._totals()) + (html_table.grid(_STAGE_HEADS, rows) if rows else "")

    def _totals(self) -> list[tuple[str, str]]:
        return [
            (
                name.removesuffix("_s") if name.endswith("_s") and not name.endswith("per_s") else name,
                _shown(name, value),
            )
            for name, value in self.items()
            if isinstance(value, (int, float))
        ]

    def _stage_rows(self) -> list[list[str]]:
        return [
            [
                name,
                f"{stage['items']:,}",
                f"{stage['items_per_s']:,.1f}",
                *(_shown("_s", stage[f"{state}_s"]) for state in ("busy", "starved", "blocked")),
                *("" if stage["latency_ms"][p] is None else f"{stage['latency_ms'][p]:.2f} ms" for p in ("p50", "p99")),
            ]
            for name, stage in self.get("stages", {}).items()
        ]


def summary(raw: dict[str, Any]) -> Statistics:
    """Returns the engine's counters with rates and percentiles."""
    wall_s = raw["wall_s"]
    stages = {name: _stage(stage, wall_s) for name, stage in raw["stages"].items()}
    rates = {f"{name}_per_s": _rate(raw[name], wall_s) for name in ("samples", "batches")}
    return Statistics({**raw, **rates, "stages": stages})


def percentile_ms(histogram_us: Sequence[int], share: float) -> float | None:
    """Returns the percentile ``share`` of the items' time in milliseconds, or None without items.

    ``histogram_us[b]`` counts items of [2^b, 2^(b+1)) microseconds, assumed to be evenly spread within a bucket.
    """
    total = sum(histogram_us)
    below: float = 0
    for bucket, count in enumerate(histogram_us):
        if count and below + count >= share * total:
            return float(2**bucket * (1 + (share * total - below) / count) / 1000)
        below += count
    return None


def _stage(stage: dict[str, Any], wall_s: float) -> dict[str, Any]:
    histogram = stage["latency_us"]
    return {
        **{name: value for name, value in stage.items() if name != "latency_us"},
        "items_per_s": _rate(stage["items"], wall_s),
        "bytes_per_s": _rate(stage["bytes"], wall_s),
        "latency_ms": {"p50": percentile_ms(histogram, 0.50), "p99": percentile_ms(histogram, 0.99)},
    }


def _rate(count: int, wall_s: float) -> float:
    return count / wall_s if wall_s > 0 else 0.0


def _shown(name: str, value: float) -> str:
    """Formats a number in the unit at the end of its name."""
    if name.endswith("bytes") or "_bytes" in name or name.startswith("bytes_"):
        return f"{value / 2**20:,.1f} MiB"
    if name.endswith("per_s"):
        return f"{value:,.1f}"
    return f"{value:,.2f} s" if name.endswith("_s") else f"{value:,}"
