# SPDX-License-Identifier: Apache-2.0
"""DINO's crops of a photo, 2 x 224 and 8 x 96 with flips, colours, grey and solarize: as views of one read, as ten
passes over the same files, and by torchvision on Pillow's images.

    python bench/views.py [FOLDER] [--rounds 5] [--images 64] [--plain]

A round times every way in turn, the next one backwards; a figure is the median over the rounds, a ratio the median of
the rounds' ratios. Times are CPU time of the process for one thread of work, per image; --plain leaves out what is done
to colours. Without a folder the photos are parts of those that scikit-image ships, of 500 x 375 pixels.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PIL import Image

import feedline

SIZES = [(224, 0.4, 1.0)] * 2 + [(96, 0.05, 0.4)] * 8


def made_photos(folder: Path, count: int) -> Path:
    from skimage import data

    pictures = [Image.fromarray(pixels) for pixels in (data.chelsea(), data.coffee(), data.astronaut(), data.rocket())]
    (folder / "photos").mkdir()
    for i in range(count):
        picture = pictures[i % len(pictures)]
        left, top = (i * 13) % 40, (i * 7) % 30
        part = picture.crop((left, top, picture.width - 40 + left, picture.height - 30 + top))
        part.resize((500, 375), Image.Resampling.LANCZOS).save(folder / "photos" / f"{i:04}.jpg", quality=92)
    return folder


def chain(size: int, low: float, high: float, plain: bool) -> feedline.Chain:
    made = feedline.chain().random_resized_crop(size, (low, high), interpolation="bicubic").random_horizontal_flip()
    return made if plain else made.color_jitter(0.4, 0.4, 0.2, 0.1).random_grayscale(0.2)


def views(folder: Path, plain: bool) -> feedline.Dataset:
    big, small = chain(*SIZES[0], plain), chain(*SIZES[-1], plain)
    second = big if plain else big.random_solarize(128, p=0.2)
    dataset = feedline.open(folder).views(global_a=big, global_b=second, local=(small, 8))
    return dataset.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)


def passes(folder: Path, plain: bool) -> list[feedline.Dataset]:
    """The same, each crop as a dataset of its own."""
    found = []
    for i, (size, low, high) in enumerate(SIZES):
        dataset = feedline.open(folder).random_resized_crop(size, (low, high), interpolation="bicubic")
        dataset = dataset.random_horizontal_flip()
        if not plain:
            dataset = dataset.color_jitter(0.4, 0.4, 0.2, 0.1).random_grayscale(0.2)
        if i == 1 and not plain:
            dataset = dataset.random_solarize(128, p=0.2)
        found.append(dataset.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD))
    return found


def epochs_of(datasets: list[feedline.Dataset]) -> Callable[[], None]:
    """An epoch of each, none of it made ahead, by loaders that stay: their threads and memory are there."""
    loaders = [dataset.loader(16, num_workers=1, epochs=1, output="numpy") for dataset in datasets]

    def run() -> None:
        for loader in loaders:
            for _ in loader:
                pass

    return run


def torchvisions(folder: Path, plain: bool) -> Callable[[], None]:
    import torch
    from torchvision import datasets, transforms

    torch.set_num_threads(1)
    bicubic = transforms.InterpolationMode.BICUBIC

    def one(size: int, low: float, high: float, solarizes: bool) -> transforms.Compose:
        steps = [
            transforms.RandomResizedCrop(size, (low, high), interpolation=bicubic),
            transforms.RandomHorizontalFlip(),
        ]
        if not plain:
            steps += [transforms.ColorJitter(0.4, 0.4, 0.2, 0.1), transforms.RandomGrayscale(0.2)]
        if solarizes and not plain:
            steps.append(transforms.RandomSolarize(128, 0.2))
        steps += [transforms.ToTensor(), transforms.Normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)]
        return transforms.Compose(steps)

    all_of_them = [one(*size, i == 1) for i, size in enumerate(SIZES)]
    samples = datasets.ImageFolder(folder, transform=lambda image: [step(image) for step in all_of_them])

    def run() -> None:
        for i in range(len(samples)):
            samples[i]

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=64, help="of those that are made")
    parser.add_argument("--plain", action="store_true", help="crops and flips alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder or made_photos(Path(made), arguments.images)
        viewed, passed = views(folder, arguments.plain), passes(folder, arguments.plain)
        ways: dict[str, Callable[[], None]] = {
            "views": epochs_of([viewed]),
            "ten passes": epochs_of(passed),
            "torchvision": torchvisions(folder, arguments.plain),
        }
        for run in ways.values():
            run()  # what is first is slower
        times: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(arguments.rounds):
            for name in list(ways) if turn % 2 == 0 else list(reversed(ways)):
                started = time.process_time()
                ways[name]()
                times[name].append(time.process_time() - started)
        per_image = {name: 1e6 * statistics.median(found) / len(viewed) for name, found in times.items()}
        ratio = {
            name: statistics.median(b / a for a, b in zip(times["views"], times[name], strict=True)) for name in ways
        }
        print(json.dumps({"us_per_image": per_image, "over_views": ratio, "images": len(viewed)}))


if __name__ == "__main__":
    main()
