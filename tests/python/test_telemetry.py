# SPDX-License-Identifier: Apache-2.0
"""stats() agrees with counts that are taken outside the engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Options
from running_processes import HANG_S

import feedline
from feedline.loader import statistics

EPOCHS = 3


def test_counts_are_the_true_ones(
    train: feedline.Dataset, folder: Path, config: Options, force: Callable[..., None]
) -> None:
    # on a busy machine, reads may take so long that they are prefetched, and buffers for them are kept
    force(read_ahead="never")
    started = time.perf_counter()
    with train.loader(4, shuffle=True, output="numpy", epochs=EPOCHS, **config(train, 4)) as loader:
        batches = samples = batch_bytes = 0
        for batch in loader:
            batches += 1
            samples += len(batch.label)
            batch_bytes += sum(field.nbytes for field in batch)
        stats = loader.stats()
    wall_s = time.perf_counter() - started
    file_bytes = sum(path.stat().st_size for path in folder.glob("*/*.jpg"))
    stages = stats["stages"]
    assert (stats["batches"], stats["samples"], stats["bad_samples"]) == (batches, samples, 0)
    assert samples == EPOCHS * 21
    assert stages["storage"]["bytes"] == EPOCHS * file_bytes
    for stage in ("storage", "decode", "transform"):
        assert stages[stage]["items"] == samples, stage
    image_bytes = batch_bytes - 8 * samples
    assert stages["transform"]["bytes"] == image_bytes
    assert 0 < stats["wall_s"] <= wall_s
    assert stats["held_bytes"] == 0
    assert 0 < stats["held_bytes_peak"] <= stats["budget_bytes"]
    busy_s = sum(stage["busy_s"] for name, stage in stages.items() if name != "consumer")
    assert 0 < busy_s <= wall_s * stats["threads"] * 1.05 + 0.01
    assert stats["samples_per_s"] == pytest.approx(samples / stats["wall_s"])
    for stage in ("storage", "decode", "transform"):
        latency = stages[stage]["latency_ms"]
        assert 0 < latency["p50"] <= latency["p99"]
        # every item took at most as long as all of them together
        assert latency["p50"] <= 2000 * stages[stage]["busy_s"] / samples * 2 + 1


def test_decoded_bytes_are_the_needed_regions(folder: Path) -> None:
    dataset = feedline.open(folder).random_resized_crop(16)
    with dataset.loader(4, epochs=1, output="numpy") as loader:
        for _ in loader:
            pass
        decoded = loader.stats()["stages"]["decode"]["bytes"]
    crops = [dataset.draw(i)[0].values for i in range(len(dataset))]
    assert decoded == sum(3 * int(width) * int(height) for _, _, width, height in crops)


def test_threads_and_budget_as_asked(train: feedline.Dataset) -> None:
    with train.loader(4, num_workers=3, memory_budget="64 MiB", output="numpy") as loader:
        list(loader)
        stats = loader.stats()
    assert stats["threads"] == 3
    assert stats["budget_bytes"] == 64 * 1024**2
    with train.loader(4, num_workers=0, output="numpy") as loader:
        assert loader.stats()["threads"] in (0, 1)  # before they start, or as planned
        next(iter(loader))
        assert loader.stats()["threads"] == 1


def test_a_slow_consumer_shows_as_blocked_a_slow_engine_as_starved(
    train: feedline.Dataset, folder: Path, force: Callable[..., None]
) -> None:
    until = time.monotonic() + HANG_S  # a thread that gets no CPU is not blocked
    with train.loader(2, output="numpy", num_workers=1, memory_budget="60 kB", epochs=10**6) as loader:  # two batches
        for _ in loader:
            time.sleep(0.02)
            if loader.stats()["stages"]["batch"]["blocked_s"] > 0.05 or time.monotonic() > until:
                break
        assert loader.stats()["stages"]["batch"]["blocked_s"] > 0.05
    force(read_latency=0.02)
    with feedline.open(folder).resize((32, 32)).loader(2, output="numpy", num_workers=1) as loader:
        for _ in loader:
            pass
        starved = loader.stats()["stages"]["consumer"]["starved_s"]
    assert starved > 0.01


def test_percentiles() -> None:
    assert statistics.percentile_ms([], 0.5) is None
    assert statistics.percentile_ms([0, 0], 0.5) is None
    assert statistics.percentile_ms([0, 4], 0.5) == pytest.approx(0.003)
    assert statistics.percentile_ms([10, 0, 0, 90], 0.99) == pytest.approx(0.008 * (1 + 89 / 90))
    assert statistics.percentile_ms([1] * 10, 0.5) == pytest.approx(0.032)


def test_explain_names_what_runs(train: feedline.Dataset) -> None:
    with train.loader(4, shuffle=True, seed=77, output="numpy") as loader:
        text = loader.explain()
    for word in ("21", "77", "float32", "random_resized_crop", "memory", "threads"):
        assert word in text
    assert "random_resized_crop" in train.explain()
    assert "random_resized_crop" in repr(train)
