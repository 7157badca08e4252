# SPDX-License-Identifier: Apache-2.0
"""``feedline bench``: how fast a source loads here, and where the time goes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.markup import escape

import feedline
from feedline.bench import record as records
from feedline.bench.stock_loader import StockLoaderMissing, check_stock, measure_stock
from feedline.cli import shuffle
from feedline.cli.amounts import FiniteRange
from feedline.cli.console import OUT, bytes_text, print_json, progress, table
from feedline.cli.outputs import OUTPUT_FILE, distinct
from feedline.machine import limits
from feedline.record import envelope, write

# of a batch: when it came, its samples, the seconds that next() took
_Arrival = tuple[float, int, float]

_OF_LOADING = ("batch_size", "size", "threads", "seconds", "against", "output")
_OF_ORDERS = ("samples", "seed")
_LIMIT_IMAGES = 500  # decoded for the limit: about a second on one core


@click.command()
@click.argument("source", required=False)
@click.option("--batch-size", default=64, show_default=True, type=click.IntRange(1))
@click.option("--size", default=224, show_default=True, type=click.IntRange(1), help="Side of the crops, in pixels.")
@click.option("--threads", type=click.IntRange(1), help="Default: the usable CPUs.")
@click.option("--seconds", default=5.0, show_default=True, type=FiniteRange(0.1), help="How long to measure.")
@click.option("--against", type=click.Choice(["torch"]), help="Measure this loader beside, with as many workers.")
@click.option("--shuffle-quality", is_flag=True, help="Measure the order instead, by statistics.")
@click.option("--samples", type=click.IntRange(100), help="With --shuffle-quality: so many made-up ones, no SOURCE.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="With --shuffle-quality.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, the run record: docs/run-record.md.")
@click.option("--output", type=OUTPUT_FILE, help="Write the run record to this file.")
@click.pass_context
def bench(
    context: click.Context,
    source: str | None,
    batch_size: int,
    size: int,
    threads: int | None,
    seconds: float,
    against: str | None,
    shuffle_quality: bool,
    samples: int | None,
    seed: int,
    as_json: bool,
    output: Path | None,
) -> int:
    """Load SOURCE with random_resized_crop, flip and normalize, and tell where the time goes.

    The first epoch, or half of --seconds, warms up the page cache and is not counted. The limit is what this machine's
    cores reach when they only decode the same regions, out of memory.

    With --shuffle-quality nothing is decoded: the orders that loaders of this size give are compared with a shuffle
    buffer and with true permutations.
    """
    began = time.time()
    _refuse_what_is_not_used(context, shuffle_quality)
    if shuffle_quality:
        if (source is None) == (samples is None):
            raise click.UsageError("--shuffle-quality: give either SOURCE or --samples")
        orders = shuffle.measure(source, samples, seed)
        print_json(orders) if as_json else shuffle.show(orders)
        return 0
    if source is None:
        raise click.UsageError("give a SOURCE")
    distinct({"SOURCE": source, "--output": output})
    if against == "torch":
        _of_stock(check_stock, source)
    dataset = (
        feedline.open(source)
        .random_resized_crop(size)
        .random_horizontal_flip()
        .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    )
    result: dict[str, Any] = {"source": source, "samples": len(dataset), "batch_size": batch_size, "size": size}
    result["feedline"], arrivals = _measure(dataset, batch_size, threads, seconds)
    used = result["feedline"]["threads"]
    if dataset.format != "pixels":  # those need no decoding
        limit = dataset.measure_decode(min(_LIMIT_IMAGES, len(dataset)), used)
        result["decode_limit"] = {
            "images_per_s": limit.images / limit.wall_s,
            "cpu_ms_per_image": 1000 * limit.cpu_s / limit.images,
            "encoded_bytes_per_image": limit.encoded_bytes / limit.images,
        }
        result["share_of_limit"] = result["feedline"]["images_per_s"] / result["decode_limit"]["images_per_s"]
    if against == "torch":
        result["torch"] = _of_stock(measure_stock, source, size, batch_size, used, seconds)
        result["speed_up"] = result["feedline"]["images_per_s"] / result["torch"]["images_per_s"]
    if as_json or output is not None:
        facts = envelope("bench", ["feedline", *sys.argv[1:]], source, began=began, source=source)
        record = records.of_bench({**facts, "wall_s": time.time() - began}, result, arrivals)
    print_json(record) if as_json else _print(result)
    if output is not None:  # last: a full disk must not take the figures along
        write(record, output)
    return 0


def _of_stock(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except StockLoaderMissing as error:
        raise click.UsageError(f"--against torch: {error}") from error


def _refuse_what_is_not_used(context: click.Context, shuffle_quality: bool) -> None:
    """An option that would be ignored is a misunderstanding, better told before the run than never."""
    ignored = _OF_LOADING if shuffle_quality else _OF_ORDERS
    for name in ignored:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = f"--{name.replace('_', '-')}"
            if name == "output":
                raise click.UsageError("--output: --shuffle-quality makes no run record; use --json")
            words = (
                "does not go with --shuffle-quality, which loads nothing"
                if shuffle_quality
                else "is for --shuffle-quality"
            )
            raise click.UsageError(f"{option} {words}")


def _measure(
    dataset: feedline.Dataset, batch_size: int, threads: int | None, seconds: float
) -> tuple[dict[str, Any], list[_Arrival]]:
    with dataset.loader(batch_size, shuffle=True, num_workers=threads or "auto", output="numpy") as loader:
        started = time.perf_counter()
        next(iter(loader))
        first_batch_s = time.perf_counter() - started
        with progress(None, "warming up") as bar:
            _run(loader, seconds / 2, bar, epochs=1)
        before, cpu = loader.stats(), time.process_time()
        started = time.perf_counter()
        with progress(None, "measuring") as bar:
            arrivals = _run(loader, seconds, bar)
        wall = time.perf_counter() - started
        images = sum(samples for _, samples, _ in arrivals)
        after, cpu = loader.stats(), time.process_time() - cpu
    stages = {name: _difference(after["stages"][name], stage) for name, stage in before["stages"].items()}
    measured = {
        "threads": after["threads"],
        "images": images,
        "images_per_s": images / wall,
        "cpu_s_per_1000_images": 1000 * cpu / images,
        "first_batch_s": first_batch_s,
        "held_bytes_peak": after["held_bytes_peak"],
        "stages": stages,
    }
    return measured, arrivals


def _run(loader: feedline.Loader, seconds: float, bar: Any, epochs: int | None = None) -> list[_Arrival]:
    """Loads for `seconds`, at least one batch and at most `epochs`."""
    arrivals: list[_Arrival] = []
    begin = before = time.perf_counter()
    while epochs is None or epochs > 0:
        for batch in loader:
            now = time.perf_counter()
            arrivals.append((now - begin, len(batch[0]), now - before))
            bar.advance(bar.task_ids[0], len(batch[0]))
            if now > begin + seconds:
                return arrivals
            before = time.perf_counter()
        epochs = None if epochs is None else epochs - 1
    return arrivals


def _difference(after: dict[str, Any], before: dict[str, Any]) -> dict[str, float]:
    items = after["items"] - before["items"]
    busy = after["busy_s"] - before["busy_s"]
    return {
        "items": items,
        "bytes": after["bytes"] - before["bytes"],
        "busy_s": busy,
        "us_per_item": 1e6 * busy / items if items else 0.0,
        "items_per_s_and_thread": items / busy if busy else 0.0,
        "blocked_s": after["blocked_s"] - before["blocked_s"],
        "starved_s": after["starved_s"] - before["starved_s"],
    }


def _print(result: dict[str, Any]) -> None:
    ours = result["feedline"]
    OUT.print(f"[bold]{escape(result['source'])}[/]: {result['samples']:,} samples, batch {result['batch_size']}")
    rows = [
        (
            "Feedline",
            f"{ours['images_per_s']:,.0f}",
            f"{ours['cpu_s_per_1000_images']:.2f}",
            f"{1000 * ours['first_batch_s']:.0f} ms",
        )
    ]
    if "torch" in result:
        stock = result["torch"]
        rows.append(
            (
                f"torch DataLoader, {stock['transforms']}",
                f"{stock['images_per_s']:,.0f}",
                f"{stock['cpu_s_per_1000_images']:.2f}",
                f"{1000 * stock['first_batch_s']:.0f} ms",
            )
        )
    limit = result.get("decode_limit")
    if limit is not None:
        rows.append(
            (
                f"limit: decoding alone, {ours['threads']} threads",
                f"{limit['images_per_s']:,.0f}",
                f"{limit['cpu_ms_per_image']:.2f}",
                "",
            )
        )
    table(("loader", "images/s", "CPU-s per 1,000", "first batch"), rows)
    table(
        ("stage", "puts out", "us each", "bytes each", "blocked s", "starved s"),
        [
            (
                name,
                "batches" if name in records.BATCH_STAGES else "images",
                f"{stage['us_per_item']:,.1f}",
                bytes_text(stage["bytes"] / stage["items"]) if stage["items"] else "",
                f"{stage['blocked_s']:.2f}",
                f"{stage['starved_s']:.2f}",
            )
            for name, stage in ours["stages"].items()
        ],
    )
    if limit is not None:
        OUT.print(f"{result['share_of_limit']:.0%} of this machine's decode limit with {limits.usable_cpus()} CPUs")
    if "speed_up" in result:
        OUT.print(f"{result['speed_up']:.1f} times the stock DataLoader")
