# SPDX-License-Identifier: Apache-2.0
"""Writes ImageNet-sized JPEGs in classes: OUT/<class>/NNNN.jpg, 500 x 375 or 375 x 500, 4:2:0, about 100 KB.

A class consists of crops of two or more source pictures, so a network can learn it. The same sources and seed produce
the same files.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click
import pictures
from PIL import Image
from rich.console import Console
from rich.progress import track

CLASSES = 10
MOST_PICTURES = 200  # for a user's folder; more sources would only take longer
LONGEST = 2800  # larger source pictures are reduced to this size first, because crops of them would mostly show blur
LEAST_BYTES = 60_000  # crops with fewer bytes show only sky or a wall: draw another one
TRIES = 3
REDUCING_GAP = 1.5  # halves the cost of Lanczos for a large box
# With this quality, wallpapers have the mean size of ImageNet's photos, about 100 KB, although they are smoother.
QUALITY = 97

console = Console()


def crop(image: Image.Image, chance: random.Random) -> bytes:
    """Returns a crop of a picture: the first of ``TRIES`` with enough detail, or the most detailed one."""
    best = b""
    for _ in range(TRIES):
        width, height = (500, 375) if chance.random() < 0.75 else (375, 500)  # as often as in ImageNet
        most = min(image.width / width, image.height / height)
        scale = most * chance.uniform(0.45, 1.0)
        box_width, box_height = width * scale, height * scale
        left = chance.uniform(0, image.width - box_width)
        top = chance.uniform(0, image.height - box_height)
        box = (left, top, left + box_width, top + box_height)
        small = image.resize((width, height), Image.Resampling.LANCZOS, box=box, reducing_gap=REDUCING_GAP)
        data = pictures.jpeg(small, QUALITY)
        if len(data) > len(best):
            best = data
        if len(best) >= LEAST_BYTES:
            break
    return best


def make(task: tuple[Path, str, list[int], int], out: Path) -> tuple[int, int]:
    """Writes all photos of one source picture; returns their number and their total size."""
    path, name, numbers, seed = task
    image = pictures.load(path, LONGEST)
    total = 0
    for number in numbers:
        data = crop(image, random.Random(f"{seed}/{name}/{number}"))
        (out / name / f"{number:04d}.jpg").write_bytes(data)
        total += len(data)
    return len(numbers), total


def tasks(sources: list[pictures.Picture], count: int, seed: int) -> list[tuple[Path, str, list[int], int]]:
    """Distributes the sources over the classes, and each class's photos over its sources."""
    order = list(sources)
    random.Random(seed).shuffle(order)
    while len(order) < CLASSES:  # if there are fewer sources than classes, classes share them
        order += order[: CLASSES - len(order)]
    dealt = []
    for label in range(CLASSES):
        own = order[label::CLASSES]
        size = count // CLASSES + (label < count % CLASSES)
        for turn, source in enumerate(own):
            numbers = list(range(turn, size, len(own)))
            if numbers:
                dealt.append((source.path, f"group_{label}", numbers, seed))
    return dealt


def find_sources(own: Path | None, cache: Path) -> tuple[list[pictures.Picture], str]:
    """Returns the source pictures, and a description of their origin."""
    if own is not None:
        found = pictures.photos_in(own, any_picture=True, most=MOST_PICTURES)
        return found, f"{len(found)} pictures in {own}"
    found = pictures.from_packages(cache, lambda text: console.print(f"[dim]{text}[/]"))
    if len(found) >= CLASSES:
        return found, f"{len(found)} photos from this distribution's wallpaper packages"
    found = pictures.distinct(found + pictures.from_python_packages())
    return found, f"{len(found)} photos from scikit-image, scikit-learn and wallpaper packages"


@click.command(help=__doc__)
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--photos", "own", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Your pictures.")
@click.option("--count", type=click.IntRange(CLASSES), default=1500, show_default=True, help="Number of photos.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--cache", type=click.Path(path_type=Path), help="Folder for unpacked packages. [default: next to OUT]")
def main(out: Path, own: Path | None, count: int, seed: int, cache: Path | None) -> None:
    sources, origin = find_sources(own, cache or out.parent / "packages")
    if not sources:
        console.print("[red]found no pictures[/]; pass a folder of pictures with --photos DIR")
        sys.exit(3)
    console.print(f"cropping {count} photos in {CLASSES} classes from {origin}")
    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    for label in range(CLASSES):
        (part / f"group_{label}").mkdir(parents=True)
    work = tasks(sources, count, seed)
    with ProcessPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        made = pool.map(functools.partial(make, out=part), work)
        results = list(track(made, total=len(work), description="photos", console=console))
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)
    files, total = (sum(column) for column in zip(*results, strict=True))
    console.print(f"{files} photos of {total / files / 1000:.0f} KB on average in {out}")


if __name__ == "__main__":
    main()
