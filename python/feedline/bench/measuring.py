# SPDX-License-Identifier: Apache-2.0
"""Measures how fast a source loads with typical training operations, and the limit of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Literal

from feedline import _engine
from feedline.data import sources
from feedline.data.dataset import Dataset
from feedline.loader.loader import Loader

from ..imagenet import IMAGENET_MEAN, IMAGENET_STD
from .steadiness import SteadinessWatch
from .stock_loader import measure_stock

# of a batch: its arrival time, its samples, the seconds in next()
Arrival = tuple[float, int, float]
# called with the name of each phase; its result is called with the number of samples loaded
Show = Callable[[str], AbstractContextManager[Callable[[int], None]]]

_LIMIT_IMAGES = 500  # decoded for the limit: about a second on one core


def measure(
    source: str,
    *,
    batch_size: int,
    size: int,
    num_workers: int | Literal["auto"],
    seconds: float,
    against_torch: bool,
    show: Show,
) -> tuple[dict[str, Any], list[Arrival]]:
    """Returns the output of ``feedline bench`` for `source`, and the arrival time of every batch.

    Args:
        size: height and width of the crops in pixels.
        num_workers: as in :meth:`feedline.Dataset.loader`; torch's loader uses as many workers as Feedline used
        threads.
        seconds: duration of the measurement, not counting a warm-up of one epoch or half of `seconds`.

    Raises:
        StockLoaderMissing: torch's loader was requested but cannot be imported.
    """
    dataset = (
        sources.open(source).random_resized_crop(size).random_horizontal_flip().normalize(IMAGENET_MEAN, IMAGENET_STD)
    )
    result: dict[str, Any] = {
        "source": sources.shown_source(source),
        "samples": len(dataset),
        "batch_size": batch_size,
        "size": size,
    }
    ours, arrivals = _of_loader(dataset, batch_size, num_workers, seconds, show)
    result["feedline"] = ours
    if dataset.format != "pixels":  # these need no decoding
        result["decode_limit"] = _limit(dataset, ours["threads"])
        result["share_of_limit"] = ours["images_per_s"] / result["decode_limit"]["images_per_s"]
    if against_torch:
        result["torch"] = measure_stock(source, size, batch_size, ours["threads"], seconds)
        result["speed_up"] = ours["images_per_s"] / result["torch"]["images_per_s"]
    return result, arrivals


def _limit(dataset: Dataset, threads: int) -> dict[str, float]:
    limit = dataset.measure_decode(min(_LIMIT_IMAGES, len(dataset)), threads)
    return {
        "images_per_s": limit.images / limit.wall_s,
        "cpu_ms_per_image": 1000 * limit.cpu_s / limit.images,
        "encoded_bytes_per_image": limit.encoded_bytes / limit.images,
    }


def _of_loader(
    dataset: Dataset, batch_size: int, num_workers: int | Literal["auto"], seconds: float, show: Show
) -> tuple[dict[str, Any], list[Arrival]]:
    with dataset.loader(batch_size, shuffle=True, num_workers=num_workers, output="numpy") as loader:
        started = time.perf_counter()
        next(iter(loader))
        first_batch_s = time.perf_counter() - started
        with show("warming up") as advance:
            _run(loader, seconds / 2, advance, epochs=1)
        before, cpu, asked = loader.stats(), time.process_time(), _engine.network_hosts()
        started = time.perf_counter()
        with show("measuring") as advance, SteadinessWatch(seconds) as watch:
            arrivals = _run(loader, seconds, advance)
        wall = time.perf_counter() - started
        images = sum(samples for _, samples, _ in arrivals)
        after, cpu = loader.stats(), time.process_time() - cpu
    measured = {
        "threads": after["threads"],
        "images": images,
        "images_per_s": images / wall,
        "cpu_s_per_1000_images": 1000 * cpu / images,
        "first_batch_s": first_batch_s,
        "held_bytes_peak": after["held_bytes_peak"],
        "steadiness": watch.figures((at, samples) for at, samples, _ in arrivals),
        "stages": {name: _difference(after["stages"][name], stage) for name, stage in before["stages"].items()},
    }
    if hosts := _network(asked, wall):
        measured["network"] = hosts
    return measured, arrivals


def _network(before: list[_engine.NetworkHost], wall_s: float) -> list[dict[str, Any]]:
    """Returns the requests to each host since `before`, and their responses. None if no source is remote, or if all
    data are cached.
    """
    known = {host.name: host for host in before}
    hosts = []
    for host in _engine.network_hosts():
        was = known.get(host.name)
        requests = host.requests - (was.requests if was else 0)
        if requests == 0:
            continue
        received = host.bytes - (was.bytes if was else 0)
        hosts.append(
            {
                "host": host.name,
                "requests": requests,
                "connections": host.connections - (was.connections if was else 0),
                "bytes": received,
                "bytes_per_s": received / wall_s,
                "latency_s": host.latency_s or None,
                "answer_bytes_per_s": host.bytes_per_s or None,
            }
        )
    return hosts


def _run(loader: Loader, seconds: float, advance: Callable[[int], None], epochs: int | None = None) -> list[Arrival]:
    """Loads for `seconds`, but at least one batch and at most `epochs` epochs."""
    arrivals: list[Arrival] = []
    begin = before = time.perf_counter()
    while epochs is None or epochs > 0:
        for batch in loader:
            now = time.perf_counter()
            arrivals.append((now - begin, len(batch[0]), now - before))
            advance(len(batch[0]))
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
