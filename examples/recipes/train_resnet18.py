# SPDX-License-Identifier: Apache-2.0
"""Trains a ResNet-18 by torchvision's recipe, with the stock loader and with Feedline, and compares the results.

    python examples/recipes/train_resnet18.py photos     # class folders, such as those of `feedline demo --keep photos`
    python examples/recipes/train_resnet18.py photos --seeds 8 --epochs 10 --side 32 --shorter 64 --json runs.json

The recipe is a random resized crop, a flip, TrivialAugment, erasing, and MixUp or CutMix. For each seed, both loaders
start with the same weights; random draws and order differ, as between seeds. Every fifth photo of a class is held out.
`--shorter` downscales the photos once for both loaders, so that loading takes little time. It prints the held-out
accuracy and loss of every run, means with standard deviations over seeds, and the mean of the seeds' differences with
its 95 % interval. It needs torchvision, for the network and for the stock loader's transforms.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import torchvision
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, default_collate
from torchvision.transforms import v2

import feedline

MEAN, STD = feedline.IMAGENET_MEAN, feedline.IMAGENET_STD
SCALE = (0.35, 1.0)  # minimum share of the area: with few epochs, accuracy is too low with crops of a tenth
HELD_OUT = 5  # one in this many photos is held out
# Student's t, 97.5 %, by seeds less one (Abramowitz and Stegun, table 26.10); beyond, the normal distribution's.
T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)

Batches = Callable[[], Iterable[Any]]


def split(photos: Path, to: Path, shorter: int | None = None) -> tuple[Path, Path]:
    """Returns folders for training and held-out photos: links, or photos with a shorter side of `shorter` pixels."""
    for folder in sorted(path for path in photos.iterdir() if path.is_dir()):
        for number, photo in enumerate(sorted(folder.glob("*.jpg"))):
            link = to / ("train" if number % HELD_OUT else "held_out") / folder.name / photo.name
            link.parent.mkdir(parents=True, exist_ok=True)
            if shorter is None:
                link.symlink_to(photo.resolve())
            else:
                small = Image.open(photo).convert("RGB")
                torchvision.transforms.functional.resize(small, shorter).save(link, quality=92)
    return to / "train", to / "held_out"


def stock(train: Path, held_out: Path, options: argparse.Namespace, seed: int) -> tuple[Batches, Batches]:
    """Returns torch's loaders for training and held-out photos, with torchvision's transforms in the workers."""
    end = [torchvision.transforms.ToTensor(), torchvision.transforms.Normalize(MEAN, STD)]
    augmented = torchvision.transforms.Compose(
        [
            torchvision.transforms.RandomResizedCrop(options.side, scale=SCALE),
            torchvision.transforms.RandomHorizontalFlip(),
            torchvision.transforms.TrivialAugmentWide(),
            *end,
            torchvision.transforms.RandomErasing(0.1),
        ]
    )
    whole = torchvision.transforms.Compose(
        [torchvision.transforms.Resize(options.side), torchvision.transforms.CenterCrop(options.side), *end]
    )
    photos = torchvision.datasets.ImageFolder(str(train), augmented)
    number = len(photos.classes)
    mixed = v2.RandomChoice([v2.MixUp(alpha=0.2, num_classes=number), v2.CutMix(alpha=1.0, num_classes=number)])
    loader = DataLoader(
        photos,
        options.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=options.num_workers,
        collate_fn=functools.partial(_mixed, mixed),
        generator=torch.Generator().manual_seed(seed),
    )
    evaluated = DataLoader(torchvision.datasets.ImageFolder(str(held_out), whole), options.batch_size)
    return lambda: loader, lambda: evaluated


def _mixed(mix: Callable[..., Any], samples: list[Any]) -> Any:
    return mix(*default_collate(samples))


def native(train: Path, held_out: Path, options: argparse.Namespace, seed: int) -> tuple[Batches, Batches]:
    """Returns loaders with the same transforms in Feedline's threads."""
    photos = feedline.open(train).random_resized_crop(options.side, scale=SCALE).random_horizontal_flip()
    photos = photos.trivial_augment_wide().normalize(MEAN, STD).random_erasing(0.1)
    arguments = {"shuffle": True, "drop_last": True, "mixup": 0.2, "cutmix": 1.0}
    loader = photos.loader(options.batch_size, seed=seed, num_workers=options.num_workers or 1, **arguments)
    whole = feedline.open(held_out).resize(options.side).center_crop(options.side).normalize(MEAN, STD)
    evaluated = whole.loader(options.batch_size, num_workers=1)
    return lambda: loader, lambda: evaluated


def trained(batches: Batches, classes: int, options: argparse.Namespace, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    network: nn.Module = torchvision.models.resnet18(num_classes=classes)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
    steps = options.epochs * len(batches()) if options.steps is None else options.steps  # type: ignore[arg-type]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=steps)
    done = 0
    while done < steps:
        for images, targets in batches():
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images), targets).backward()
            optimizer.step()
            schedule.step()
            done += 1
            if done == steps:
                break
    return network


@torch.no_grad()
def judged(network: nn.Module, batches: Batches) -> tuple[float, float]:
    """Returns (share of correct answers, mean loss) for the held-out photos."""
    network.eval()
    right, loss, count = 0, 0.0, 0
    for images, labels in batches():
        answers = network(images)
        right += int((answers.argmax(1) == labels).sum())
        loss += float(nn.functional.cross_entropy(answers, labels, reduction="sum"))
        count += len(labels)
    return right / count, loss / count


def compared(runs: dict[str, list[tuple[float, float]]]) -> list[str]:
    """Returns lines with means, standard deviations, and the mean of the seeds' differences between the loaders."""
    lines = []
    for which, name in enumerate(("accuracy", "loss")):
        values = {way: [run[which] for run in found] for way, found in runs.items()}
        for way, found in values.items():
            lines.append(f"{name:<9} {way:<9} {statistics.mean(found):.3f} ± {_spread(found):.3f}")
        (one, a), (_, b) = values.items()
        apart = [later - first for first, later in zip(a, b, strict=True)]
        lines.append(f"{name:<9} of Feedline minus that of {one}: {statistics.mean(apart):+.3f}{_interval(apart)}")
    return lines


def _interval(values: list[float]) -> str:
    """Returns the 95 % confidence interval of the mean."""
    if len(values) < 2:
        return ""
    t = T_975[len(values) - 2] if len(values) - 2 < len(T_975) else 1.96
    half = t * _spread(values) / len(values) ** 0.5
    mean = statistics.mean(values)
    return f", 95 % of {mean - half:+.3f} to {mean + half:+.3f}"


def _spread(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Trains a ResNet-18 by torchvision's recipe with the stock loader and with Feedline."
    )
    parser.add_argument("photos", type=Path, help="class folders of .jpg files")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--steps", type=int, help="instead of epochs")
    parser.add_argument("--side", type=int, default=64, help="pixels")
    parser.add_argument("--shorter", type=int, help="first downscale the photos to a shorter side of this many pixels")
    parser.add_argument("--json", type=Path, help="output file for the figures")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--num-workers", type=int, default=2)
    options = parser.parse_args()
    runs: dict[str, list[tuple[float, float]]] = {"stock": [], "Feedline": []}
    with tempfile.TemporaryDirectory() as made:
        train, held_out = split(options.photos, Path(made), options.shorter)
        classes = sum(1 for _ in train.iterdir())
        for seed in range(options.seeds):
            for way, pipeline in (("stock", stock), ("Feedline", native)):
                batches, evaluated = pipeline(train, held_out, options, seed)
                runs[way].append(judged(trained(batches, classes, options, seed), evaluated))
                print(f"seed {seed}, {way}: accuracy {runs[way][-1][0]:.3f}, loss {runs[way][-1][1]:.3f}", flush=True)
    lines = compared(runs)
    print("\n".join(lines))
    if options.json:
        versions = {
            "feedline": feedline.__version__,
            "torch": torch.__version__,
            "torchvision": torchvision.__version__,
        }
        how = {name: str(value) for name, value in vars(options).items() if name not in ("photos", "json")}
        record = {"options": how, "versions": versions, "accuracy and loss": runs, "compared": lines}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
