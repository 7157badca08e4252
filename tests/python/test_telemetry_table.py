# SPDX-License-Identifier: Apache-2.0
"""Every field of ``stats()`` is compared with a count that is taken outside the engine, for every kind of source.

The tables below have a row for each field: its expected value, exactly or within bounds, from file sizes, decoded
images, received arrays and clocks that are read around the loop. A field without a row fails the test, so a new field
must state what it counts.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import made_data
import numpy
import pytest
from PIL import Image

import feedline
from feedline import record
from feedline.bench.record import of_bench

EPOCHS = 3
BATCH = 4
SIDE = 32
KEPT = (40, 44)
STAGES = ("storage", "decode", "transform", "batch", "consumer")


Count = int | tuple[int, int]  # exactly, or its bounds


@dataclass
class Source:
    """The data, and what is known about it without the engine. For one epoch unless stated otherwise."""

    dataset: feedline.Dataset
    samples: int
    reads: Count  # of all epochs: samples that a thread decoded, of all epochs
    read_bytes: Count  # of all epochs
    images: Count = 0  # decoded, of all epochs
    decoded_bytes: Count = 0  # of all epochs
    transformed: Count = 0  # images, of all epochs
    bad: int = 0  # of all epochs
    cache: Mapping[str, Any] | None = None
    mapped: list[float] | None = None  # how long each call of map()'s function took
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Run:
    """A loop over a source, counted outside the engine."""

    source: Source
    threads: int | None  # as given
    budget: int | None  # as given
    batches: int = 0
    samples: int = 0
    bytes: int = 0
    image_bytes: int = 0
    largest_batch: int = 0
    wall_s: float = 0.0
    looks: list[dict[str, Any]] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    histograms: dict[str, list[int]] = field(default_factory=dict)

    @property
    def peak_seen(self) -> int:
        return max(look["held_bytes"] for look in self.looks)


def run_of(source: Source, threads: int | None = 2, budget: int | None = None) -> Run:
    run = Run(source, threads, budget)
    options = {"num_workers": threads or "auto", "memory_budget": budget, **source.options}
    with source.dataset.loader(BATCH, epochs=EPOCHS, output="numpy", **options) as loader:
        began = time.perf_counter()
        for batch in loader:
            run.batches += 1
            run.samples += len(batch[-1])
            size = sum(one.nbytes for one in batch)
            run.bytes += size
            run.largest_batch = max(run.largest_batch, size)
            run.image_bytes += batch[0].nbytes if source.transformed else 0
            run.looks.append(loader.stats())
        run.stats = loader.stats()
        run.wall_s = time.perf_counter() - began
        run.looks.append(run.stats)
        run.histograms = {name: stage["latency_us"] for name, stage in loader._counters()["stages"].items()}
    return run


# ---- the tables: a field, and its expected value: a number, or bounds ----

Bounds = tuple[float, float]
Row = Callable[[Run], Any]


def threads_of(run: Run) -> int:
    return int(run.stats["threads"])


LOADER: dict[str, Row] = {
    "threads": lambda run: run.threads or (1, len(os.sched_getaffinity(0))),
    "batches": lambda run: run.batches,
    "samples": lambda run: run.samples,
    "bad_samples": lambda run: run.source.bad,
    "wall_s": lambda run: (1e-9, run.wall_s),
    "samples_per_s": lambda run: run.samples / run.stats["wall_s"],
    "batches_per_s": lambda run: run.batches / run.stats["wall_s"],
    "ready_batches": lambda run: 0,
    "held_bytes": lambda run: 0,
    "held_bytes_peak": lambda run: (max(run.peak_seen, run.largest_batch), run.stats["budget_bytes"]),
    "budget_bytes": lambda run: run.budget or (run.largest_batch, memory_bytes()),
}


def transformed_bytes(run: Run) -> Count:
    """The received items, and at most as many as were transformed."""
    count = run.source.transformed
    return (run.image_bytes, count[1] * SIDE * SIDE * 3 * 4) if isinstance(count, tuple) else run.image_bytes


def finished(run: Run) -> Count:
    """Batches. The last one of an epoch may be full before its samples are removed to refill earlier batches."""
    taken = EPOCHS if run.source.options.get("on_error") == "skip" else 0
    return (run.batches, run.batches + taken) if taken else run.batches


def finished_bytes(run: Run) -> Count:
    most = run.bytes + EPOCHS * run.largest_batch
    return (run.bytes, most) if isinstance(finished(run), tuple) else run.bytes


# items and bytes of each stage; feedline.statistics describes what each counts
PUT_OUT: dict[str, tuple[Row, Row]] = {
    "storage": (lambda run: run.source.reads, lambda run: run.source.read_bytes),
    "decode": (lambda run: run.source.images, lambda run: run.source.decoded_bytes),
    "transform": (lambda run: run.source.transformed, transformed_bytes),
    "batch": (finished, finished_bytes),
    "consumer": (lambda run: run.batches, lambda run: run.bytes),
}
# threads over which a stage's times are summed; if nothing waits for room or input, there is nothing to sum
WORKED_BY: dict[str, Callable[[Run], int]] = {**dict.fromkeys(STAGES, threads_of), "consumer": lambda run: 1}
BLOCKS, STARVES = ("batch",), ("batch", "consumer")


def stage_rows(name: str) -> dict[str, Row]:
    items, counted = PUT_OUT[name]

    def most_s(run: Run) -> float:
        return WORKED_BY[name](run) * run.wall_s

    def rate(count: Row) -> Row:
        kind = "items" if count is items else "bytes"

        def per_s(run: Run) -> float:
            counted = count(run)
            return float(stage(run)[kind] if isinstance(counted, tuple) else counted) / run.stats["wall_s"]

        return per_s

    def stage(run: Run) -> dict[str, Any]:
        return run.stats["stages"][name]

    def percentile(run: Run) -> Any:  # at least one item took this long, and all together no longer than the stage
        return (0, 2 * 1000 * stage(run)["busy_s"] + 0.002) if stage(run)["items"] else None

    return {
        "items": items,
        "bytes": counted,
        "items_per_s": rate(items),
        "bytes_per_s": rate(counted),
        "busy_s": lambda run: (1e-9 if stage(run)["items"] else 0, most_s(run)),
        "blocked_s": lambda run: (0, most_s(run) if name in BLOCKS else 0),
        "starved_s": lambda run: (0, most_s(run) if name in STARVES else 0),
        "latency_ms.p50": percentile,
        "latency_ms.p99": percentile,
    }


CACHE: dict[str, Row] = {
    name: (lambda run, name=name: run.source.cache[name])
    for name in ("where", "samples", "present", "bytes", "budget_bytes", "full")
}
CONTROLLER: dict[str, Row] = {
    "threads": lambda run: (1, run.stats["controller"]["limit"]),
    "limit": lambda run: (1, len(os.sched_getaffinity(0))),
    "batches_ahead": lambda run: (1, run.stats["budget_bytes"] // run.largest_batch),
    "changed": lambda run: len(run.stats["controller"]["changes"]),  # below 64, all are listed
    "changes": lambda run: run.stats["controller"]["changes"],  # test_changes_lead_to_what_is_now
}


MAP: dict[str, Row] = {
    "calls": lambda run: len(run.source.mapped) - 1,  # the first call determined its dtype and shape
    "run_s": lambda run: (sum(run.source.mapped[1:]), threads_of(run) * run.wall_s),
    "waited_s": lambda run: (0, threads_of(run) * run.wall_s),
}


MIX: dict[str, Row] = {
    "batches": lambda run: run.batches,
    "rows": lambda run: run.samples,
    "run_s": lambda run: (1e-9, run.stats["stages"]["batch"]["busy_s"]),
}


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def table_of(run: Run) -> dict[str, Row]:
    rows = dict(LOADER)
    for name in STAGES:
        rows |= {f"stages.{name}.{key}": row for key, row in stage_rows(name).items()}
    rows |= {f"cache.{key}": row for key, row in CACHE.items()} if run.source.cache else {"cache": lambda run: None}
    rows |= {"map": lambda run: None} if run.source.mapped is None else {f"map.{key}": row for key, row in MAP.items()}
    mixed = "mixup" in run.source.options
    rows |= {f"mix.{key}": row for key, row in MIX.items()} if mixed else {"mix": lambda run: None}
    rows["checkpoints"] = lambda run: None  # of large JPEGs: tests/python/test_checkpoints.py
    rows["hedge"] = lambda run: None  # of URLs: tests/python/remote/test_verification.py
    rows["blocks"] = lambda run: None  # of compressed tables: tests/python/test_block_store.py
    rows["video"] = lambda run: None  # of videos: tests/python/test_videos.py
    auto = run.threads is None
    rows |= {f"controller.{key}": r for key, r in CONTROLLER.items()} if auto else {"controller": lambda run: None}
    return rows


def fields_of(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from fields_of(inner, f"{prefix}{name}.")
        else:
            yield prefix + name, inner


def assert_as_counted(run: Run) -> None:
    table, found = table_of(run), dict(fields_of(run.stats))
    assert found.keys() == table.keys(), "a field without a row, or a row without its field"
    wrong = {}
    for name, value in found.items():
        due = table[name](run)
        if isinstance(due, tuple):
            right = due[0] <= value <= due[1]
        else:
            right = value == (pytest.approx(due) if isinstance(due, float) else due)
        if not right:
            wrong[name] = f"is {value!r}, counted outside: {due!r}"
    assert not wrong


# ---- sources ----


def photo_sizes(folder: Path) -> list[tuple[int, int]]:
    return [Image.open(path).size for path in sorted(folder.glob("*/*.jpg"))]


def file_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*/*.jpg"))


def pixels_of(folder: Path) -> int:
    return sum(3 * width * height for width, height in photo_sizes(folder))


def cropped(dataset: feedline.Dataset) -> feedline.Dataset:
    return dataset.resize((SIDE, SIDE)).normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)


def photos(dataset: feedline.Dataset, folder: Path, **more: Any) -> Source:
    count = len(photo_sizes(folder))
    return Source(
        **{
            "dataset": cropped(dataset),
            "samples": count,
            "reads": EPOCHS * count,
            "read_bytes": EPOCHS * file_bytes(folder),
            "images": EPOCHS * count,
            "decoded_bytes": EPOCHS * pixels_of(folder),
            "transformed": EPOCHS * count,
            **more,
        }
    )


def of_folder(folder: Path, tmp_path: Path) -> Source:
    return photos(feedline.open(folder), folder)


def of_tars(folder: Path, tmp_path: Path) -> Source:
    tars = made_data.make_tars(folder, tmp_path / "tars", shards=3)
    labels = len("0") * len(photo_sizes(folder))
    bytes_read = EPOCHS * (file_bytes(folder) + labels)
    return photos(feedline.open("::".join(map(str, tars))), folder, read_bytes=bytes_read)


def of_cached_photos(folder: Path, tmp_path: Path) -> Source:
    """Decoded in the first epoch and taken from memory in later ones, except for samples that begin before the image is
    cached.
    """
    folder = made_data.make_folder(tmp_path / "kept")  # its own place in memory
    count = len(photo_sizes(folder))
    cached_bytes = count * 3 * KEPT[0] * KEPT[1]
    return photos(
        feedline.open(folder).resize(KEPT).cache("memory"),
        folder,
        read_bytes=(file_bytes(folder), 2 * file_bytes(folder)),
        images=(count, 2 * count),
        decoded_bytes=(pixels_of(folder), 2 * pixels_of(folder)),
        cache={
            "where": "memory",
            "samples": count,
            "present": count,
            "bytes": (cached_bytes, 2 * cached_bytes),  # with its surrounding bytes
            "budget_bytes": (cached_bytes, memory_bytes()),
            "full": False,
        },
    )


def of_pixels(folder: Path, tmp_path: Path) -> Source:
    """Packed as pixels: nothing is decoded."""
    feedline.pack_pixels(feedline.open(folder).resize(KEPT), tmp_path / "train.pixels")
    sizes = [3 * KEPT[0] * KEPT[1]] * len(photo_sizes(folder))
    stored = (EPOCHS * sum(sizes), EPOCHS * (tmp_path / "train.pixels").stat().st_size)
    packed = feedline.open(tmp_path / "train.pixels")
    return photos(packed, folder, read_bytes=stored, images=0, decoded_bytes=0)


def of_skipped(folder: Path, tmp_path: Path) -> Source:
    """One of the 21 photos is damaged: it is read, but not decoded."""
    return with_damage(folder, tmp_path, "skip", reads=21)


def of_replaced(folder: Path, tmp_path: Path) -> Source:
    """As above, and another photo is read instead."""
    return with_damage(folder, tmp_path, "replace", reads=22)


def with_damage(folder: Path, tmp_path: Path, on_error: str, reads: int) -> Source:
    """With "skip", a sample at the order's end may be read in its place, and later be used for a refill."""
    made = made_data.make_folder(tmp_path / "damaged")
    damaged = made / "birch" / "003.jpg"
    damaged.write_bytes(damaged.read_bytes()[:300])
    sizes = [path.stat().st_size for path in made.glob("*/*.jpg")]
    pixels = [3 * w * h for w, h in (Image.open(path).size for path in made.glob("*/*.jpg") if path != damaged)]
    least = reads - 21
    most = least + (on_error == "skip")
    return Source(
        dataset=cropped(feedline.open(made)),
        samples=21,
        reads=(EPOCHS * (21 + least), EPOCHS * (21 + most)),
        read_bytes=(EPOCHS * (sum(sizes) + least * min(sizes)), EPOCHS * (sum(sizes) + most * max(sizes))),
        images=(EPOCHS * (20 + least), EPOCHS * (20 + most)),
        decoded_bytes=(EPOCHS * (sum(pixels) + least * min(pixels)), EPOCHS * (sum(pixels) + most * max(pixels))),
        transformed=(EPOCHS * (20 + least), EPOCHS * (20 + most)),
        bad=EPOCHS,
        options={"on_error": on_error, "error_budget": 0},
    )


def of_arrays(folder: Path, tmp_path: Path) -> Source:
    x, y = numpy.arange(50 * 6, dtype="f4").reshape(50, 6), numpy.arange(50)
    return Source(feedline.arrays(x=x, y=y), 50, 50 * EPOCHS, EPOCHS * (x.nbytes + y.nbytes))


def of_tokens(folder: Path, tmp_path: Path) -> Source:
    numpy.arange(1000, dtype="<u2").tofile(tmp_path / "train.bin")
    windows = (1000 - 1) // 8
    # a window of 8 tokens and the next token
    return Source(
        feedline.tokens(tmp_path / "train.bin", window=8, dtype="uint16"),
        windows,
        windows * EPOCHS,
        EPOCHS * windows * (8 + 1) * 2,
    )


def of_ragged(folder: Path, tmp_path: Path) -> Source:
    lengths = [1 + 7 * i % 13 for i in range(40)]
    return of_lengths(lengths, {})


def of_buckets(folder: Path, tmp_path: Path) -> Source:
    lengths = [1 + 7 * i % 13 for i in range(40)]
    return of_lengths(lengths, {"buckets": [4, 8, 13], "shuffle": True})


def of_mapped(folder: Path, tmp_path: Path) -> Source:
    took: list[float] = []

    def busy(image: numpy.ndarray) -> numpy.ndarray:
        began = time.perf_counter()
        made = -image
        took.append(time.perf_counter() - began)
        return made

    source = photos(feedline.open(folder), folder, mapped=took)
    source.dataset = source.dataset.map(busy, "image")
    return source


def of_mixed(folder: Path, tmp_path: Path) -> Source:
    return photos(feedline.open(folder), folder, options={"mixup": 0.2, "cutmix": 1.0})


def of_lengths(lengths: list[int], options: dict[str, Any]) -> Source:
    text = [numpy.full(length, i, dtype="i4") for i, length in enumerate(lengths)]
    data = feedline.arrays(text=feedline.ragged(text), label=numpy.arange(len(lengths)))
    counted = sum(one.nbytes for one in text) + 8 * len(lengths)  # values and labels, whose number is not stored
    return Source(data, len(lengths), len(lengths) * EPOCHS, EPOCHS * counted, options=options)


SOURCES = (
    of_folder, of_tars, of_cached_photos, of_pixels, of_skipped, of_replaced, of_arrays, of_tokens, of_ragged,
    of_buckets, of_mapped, of_mixed,
)  # fmt: skip


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("threads", [1, 3, None])
def test_every_field_is_what_was_counted_outside(
    make: Callable[[Path, Path], Source], threads: int | None, folder: Path, tmp_path: Path
) -> None:
    assert_as_counted(run_of(make(folder, tmp_path), threads))


@pytest.mark.parametrize("mode", ["always", "threads"])
def test_no_look_finds_more_held_than_the_most_while_samples_are_read_ahead(
    mode: str, folder: Path, tmp_path: Path, force: Callable[..., None]
) -> None:
    force(read_ahead=mode, read_latency=0.0005)
    run = run_of(of_folder(folder, tmp_path), threads=2)
    assert max(look["held_bytes"] for look in run.looks) > run.largest_batch, "something was held ahead"
    peak = 0
    for look in run.looks:
        assert look["held_bytes"] <= look["held_bytes_peak"] <= look["budget_bytes"]
        assert look["held_bytes_peak"] >= peak, "the most is never less than it was"
        peak = look["held_bytes_peak"]


def test_counts_never_go_back(folder: Path, tmp_path: Path) -> None:
    run = run_of(of_folder(folder, tmp_path), threads=3)
    falling = ("held_bytes", "ready_batches", "per_s", "latency_ms", "budget")
    before: dict[str, Any] = {}
    for look in run.looks:
        now = {name: value for name, value in fields_of(look) if not any(word in name for word in falling)}
        for name, value in now.items():
            assert value is None or value >= before.get(name, value), name
        before = now


def test_changes_lead_to_what_is_now(folder: Path, tmp_path: Path, force: Callable[..., None]) -> None:
    """Changes the numbers of threads and prefetched batches for every batch: there are as many changes as batches."""
    force(random_threads=True)
    run = run_of(of_folder(folder, tmp_path), threads=None)
    controller = run.stats["controller"]
    changes = controller["changes"]
    assert controller["changed"] == run.batches == len(changes)
    for earlier, later in itertools.pairwise(changes):
        assert (later["from"], later["ahead_from"]) == (earlier["to"], earlier["ahead_to"])
    assert (changes[-1]["to"], changes[-1]["ahead_to"]) == (controller["threads"], controller["batches_ahead"])
    times = [change["at_s"] for change in changes]
    assert times == sorted(times) and times[0] >= 0 and times[-1] <= run.wall_s
    assert all(change["why"] == "at random" for change in changes)


def test_every_bucket_of_the_times_per_item_holds_items_and_together_all(folder: Path, tmp_path: Path) -> None:
    for make in (of_folder, of_arrays, of_buckets):
        run_folder = tmp_path / make.__name__
        run_folder.mkdir()
        run = run_of(make(folder, run_folder), threads=3)
        for name, histogram in run.histograms.items():
            stage = run.stats["stages"][name]
            assert sum(histogram) == stage["items"], (make.__name__, name)
            # each item took at least its bucket's lower bound, and all of them together as long as the stage
            least_s = sum(count * 2**bucket for bucket, count in enumerate(histogram) if bucket) / 1e6
            assert least_s <= stage["busy_s"] * 1.001 + 1e-6, (make.__name__, name)


class Numbers:
    """Arrays that are large enough for the memory to which workers write."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Any:
        import torch

        time.sleep(0.002)
        return torch.full((50_000,), float(index))


DROP_IN: dict[str, Callable[[dict[str, float]], Any]] = {
    "epoch": lambda seen: seen["epoch"],
    "batches": lambda seen: seen["batches"],
    "bad_samples": lambda seen: 0,
    "wait_s": lambda seen: (0, seen["wall_s"]) if seen["workers"] else None,
    "bytes_held": lambda seen: (seen["held"], 3 * seen["held"] + (1 << 20)) if seen["workers"] else 0,
    "controller": lambda seen: None,
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_every_field_of_the_drop_in_is_what_was_counted_outside(workers: int, persistent: bool) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    loader = feedline.DataLoader(
        Numbers(), batch_size=4, num_workers=workers, persistent_workers=persistent and workers > 0
    )
    for epoch in range(2):
        held, began = [], time.monotonic()
        for batch in loader:
            held.append(batch)
            found = loader.stats()  # the last one, with every batch received and the workers still running
        seen = {
            "epoch": epoch,
            "batches": len(held),
            "wall_s": time.monotonic() - began,
            "held": sum(one.nbytes for one in held),
            "workers": workers,
        }
        assert found.keys() == DROP_IN.keys(), "a field without a row, or a row without its field"
        for name, value in found.items():
            due = DROP_IN[name](seen)
            assert due[0] <= value <= due[1] if isinstance(due, tuple) else value == due, (name, value, due)
        if workers:
            assert loader.stats()["wait_s"] >= found["wait_s"] > 0, "the samples take longer than the loop"
        del batch
        held.clear()
        gc.collect()
        assert loader.stats()["bytes_held"] == 0


def test_what_bench_tells_of_a_stage_is_of_what_it_puts_out(folder: Path, tmp_path: Path) -> None:
    """21 photos in batches of 7: every batch is full, so the number of bytes is known exactly."""
    pytest.importorskip("click", reason="the command line is not installed")
    sample, batch = 4 * 3 * SIDE * SIDE + 8, 7
    command = [
        sys.executable,
        "-c",
        "import sys; from feedline.cli import main; sys.exit(main())",
        "bench",
        str(folder),
    ]
    arguments = ["--batch-size", str(batch), "--size", str(SIDE), "--seconds", "0.3", "--num-workers", "2"]
    from feedline.cli.console import bytes_text

    out = tmp_path / "run.json"
    done = subprocess.run([*command, *arguments, "--record", str(out)], capture_output=True, text=True, check=True)
    made = json.loads(out.read_text())
    counted, reported = made["feedline"]["stages"], {stage["name"]: stage for stage in made["stages"]}
    assert counted["consumer"]["items"] == made["feedline"]["images"] / batch
    for name, each in (("batch", batch), ("consumer", batch), ("storage", 1), ("decode", 1), ("transform", 1)):
        stage, batches = counted[name], counted[name]["items"] * each / batch
        assert reported[name]["ms_per_batch"] == pytest.approx(1000 * stage["busy_s"] / batches)
        assert reported[name]["bytes_per_batch"] == pytest.approx(stage["bytes"] / batches)
    for name in ("batch", "consumer"):
        assert counted[name]["bytes"] == counted[name]["items"] * batch * sample
        assert reported[name]["bytes_per_batch"] == batch * sample
    assert reported["transform"]["bytes_per_batch"] == pytest.approx(batch * (sample - 8))
    rows = {row[1]: row for row in (line.split() for line in done.stdout.splitlines()) if len(row) > 5}
    assert rows["batch"][3] == "batches" and rows["transform"][3] == "images"
    assert " ".join(rows["batch"]).count(bytes_text(batch * sample)) == 1
    assert " ".join(rows["transform"]).count(bytes_text(sample - 8)) == 1


def test_a_record_of_bench_is_of_the_batches_that_came(folder: Path) -> None:
    """An epoch of 21 samples in batches of 20 and 1: a batch has 10.5 rows on average, in every stage."""
    stage = {"busy_s": 0.21, "bytes": 21_000, "blocked_s": 0.0, "starved_s": 0.0}
    stages = {name: {**stage, "items": 2 if name in ("batch", "consumer") else 21} for name in STAGES}
    ours = {"threads": 1, "images": 21, "images_per_s": 9.0, "cpu_s_per_1000_images": 1.0, "first_batch_s": 0.1}
    result = {
        "batch_size": 20,
        "size": SIDE,
        "samples": 21,
        "feedline": {**ours, "held_bytes_peak": 0, "stages": stages},
    }
    made = of_bench(record.envelope("bench", ["feedline"], "photos"), result, [(0.1, 20, 0.1), (0.2, 1, 0.1)])
    for reported in made["stages"]:
        assert (reported["ms_per_batch"], reported["bytes_per_batch"]) == pytest.approx((105, 10_500)), reported["name"]
