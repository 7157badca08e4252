# SPDX-License-Identifier: Apache-2.0
"""Samples are read at random from compressed blocks, which are decompressed again and again."""

from __future__ import annotations

from dataclasses import replace

from feedline.diagnose.rules import gains, production, signals
from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Gain, Rule
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import NAMED
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary

MOST_PER_BYTE = Threshold(4.0, "maximum bytes decompressed per byte delivered; a loader with more warns when created")


def _evaluate(analysis: Analysis) -> Found | None:
    making = analysis.summary.making
    if making.blocks is None or making.blocks.per_byte <= MOST_PER_BYTE:
        return None
    stage = "decode" if analysis.stages.get("decode") else "collate"
    share = min(analysis.production * making.reading, analysis.stage_share(stage))
    if share < NAMED:
        return None
    analysis.take_part(stage, share)
    evidence = f"{making.blocks.per_byte:.0f} bytes were decompressed per byte delivered"
    return Found(share, 0.92, [*production.evidence(analysis), evidence], needs=production.NEEDS)


def _gain(summary: Summary, _share: float) -> Gain:
    """Without the bytes that are decompressed but not delivered."""
    making, batch = summary.making, prediction.batch_of(summary)
    if making.blocks is None:
        return 0.0, 0.0
    running = 1.0 - (making.stages or {}).get("storage", 0.0)
    gone = making.reading * (1.0 - 1.0 / max(making.blocks.per_byte, 1.0))
    return gains.of_batch(summary, replace(batch, cpu=batch.cpu * max(1.0 - gone / max(running, 1e-9), 0.0)))


CAUSE = Cause(
    Entry(
        code="compressed_blocks",
        verb="diagnose",
        title="compressed blocks are read at random",
        means="Pages of Parquet files and record batches of Arrow files are decompressed as a whole, even to read one "
        "sample. Samples in random order need blocks that fit neither into memory nor into the cache folder, so the "
        "same blocks are decompressed for each of their samples.",
        recognised="Compares the bytes that Feedline's threads decompressed with the bytes of the samples, while the "
        "loop waits. The time is the CPU time of reading samples.",
        to_do="Read row groups or record batches in random order instead of samples, or make room for decompressed "
        "blocks in the cache folder.",
        abstains="The stages of a batch were not observed, or the batches are made by Python code.",
        example="120 bytes were decompressed per byte delivered.",
    ),
    rules=(Rule(165, _evaluate),),
    fix=Fix(
        'Read row groups or record batches in random order: shuffle="shards"; or set XDG_CACHE_HOME to a folder with '
        "enough free space for the decompressed blocks.",
        lowered='Read row groups or record batches in random order: feedline.open(SOURCE).loader(shuffle="shards", '
        "...); or set XDG_CACHE_HOME to a folder with enough free space for the decompressed blocks.",
    ),
    gain=_gain,
    signals=(signals.WORKERS, signals.STAGES),
)
