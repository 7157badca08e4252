# SPDX-License-Identifier: Apache-2.0
"""A training run without a model, made to be killed: it logs every step and goes on where its log says.

`python killed_run.py DATA LOG --threads N [--until STEP]`. A step is one batch of photos with augmentations, one of
token windows and one of array rows. Its line in LOG is JSON: the step, a digest of all samples and bytes, and in every
`CHECKPOINT_STEPS`th line the loaders' states. Lines behind the last state are what a killed run has to do again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import feedline

CHECKPOINT_STEPS = 5
_TAIL_BYTES = 1 << 16  # more than the number of steps between two states
_OPTIONS: dict[str, Any] = {"shuffle": True, "seed": 41, "output": "numpy"}


def loaders(data: Path, threads: int) -> list[feedline.Loader]:
    """Three kinds of source, whose epochs end at different steps."""
    photos = (
        feedline.open(sorted(data.glob("*.tar")))
        .random_resized_crop(24)
        .random_horizontal_flip()
        .color_jitter(0.2, 0.2, 0.2, 0.1)
        .normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    )
    tokens = feedline.tokens(data / "tokens.bin", window=16, stride=3, dtype="uint16")
    rows = np.load(data / "rows.npy", mmap_mode="r")
    arrays = feedline.arrays(x=rows, y=np.arange(len(rows)))
    return [
        photos.loader(4, num_workers=threads, **_OPTIONS),
        tokens.loader(7, num_workers=threads, **_OPTIONS),
        arrays.loader(11, num_workers=threads, drop_last=True, **_OPTIONS),
    ]


def make_data(folder: Path) -> Path:
    """Returns the loaders' data: 21 photos in three tars, 500 tokens, 200 rows."""
    import made_data

    made_data.make_tars(made_data.make_folder(folder / "photos"), folder, shards=3)
    np.arange(500, dtype="<u2").tofile(folder / "tokens.bin")
    np.save(folder / "rows.npy", np.random.default_rng(0).random((200, 5)))
    return folder


def complete_lines(log: Path) -> list[dict[str, Any]]:
    """Returns every complete line: SIGKILL may have cut off the last one."""
    return [json.loads(line) for line in log.read_bytes().split(b"\n")[:-1]]


def last_saved(log: int) -> dict[str, Any] | None:
    """Returns the last line with states, after removing an incomplete line at the end."""
    size = os.fstat(log).st_size
    begin = max(0, size - _TAIL_BYTES)
    tail = os.pread(log, size - begin, begin)
    whole = tail.rfind(b"\n") + 1
    os.truncate(log, begin + whole)
    for line in reversed(tail[:whole].split(b"\n")):
        if b'"states"' in line and line.startswith(b"{"):
            saved: dict[str, Any] = json.loads(line)
            return saved
    return None


def _endless(loader: feedline.Loader) -> Iterator[Any]:
    while True:
        yield from loader


def _digest(running: list[feedline.Loader], batches: tuple[Any, ...]) -> str:
    digest = hashlib.sha256()
    for loader, batch in zip(running, batches, strict=True):
        digest.update(repr(loader.last_samples).encode())
        for field in batch:
            digest.update(field.tobytes())
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--until", type=int, default=sys.maxsize)
    options = parser.parse_args()
    # one write() per line, after the last complete line: new lines must not be appended to an incomplete one
    log = os.open(options.log, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    saved = last_saved(log)
    running = loaders(options.data, options.threads)
    step = 0
    if saved is not None:
        step = saved["step"]
        for loader, state in zip(running, saved["states"], strict=True):
            loader.load_state_dict(state)
    for batches in zip(*map(_endless, running), strict=True):
        step += 1
        line: dict[str, Any] = {"step": step, "threads": options.threads, "digest": _digest(running, batches)}
        if step % CHECKPOINT_STEPS == 0:
            line["states"] = [loader.state_dict() for loader in running]
        os.write(log, json.dumps(line).encode() + b"\n")
        if step >= options.until:
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
