# SPDX-License-Identifier: Apache-2.0
"""Arguments, files, the training loop and the printed rate of the planted scripts."""

import io
import os
import pathlib
import time
from typing import NamedTuple

import numpy as np
from PIL import Image

# Not tempfile's: a scenario with limits has its own temporary folder for each run.
FOLDER = pathlib.Path("/var/tmp/feedline_planted")


class Arguments(NamedTuple):
    fixed: bool
    workers: int | None


def arguments():
    """What the runner asks for: `fixed` removes the planted cause, `workers` replaces num_workers if it is not None."""
    workers = os.environ.get("FEEDLINE_SCENARIO_WORKERS")
    return Arguments("FEEDLINE_SCENARIO_MENDED" in os.environ, int(workers) if workers else None)


def folder(name):
    """A folder for a script's files, and whether it is new. Files remain for the next run."""
    path = FOLDER / name
    new = not path.is_dir()
    path.mkdir(parents=True, exist_ok=True)
    return path, new


def photo(width, height, seed=0, form="JPEG"):
    """The bytes of an image that resembles a photograph: smooth areas, edges, some noise."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (height // 16 + 1, width // 16 + 1, 3), dtype=np.uint8)
    large = np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))
    noisy = np.clip(large + rng.normal(0, 6, large.shape), 0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(noisy).save(out, form, quality=90)
    return out.getvalue()


def photos(name, count, width, height, form="JPEG", distinct=16):
    """Paths of `count` image files; only `distinct` of them differ in content."""
    path, new = folder(name)
    files = [path / f"{i:05}.{form.lower()}" for i in range(count)]
    if new:
        contents = [photo(width, height, i, form) for i in range(min(count, distinct))]
        for i, file in enumerate(files):
            file.write_bytes(contents[i % len(contents)])
    return files


def evict(*files):
    """Remove the files' pages from the page cache, as if they had not been read for a long time."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def burn(seconds):
    """Compute for `seconds` of this thread's CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(200))


def train(loader, step, epochs=1, limit=None, work=time.sleep):
    """Iterate the loader; `work(step)` stands for the training step. Prints batches per second."""
    done = 0
    started = time.perf_counter()
    for epoch in range(epochs):
        sampler = getattr(loader, "sampler", None)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
        for i, _ in enumerate(loader):
            work(step)
            done += 1
            if limit is not None and i + 1 >= limit:
                break
    print(f"rate {done / (time.perf_counter() - started):.4f}", flush=True)
