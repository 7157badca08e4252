# SPDX-License-Identifier: Apache-2.0
"""Training from tars behind HTTP against the same tars on this machine: rate, requests, bytes per byte used.

    python bench/remote.py --samples 12000 --latency-ms 0 50

A server of this machine answers ranges after the latency asked for, so the numbers say what a round trip costs, not
what a network does."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import multiprocessing
import os
import re
import statistics
import tarfile
import tempfile
import time
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

import feedline

SHARD_SAMPLES = 1000


def make_tars(root: Path, samples: int) -> None:
    from PIL import Image

    random = np.random.default_rng(0)
    y, x = np.mgrid[0:375, 0:500] / 500
    photos = []
    for _ in range(64):
        waves = [np.sin(x * random.uniform(3, 20) + y * random.uniform(3, 20)) for _ in range(3)]
        pixels = np.clip(np.stack(waves, -1) * 100 + 128 + random.normal(0, 12, (375, 500, 3)), 0, 255)
        stream = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(stream, "JPEG", quality=88)
        photos.append(stream.getvalue())
    for shard in range(samples // SHARD_SAMPLES):
        with tarfile.open(root / f"{shard:03d}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(SHARD_SAMPLES):
                for suffix, data in (("jpg", photos[(shard * 7 + i) % 64]), ("cls", str(i % 10).encode())):
                    info = tarfile.TarInfo(f"{i:06d}.{suffix}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))


def serve(root: str, ready: Connection, latency_s: object, counts: object, stop: Event) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path = Path(root) / head.split(" ", 2)[1].lstrip("/")
                if not path.is_file():  # the name with its braces
                    writer.write(b"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n")
                    continue
                size, asked = path.stat().st_size, re.search(r"(?i)range: bytes=(\d+)-(\d+)", head)
                first, last = (int(asked[1]), min(int(asked[2]), size - 1)) if asked else (0, size - 1)
                counts[0] += 1
                counts[1] += last - first + 1
                await asyncio.sleep(latency_s.value)
                writer.write(
                    f'HTTP/1.1 206 x\r\nETag: "{size}"\r\nContent-Range: bytes {first}-{last}/{size}\r\n'
                    f"Content-Length: {last - first + 1}\r\n\r\n".encode()
                )
                await writer.drain()
                with path.open("rb") as file:
                    await loop.sendfile(writer.transport, file, first, last - first + 1)
        except (asyncio.IncompleteReadError, ConnectionError, RuntimeError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(stop.wait)

    asyncio.run(run())


def epoch(source: str, order: dict[str, object], threads: int) -> tuple[float, int, str]:
    chain = feedline.open(source).random_resized_crop(224).random_horizontal_flip()
    with chain.loader(64, seed=1, output="numpy", num_workers=threads, **order) as loader:
        start, samples = time.perf_counter(), 0
        for batch in loader:
            samples += len(batch[1])
        took = time.perf_counter() - start
        said = loader.explain()
    return samples / took, samples, str(said)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--samples", type=int, default=12000)
    options.add_argument("--latency-ms", type=float, nargs="+", default=[0, 50])
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    root = folder / "shards"
    if not root.is_dir():
        root.mkdir(parents=True)
        make_tars(root, given.samples)
    os.environ["XDG_CACHE_HOME"] = str(folder / "indexes")
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    latency, counts, stop = spawn.Value("d", 0.0), spawn.Array("Q", 2), spawn.Event()
    server = spawn.Process(target=serve, args=(str(root), there, latency, counts, stop), daemon=True)
    server.start()
    names = f"{{000..{given.samples // SHARD_SAMPLES - 1:03d}}}.tar"
    remote = f"http://127.0.0.1:{here.recv()}/{names}"
    orders: dict[str, dict[str, object]] = {
        "as stored": {"shuffle": False},
        "shards, window 1": {"shuffle": "shards", "shuffle_window": 1},
        "shards, window 4": {"shuffle": "shards", "shuffle_window": 4},
    }
    feedline.open(remote)  # indexes
    feedline.open(f"{root}/{names}")
    for name, order in orders.items():
        rates: dict[float, list[float]] = {}
        for _ in range(given.rounds):
            near, samples, _ = epoch(f"{root}/{names}", order, given.threads)
            for ms in given.latency_ms:
                latency.value = ms / 1000
                before = list(counts)
                rate, _, said = epoch(remote, order, given.threads)
                rates.setdefault(ms, []).append(rate / near)
                requests, sent = counts[0] - before[0], counts[1] - before[1]
                line = {"order": name, "latency_ms": ms, "samples": samples, "rate": round(rate), "local": round(near),
                        "requests": requests, "bytes": sent}  # fmt: skip
                print(json.dumps(line), flush=True)
                print(*(line for line in said.splitlines() if "ahead" in line), sep="\n", flush=True)
        print(name, {ms: round(statistics.median(share), 2) for ms, share in rates.items()}, flush=True)
    stop.set()


if __name__ == "__main__":
    main()
