# SPDX-License-Identifier: Apache-2.0
"""``feedline bench``: measures how fast a source loads, and where the time goes."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource
from rich.markup import escape

from feedline.bench import measuring, orders
from feedline.bench import record as records
from feedline.bench.machine.measuring import joined
from feedline.bench.stock_loader import StockLoaderMissing, check_stock
from feedline.cli import parameters
from feedline.cli.commands import bench_device, bench_machine, shuffle
from feedline.cli.console import OUT, bytes_text, counted, print_json, progress, steps, table
from feedline.cli.outputs import distinct
from feedline.machine import limits
from feedline.record import envelope, write

_OF_LOADING = ("batch_size", "size", "num_workers", "seconds", "against", "machine", "record")
_OF_ORDERS = ("samples", "seed")


@click.command(short_help="Measure how fast a source loads, and where the time goes.")
@click.argument("source", required=False)
@click.option("--batch-size", default=64, type=click.IntRange(1), metavar="N", help="Samples per batch.")
@click.option(
    "--size", default=224, type=click.IntRange(1), metavar="N", help="Height and width of the crops in pixels."
)
@parameters.num_workers("--threads", help="Number of loading threads; auto: number of usable CPUs.")
@click.option("--seconds", default=5.0, type=parameters.FiniteRange(0.1), metavar="SECONDS", help="Measuring time.")
@click.option(
    "--against", type=click.Choice(["torch"]), help="Also measure this loader, with the same number of workers."
)
@click.option(
    "--shuffle-quality", is_flag=True, help="Measure the quality of the sample order instead of the loading rate."
)
@click.option(
    "--samples",
    type=click.IntRange(100),
    metavar="N",
    help="With --shuffle-quality: simulate this many samples instead of SOURCE.",
)
@click.option("--seed", default=0, type=click.IntRange(0), metavar="N", help="With --shuffle-quality: random seed.")
@click.option(
    "--device",
    is_flag=False,
    flag_value="cuda",
    metavar="[cuda:N]",
    help="Measure copies of synthetic batches to this GPU instead of the loading rate.",
)
@parameters.machine
@parameters.as_json("Print one JSON object, which is the run record (docs/run-record.md).")
@parameters.record_file("--output")
@click.pass_context
def bench(
    context: click.Context,
    source: str | None,
    batch_size: int,
    size: int,
    num_workers: int | Literal["auto"],
    seconds: float,
    against: str | None,
    shuffle_quality: bool,
    samples: int | None,
    seed: int,
    device: str | None,
    machine: bool,
    as_json: bool,
    record: Path | None,
) -> int:
    """Load SOURCE with random_resized_crop, flip and normalize, and report where the time goes.

    The first epoch, or half of --seconds, warms up the page cache and is not counted. The limit is the rate at which
    this machine's cores decode the same regions from memory, without other work.

    With --shuffle-quality, nothing is decoded: the sample orders of loaders for this dataset are compared with a
    shuffle buffer and with true permutations.

    With --device, nothing is read: batches of --batch-size images are copied to a GPU from pageable and page-locked
    memory, before and during the step, as floats and as bytes; docs/device.md explains the results.

    With --machine, the machine itself is also measured: decoding, Python, memory, the disk of SOURCE, and copies to a
    GPU, in a few seconds. `feedline diff` uses these measurements to find which differences between two machines
    matter. Without SOURCE, only the machine is measured.
    """
    _refuse_what_is_not_used(context, shuffle_quality, device is not None)
    if device is not None:
        if source is not None:
            raise click.UsageError("--device measures synthetic batches: omit SOURCE, or write --device=cuda")
        return bench_device.run(device, batch_size, size, seconds, as_json, record)
    if shuffle_quality:
        return _bench_orders(source, samples, seed, as_json)
    if source is None and machine:
        return bench_machine.run(as_json, record)
    if source is None:
        raise click.UsageError("give a SOURCE")
    distinct({"SOURCE": source, "--record": record})
    began = time.time()
    try:
        if against == "torch":
            check_stock(source)
        result, arrivals = measuring.measure(
            source,
            batch_size=batch_size,
            size=size,
            num_workers=num_workers,
            seconds=seconds,
            against_torch=against == "torch",
            show=lambda phase: steps(None, phase),
        )
    except StockLoaderMissing as error:
        raise click.UsageError(f"--against torch: {error}") from error
    if as_json or record is not None:
        name = result["source"]
        words = [name if word == source else word for word in sys.argv[1:]]
        facts = envelope("bench", ["feedline", *words], name, began=began, source=name)
        whole = records.of_bench({**facts, "wall_s": time.time() - began}, result, arrivals)
    probes = bench_machine.probes(source) if machine else None
    if probes is not None and (as_json or record is not None):
        whole = joined(whole, probes)
    print_json(whole) if as_json else _print(result)
    if probes is not None and not as_json:
        bench_machine.show(probes)
    if record is not None:  # last, so that a full disk does not lose the results
        write(whole, record)
    return 0


def _bench_orders(source: str | None, samples: int | None, seed: int, as_json: bool) -> int:
    if (source is None) == (samples is None):
        raise click.UsageError("--shuffle-quality: pass either SOURCE or --samples")
    with progress(None, "shuffling") as bar:
        found = orders.measure(
            source, samples, seed, lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total)
        )
    print_json(found) if as_json else shuffle.show(found)
    return 0


def _refuse_what_is_not_used(context: click.Context, shuffle_quality: bool, device: bool) -> None:
    """Raises a usage error for options that would be ignored."""
    if device:
        for name in (*_OF_ORDERS, "num_workers", "against", "machine", "shuffle_quality"):
            if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                option = f"--{name.replace('_', '-')}"
                raise click.UsageError(f"{option} cannot be combined with --device, which loads no samples")
        return
    ignored = _OF_LOADING if shuffle_quality else _OF_ORDERS
    for name in ignored:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = f"--{name.replace('_', '-')}"
            if name == "record":
                raise click.UsageError("--record: --shuffle-quality has no run record; use --json")
            words = (
                "cannot be combined with --shuffle-quality, which loads no samples"
                if shuffle_quality
                else "requires --shuffle-quality"
            )
            raise click.UsageError(f"{option} {words}")


def _print(result: dict[str, Any]) -> None:
    ours = result["feedline"]
    OUT.print(
        f"[bold]{escape(result['source'])}[/]: {counted(result['samples'], 'sample')}, batch {result['batch_size']}"
    )
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
                f"limit: decoding only, {counted(ours['threads'], 'thread')}",
                f"{limit['images_per_s']:,.0f}",
                f"{limit['cpu_ms_per_image']:.2f}",
                "",
            )
        )
    table(("loader", "images/s", "CPU-s per 1,000", "first batch"), rows)
    table(
        ("stage", "output", "us per item", "bytes per item", "blocked s", "starved s"),
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
    OUT.print(_steadiness(ours["steadiness"]))
    for host in ours.get("network", []):
        OUT.print(_network(host))
    if limit is not None:
        OUT.print(_share_of_limit(result["share_of_limit"]))
    if "speed_up" in result:
        OUT.print(f"{result['speed_up']:.1f} times as fast as the stock DataLoader")


def _share_of_limit(share: float) -> str:
    of = f"this machine's decode limit with {counted(limits.usable_cpus(), 'CPU')}"
    if share > 1:  # the limit is measured after the loader, when other programs may use more CPU
        return f"at {of}: the two measurements differ by {share - 1:.0%}"
    return f"{share:.0%} of {of}"


def _steadiness(steady: dict[str, Any]) -> str:
    """Describes how much each rate varied from second to second."""
    if steady["not_judged"] is not None:
        return f"steadiness: not judged, because {steady['not_judged']}"
    parts = [f"images ±{steady['images_per_s']['spread']:.0%}"]
    cpus, disk = steady["cpus"], steady["disk_bytes_per_s"]
    parts.append("CPU not measured" if cpus is None else f"{cpus['mean']:.1f} CPUs ±{cpus['spread']:.0%}")
    if disk is None:
        parts.append("disk not measured")
    elif disk["mean"] == 0:
        parts.append("nothing read from disk, because all files were in the page cache")
    else:
        parts.append(f"{bytes_text(disk['mean'])}/s from disk ±{disk['spread']:.0%}")
    return f"steadiness over {steady['seconds']} seconds: {', '.join(parts)}"


def _network(host: dict[str, Any]) -> str:
    """Describes the reads from one host: bytes, requests and network performance."""
    line = (
        f"network: {bytes_text(host['bytes_per_s'])}/s from {escape(host['host'])} in "
        f"{counted(host['requests'], 'request')} of {bytes_text(host['bytes'] / host['requests'])} on average"
    )
    if host["latency_s"]:
        line += f"; {1000 * host['latency_s']:,.1f} ms to first byte"
    if host["answer_bytes_per_s"]:
        line += f", then {bytes_text(host['answer_bytes_per_s'])}/s per request"
    return line
