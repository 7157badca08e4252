# SPDX-License-Identifier: Apache-2.0
"""Writes photos of 1,920 x 1,280 to 2,048 x 1,536, 4:2:0, quality 90 to 95, as OUT/<class>/NNN-K.jpg.

They are cropped from the same pictures as the demo's photos; the same sources produce the same files. K numbers hard
links to the same photo, which make an epoch long enough to be timed.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "demo"))

import photos
import pictures
from PIL import Image

CLASSES = 10
LINKS = 3
SMALLEST, LARGEST = (1920, 1280), (2048, 1536)
QUALITY = (90, 95)
_LONGEST = 5000  # larger sources are reduced to this size first


def is_wide(path: Path) -> bool:
    with Image.open(path) as image:
        return image.width >= SMALLEST[0] and image.height >= 0.8 * SMALLEST[1]  # few pictures are enlarged


def cut(path: Path, chance: random.Random) -> bytes:
    """Returns a photo cut from the picture at `path`."""
    image = pictures.load(path, _LONGEST)
    step = chance.random()
    width, height = (round(a + step * (b - a)) for a, b in zip(SMALLEST, LARGEST, strict=True))
    scale = min(image.width / width, image.height / height) * chance.uniform(0.8, 1.0)
    left, top = chance.uniform(0, image.width - scale * width), chance.uniform(0, image.height - scale * height)
    box = (left, top, left + scale * width, top + scale * height)
    return pictures.jpeg(image.resize((width, height), Image.Resampling.LANCZOS, box=box), chance.randint(*QUALITY))


def write(task: tuple[Path, Path, int]) -> int:
    source, out, number = task
    data = cut(source, random.Random(f"large/{number}"))
    first = out / f"{number:03d}-0.jpg"
    first.write_bytes(data)
    for i in range(1, LINKS):
        os.link(first, out / f"{number:03d}-{i}.jpg")
    return len(data)


def main() -> int:
    out, cache, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    sources, origin = photos.find_sources(None, cache)
    wide = [source.path for source in sources if is_wide(source.path)]
    if not wide:
        print(f"no picture of at least {SMALLEST[0]} pixels in {origin}", file=sys.stderr)
        return 3
    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    folders = [part / f"group_{label}" for label in range(CLASSES)]
    for folder in folders:
        folder.mkdir(parents=True)
    tasks = [(wide[i % len(wide)], folders[i % CLASSES], i) for i in range(count)]
    with ProcessPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        total = sum(pool.map(write, tasks, chunksize=4))
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)
    print(f"{count} photos of {total / count / 1000:.0f} KB on average from {len(wide)} pictures in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
