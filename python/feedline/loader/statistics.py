# SPDX-License-Identifier: Apache-2.0
"""The result of :meth:`Loader.stats`: a dict of totals over all epochs of the loader, and of counters for each stage.

Totals:

- ``threads``: number of threads.
- ``batches``, ``samples``: number of delivered batches and samples.
- ``bad_samples``: number of bad samples.
- ``wall_s``: seconds from the first iteration to now, or to the end of the last epoch.
- ``samples_per_s``, ``batches_per_s``: mean rates over ``wall_s``.
- ``ready_batches``: number of complete batches that are ready now.
- ``held_bytes``, ``held_bytes_peak``: current and largest size of prefetched batches and samples.
- ``budget_bytes``: limit of ``held_bytes``.

Entries that are None if they do not apply:

- ``cache``: state of :meth:`Dataset.cache`, over all processes that share the cache: ``where``, the number of
  ``samples`` of the dataset, the number that are ``present``, their ``bytes``, the limit ``budget_bytes`` (0 means no
  limit), and whether the cache is ``full``, so that no samples are added.
- ``controller``: state of ``num_workers="auto"``: the number of active ``threads``, their ``limit``, the limit
  ``batches_ahead`` of prefetched batches, the number of times that either has ``changed``, and the latest 64
  ``changes``. Each change has ``at_s``, the seconds since the first iteration, the numbers of threads ``from`` and
  ``to``, the numbers of batches ``ahead_from`` and ``ahead_to``, and the reason ``why``.
- ``map``: ``calls`` of the functions of :meth:`Dataset.map`; ``run_s``, the time spent in them over all threads, which
  is included in ``transform``; and ``waited_s``, the time spent waiting for the GIL before the calls.
- ``mix``: ``batches`` and ``rows`` that ``mixup`` and ``cutmix`` processed, and ``run_s``, the time spent in them over
  all threads, which is included in ``batch``.
- ``hedge``: for ``open(..., hedge=True)``, over all loaders of the dataset: the number of second ``requests``, the
  number of these that ``won``, and ``dropped_bytes``, the size of discarded responses.
- ``checkpoints``: for JPEGs with checkpoints (docs/patches.md), the number of ``images`` that have any, their ``bytes``
  and the ``path`` of their file; the numbers of this process's decodes that ``used`` them, ``made`` new ones, or
  started from the beginning because the image had ``changed`` or its checkpoints were ``damaged``; the number of
  ``dropped`` ones; and ``failure``, the reason why they could not be stored, or ``""``. Of remote images, ``ranges``
  crops were decoded from a range of the file; the ranges had ``range_bytes``, and the whole images
  ``range_image_bytes``. For ``refused_ranges`` more, the whole image was fetched, because it had changed or the request
  failed.
- ``blocks``: for compressed pages of Parquet files and record batches of Arrow files, over all loaders of the dataset:
  the number of ``blocks`` that were decompressed, their ``bytes`` after decompression, and ``delivered_bytes``, the
  size of the values that were read.

- ``video``: for clips, the number of decoders that were opened (``opens``) and the time it took (``open_s``); the
  ``frames`` that were decoded, wanted or not; ``bytes_fetched`` from files, and ``bytes_used``, the size of the packets
  that were decoded; ``decoder_budget``, and ``decoder_bytes_peak``, the largest estimated memory of decoders that were
  open at once.

``stages`` maps the name of each stage (``storage``, ``decode``, ``transform``, ``batch``, ``consumer``) to a dict:

- ``items``, ``bytes``: output of the stage, counted in batches for ``batch`` and ``consumer``, and in samples for the
  other stages.
- ``items_per_s``, ``bytes_per_s``: mean rates over ``wall_s``.
- ``busy_s``, ``blocked_s``, ``starved_s``: time spent working, waiting for room downstream, and waiting for input,
  each summed over threads.
- ``latency_ms``: the 50th and 99th percentile of the time per item as ``p50`` and ``p99``, accurate to a factor of 2;
  None before the first item.

:meth:`Statistics.as_dict` returns the same statistics as one flat dict of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Counters of one engine loader, which add up over the engine loaders of a Loader. The other entries are states, or
# count over all loaders of a dataset.
_COUNTERS = {
    "": ("batches", "samples", "bad_samples", "wall_s"),
    "map": ("calls", "run_s", "waited_s"),
    "mix": ("batches", "rows", "run_s"),
    "video": ("opens", "open_s", "frames", "bytes_fetched", "bytes_used"),
}
_STAGE_COUNTERS = ("items", "bytes", "busy_s", "blocked_s", "starved_s")
_STAGE_HEADS = ("stage", "items", "items/s", "busy", "starved", "blocked", "p50", "p99")


class Statistics(dict[str, Any]):
    """Result of a loader's ``stats()``: a dict that can convert itself for loggers."""

    def as_dict(self, prefix: str = "loader/") -> dict[str, float]:
        """Returns every number under a unique name, as loggers such as Weights & Biases and TensorBoard require.

        Use ``wandb.log(loader.stats().as_dict())``, or ``writer.add_scalar(name, value, step)`` for each number. A
        stage's numbers have names such as ``loader/decode/busy_s``, and its percentiles
        ``loader/decode/latency_p50_ms``. Unknown values are omitted. ``prefix`` is prepended to every name.
        """
        flat = {name: value for name, value in self.items() if isinstance(value, (int, float))}
        for stage, values in self.get("stages", {}).items():
            percentiles = values.get("latency_ms", {})
            numbers = {**values, **{f"latency_{name}_ms": value for name, value in percentiles.items()}}
            flat |= {f"{stage}/{name}": value for name, value in numbers.items() if isinstance(value, (int, float))}
        return {prefix + name: value for name, value in flat.items()}

    def __repr__(self) -> str:
        """Returns a readable summary with one line per stage; ``dict(stats)`` has all values."""
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
        """Returns HTML tables of the totals and the stages."""
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
    """Returns the engine's counters together with rates and percentiles."""
    wall_s = raw["wall_s"]
    stages = {name: _stage(stage, wall_s) for name, stage in raw["stages"].items()}
    rates = {f"{name}_per_s": _rate(raw[name], wall_s) for name in ("samples", "batches")}
    return Statistics({**raw, **rates, "stages": stages})


def added(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the counters of two engine loaders that followed each other: their sums, the larger peaks, and the
    latter's states.
    """
    total = dict(now)
    for group, names in _COUNTERS.items():
        if not group:
            total |= _sums(before, now, names)
        elif before[group] and now[group]:
            total[group] = {**now[group], **_sums(before[group], now[group], names)}
    total["held_bytes_peak"] = max(before["held_bytes_peak"], now["held_bytes_peak"])
    if before["video"] and now["video"]:
        peaks = (stats["video"]["decoder_bytes_peak"] for stats in (before, now))
        total["video"]["decoder_bytes_peak"] = max(peaks)
    total["stages"] = {
        name: _added_stage(before["stages"][name], stage) if name in before["stages"] else stage
        for name, stage in now["stages"].items()
    }
    return total


def _added_stage(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    histogram = [a + b for a, b in zip(before["latency_us"], now["latency_us"], strict=True)]
    return {**now, **_sums(before, now, _STAGE_COUNTERS), "latency_us": histogram}


def _sums(before: Mapping[str, Any], now: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: before[name] + now[name] for name in names}


def percentile_ms(histogram_us: Sequence[int], share: float) -> float | None:
    """Returns the percentile ``share`` of the time per item in milliseconds, or None if there are no items.

    ``histogram_us[b]`` counts items that took [2^b, 2^(b+1)) microseconds. Items are assumed to be evenly spread within
    a bucket.
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
    """Formats a number in the unit that the end of its name states."""
    if name.endswith("bytes") or "_bytes" in name or name.startswith("bytes_"):
        return f"{value / 2**20:,.1f} MiB"
    if name.endswith("per_s"):
        return f"{value:,.1f}"
    return f"{value:,.2f} s" if name.endswith("_s") else f"{value:,}"
