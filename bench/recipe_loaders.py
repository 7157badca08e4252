# SPDX-License-Identifier: Apache-2.0
"""Runs one recipe with one loader in this process and prints the figures as JSON. `recipes.py` starts it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import recipe_clock

import feedline
from feedline import presets

BATCH = 64
CLASSES = 10


def plain(folder: Path, boxes: str) -> tuple[feedline.Dataset, dict[str, Any]]:
    return presets.imagenet_train(folder, batch_size=BATCH)


def torchvisions(folder: Path, boxes: str) -> tuple[feedline.Dataset, dict[str, Any]]:
    train, options = presets.imagenet_train_v2(folder, size=224, batch_size=BATCH)
    return train, options | {"repeat": 1}


def timms(folder: Path, boxes: str) -> tuple[feedline.Dataset, dict[str, Any]]:
    train = feedline.open(folder).random_resized_crop(224, interpolation="random").random_horizontal_flip()
    train = train.timm_augment("rand-m9-mstd0.5-inc1").normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    train = train.timm_random_erasing(0.25, mode="pixel")
    mixed = {"mixup": 0.8, "cutmix": 1.0, "label_smoothing": 0.1, "partner": "flip"}
    return train, {"batch_size": BATCH, "shuffle": True} | mixed


def dino(folder: Path, boxes: str) -> tuple[feedline.Dataset, dict[str, Any]]:
    return presets.dino(folder, batch_size=16)


def simclr(folder: Path, boxes: str) -> tuple[feedline.Dataset, dict[str, Any]]:
    return presets.simclr(folder, batch_size=BATCH)


def detection(folder: Path, boxes: str) -> tuple[feedline.Dataset, dict[str, Any]]:
    train = feedline.open(boxes, fields=["jpg", "boxes.npy:boxes", "labels.npy"])
    train = train.random_short_side([640, 672, 704, 736, 768, 800], max_size=1333).random_horizontal_flip()
    train = train.random_photometric_distort().random_iou_crop().sanitize_bounding_boxes()
    return train.to_dtype("float32", scale=True).collate("list"), {"batch_size": 8, "shuffle": True}


NATIVE: dict[str, Callable[[Path, str], tuple[feedline.Dataset, dict[str, Any]]]] = {
    "plain": plain, "torchvision": torchvisions, "timm": timms, "dino": dino, "simclr": simclr, "detection": detection,
}  # fmt: skip


def stock_transforms(recipe: str, version: str) -> tuple[Any, Any]:
    """The transforms of a sample and of a batch, as torchvision's own classes."""
    import torch
    from torchvision import transforms as v1
    from torchvision.transforms import v2

    T: Any = v2 if version == "v2" else v1
    bicubic = T.InterpolationMode.BICUBIC
    to_float = [T.PILToTensor(), T.ToDtype(torch.float32, scale=True)] if version == "v2" else [T.ToTensor()]
    normalize = [*to_float, T.Normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)]
    jitter = [T.RandomApply([T.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8), T.RandomGrayscale(0.2)]

    def crop(size: int, low: float, high: float, blur: float, extra: list[Any]) -> Any:
        blurred = [T.RandomApply([T.GaussianBlur(9, (0.1, 2.0))], p=blur)]
        start = [T.RandomResizedCrop(size, (low, high), interpolation=bicubic), T.RandomHorizontalFlip()]
        return T.Compose([*start, *jitter, *blurred, *extra, *normalize])

    if recipe == "plain":
        return T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), *normalize]), None
    if recipe == "torchvision":
        augment = [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.TrivialAugmentWide()]
        mixed = v2.RandomChoice([v2.MixUp(alpha=0.2, num_classes=CLASSES), v2.CutMix(alpha=1.0, num_classes=CLASSES)])
        return T.Compose([*augment, *normalize, T.RandomErasing(0.1)]), mixed
    if recipe == "timm":
        from PIL import ImageOps
        from timm.data import Mixup, create_transform

        posterize = ImageOps.posterize  # Pillow 13 rejects the 0 bits in timm's increasing table
        ImageOps.posterize = lambda image, bits: posterize(image, max(1, bits))
        mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=CLASSES)
        erasing = {"re_prob": 0.25, "re_mode": "pixel"}
        made = create_transform(224, is_training=True, auto_augment="rand-m9-mstd0.5-inc1", **erasing)
        return made, lambda image, label: _on_the_cpu(mixup, image, label)
    if recipe == "dino":
        first, second = crop(224, 0.32, 1.0, 1.0, []), crop(224, 0.32, 1.0, 0.1, [T.RandomSolarize(128, 0.2)])
        small = crop(96, 0.05, 0.32, 0.5, [])
        return (lambda image: [first(image), second(image), *(small(image) for _ in range(8))]), None
    assert recipe == "simclr"
    strong = [T.RandomApply([T.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8), T.RandomGrayscale(0.2)]
    blurred = [T.RandomApply([T.GaussianBlur(23, (0.1, 2.0))], p=0.5)]
    start = [T.RandomResizedCrop(224, interpolation=bicubic), T.RandomHorizontalFlip()]
    view = T.Compose([*start, *strong, *blurred, *to_float])
    return (lambda image: [view(image), view(image)]), None


def _on_the_cpu(mixup: Any, image: Any, label: Any) -> Any:
    """timm's Mixup requires an even batch, and creates its targets on the given device."""
    from timm.data.mixup import mixup_target

    even = len(image) // 2 * 2
    image, label = image[:even], label[:even]
    share = mixup._mix_batch(image)
    return image, mixup_target(label, mixup.num_classes, share, mixup.label_smoothing)


class Detection:
    """Photos and their boxes as files, with torchvision's v2."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted((folder.parent / "recipe_boxes").glob("*.jpg"))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        import numpy as np
        import torch
        from PIL import Image
        from torchvision import tv_tensors

        path = self.paths[index]
        image = Image.open(path).convert("RGB")
        size = (image.height, image.width)
        boxes = tv_tensors.BoundingBoxes(np.load(path.with_suffix(".boxes.npy")), format="XYXY", canvas_size=size)
        labels = torch.from_numpy(np.load(path.with_suffix(".labels.npy")))
        return self.transform(image, {"boxes": boxes, "labels": labels})

    @property
    def transform(self) -> Any:
        import torch
        from torchvision.transforms import v2

        if "_transform" not in self.__dict__:
            self._transform = v2.Compose(
                [
                    v2.RandomShortestSize([640, 672, 704, 736, 768, 800], max_size=1333), v2.RandomHorizontalFlip(),
                    v2.RandomPhotometricDistort(), v2.RandomIoUCrop(), v2.SanitizeBoundingBoxes(),
                    v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True),
                ]
            )  # fmt: skip
        return self._transform


def as_list(samples: list[Any]) -> list[Any]:
    return samples


def stock(recipe: str, version: str, folder: Path, workers: int) -> tuple[Iterable[Any], int]:
    import torch
    from torchvision.datasets import ImageFolder

    torch.set_num_threads(1)
    options: dict[str, Any] = {"num_workers": workers, "persistent_workers": True, "shuffle": True, "drop_last": True}
    if recipe == "detection":
        samples: Any = Detection(folder)
        return torch.utils.data.DataLoader(samples, batch_size=8, collate_fn=as_list, **options), len(samples) // 8 * 8
    each, mixed = stock_transforms(recipe, version)
    samples = ImageFolder(folder, each)
    size = 16 if recipe == "dino" else BATCH
    loader: Any = torch.utils.data.DataLoader(samples, batch_size=size, **options)
    images = len(loader) * size
    return (Mixing(loader, mixed), images) if mixed else (loader, images)


class Mixing:
    """A loader that mixes batches in the training process, as in the reference scripts."""

    def __init__(self, loader: Any, mixed: Any) -> None:
        self.loader, self.mixed = loader, mixed

    def __iter__(self) -> Any:
        return (self.mixed(*batch) for batch in self.loader)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("recipe", choices=list(NATIVE))
    parser.add_argument("way", choices=("feedline", "v1", "v2"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.way == "feedline":
        boxes = str(options.folder.parent / "recipe_boxes.tar")
        dataset, arguments = NATIVE[options.recipe](options.folder, boxes)
        arguments |= {"drop_last": True, "num_workers": options.workers, "epochs": 1}
        loader: Iterable[Any] = dataset.loader(**arguments)
        images = len(dataset) // arguments["batch_size"] * arguments["batch_size"]
    else:
        loader, images = stock(options.recipe, options.way, options.folder, options.workers)
    recipe_clock.print_timed(loader, images)


if __name__ == "__main__":
    main()
