# SPDX-License-Identifier: Apache-2.0
"""Runs one recipe with DALI or TurboLoader in this process, in an environment of peers/, and prints the figures as
JSON. `recipes.py` starts it.

If a peer lacks a part of a recipe, the part is omitted or replaced, and `OTHERWISE` describes the difference. The peer
then spends less time on this part than Feedline, or none. Everything runs on the CPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import recipe_clock

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BATCH = {"dino": 16, "detection": 8}  # 64 for the other recipes
AREA, ASPECT = [0.08, 1.0], [3 / 4, 4 / 3]

# Peer: recipe: the difference. A peer does not support recipes that are not listed.
OTHERWISE = {
    "dali": {
        "plain": "",
        "torchvision": "no mixup or cutmix; erases zeros",
        "timm": "its own RandAugment table, without magnitude noise; no mixup or cutmix; erases zeros",
        "dino": "",
        "simclr": "",
        "detection": "does not permute channels",
    },
    "turboloader": {
        "plain": "one tar, no labels, no antialiasing",
        "timm": "resizes without a crop; its own RandAugment table; no mixup or cutmix; returns single arrays",
    },
}


# -- DALI


def dali(recipe: str, folder: Path, threads: int) -> tuple[Any, int]:
    from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    size = BATCH.get(recipe, 64)
    files = sorted(folder.glob("*/*.jpg")) if recipe != "detection" else sorted((boxes_of(folder)).glob("*.jpg"))
    pipeline, outputs = _dali_pipeline(recipe, [str(path) for path in files], size, threads)
    if recipe == "detection":  # images have different numbers of boxes
        pipeline.build()
        return _Runs(pipeline, len(files) // size), len(files) // size * size
    names = [f"output_{i}" for i in range(outputs)]
    loader = DALIGenericIterator(
        [pipeline], names, reader_name="reader", last_batch_policy=LastBatchPolicy.DROP, auto_reset=True
    )
    return loader, len(files) // size * size


class _Runs:
    def __init__(self, pipeline: Any, batches: int) -> None:
        self._pipeline, self._batches = pipeline, batches

    def __iter__(self) -> Iterator[Any]:
        return (self._pipeline.run() for _ in range(self._batches))


def boxes_of(folder: Path) -> Path:
    return folder.parent / "recipe_boxes"


def _dali_pipeline(recipe: str, files: list[str], batch: int, threads: int) -> tuple[Any, int]:
    """Returns the pipeline and its number of outputs."""
    from nvidia.dali import fn, math, pipeline_def, types
    from nvidia.dali.auto_aug import rand_augment, trivial_augment

    uniform, linear, cubic = fn.random.uniform, types.INTERP_LINEAR, types.INTERP_CUBIC

    def coin(p: float) -> Any:
        return fn.random.coin_flip(probability=p, dtype=types.BOOL)

    def cropped(pixels: Any, size: int, area: list[float], interpolation: Any) -> Any:
        found = fn.random_resized_crop(
            pixels,
            size=(size, size),
            random_area=area,
            random_aspect_ratio=ASPECT,
            interp_type=interpolation,
            antialias=True,
        )
        return fn.flip(found, horizontal=fn.random.coin_flip())

    def jittered(pixels: Any, by: tuple[float, float, float, float], p: float = 0.8) -> Any:
        brightness, contrast, saturation, hue = by
        if coin(p):
            pixels = fn.color_twist(
                pixels,
                brightness=uniform(range=[1 - brightness, 1 + brightness]),
                contrast=uniform(range=[1 - contrast, 1 + contrast]),
                saturation=uniform(range=[1 - saturation, 1 + saturation]),
                hue=uniform(range=[-360 * hue, 360 * hue]),
            )
        return pixels

    def greyed(pixels: Any) -> Any:
        if coin(0.2):
            pixels = fn.hsv(pixels, saturation=0.0)
        return pixels

    def blurred(pixels: Any, window: int, p: float) -> Any:
        if coin(p):
            pixels = fn.gaussian_blur(pixels, window_size=window, sigma=uniform(range=[0.1, 2.0]))
        return pixels

    def solarized(pixels: Any) -> Any:
        if coin(0.2):
            is_low = pixels < 128
            pixels = fn.cast(is_low * pixels + (pixels >= 128) * (255 - pixels), dtype=types.UINT8)
        return pixels

    def finished(pixels: Any, mean: Any = MEAN, std: Any = STD) -> Any:
        return fn.crop_mirror_normalize(
            pixels,
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=[255 * value for value in mean],
            std=[255 * value for value in std],
        )

    def erased(pixels: Any, p: float) -> Any:
        if coin(p):
            area, log_ratio = uniform(range=[0.02, 0.33]), uniform(range=[-1.19, 1.19])
            ratio = math.exp(log_ratio)
            height, width = math.min(math.sqrt(area * ratio), 1.0), math.min(math.sqrt(area / ratio), 1.0)
            at = fn.stack(uniform(range=[0.0, 1.0]) * (1 - height), uniform(range=[0.0, 1.0]) * (1 - width))
            pixels = fn.erase(
                pixels, anchor=at, shape=fn.stack(height, width), normalized=True, axis_names="HW", fill_value=0.0
            )
        return pixels

    def read() -> Any:
        encoded, _ = fn.readers.file(files=files, random_shuffle=True, name="reader")
        return encoded

    def decoded_crop() -> Any:
        region = fn.decoders.image_random_crop(read(), random_area=AREA, random_aspect_ratio=ASPECT)
        pixels = fn.resize(region, size=(224, 224), interp_type=linear, antialias=True)
        return fn.flip(pixels, horizontal=fn.random.coin_flip())

    options = {"device_id": None, "seed": 0, "prefetch_queue_depth": 2, "enable_conditionals": True}
    options |= {"batch_size": batch, "num_threads": threads}

    @pipeline_def(**options)
    def plain() -> Any:
        return finished(decoded_crop())

    @pipeline_def(**options)
    def torchvision() -> Any:
        return erased(finished(trivial_augment.trivial_augment_wide(decoded_crop())), 0.1)

    @pipeline_def(**options)
    def timm() -> Any:
        return erased(finished(rand_augment.rand_augment(decoded_crop(), n=2, m=9)), 0.25)

    @pipeline_def(**options)
    def dino() -> Any:
        pixels = fn.decoders.image(read())
        views = []
        for i in range(10):
            size, area = (224, [0.32, 1.0]) if i < 2 else (96, [0.05, 0.32])
            view = greyed(jittered(cropped(pixels, size, area, cubic), (0.4, 0.4, 0.2, 0.1)))
            view = blurred(view, 9, (1.0, 0.1)[i] if i < 2 else 0.5)
            if i == 1:
                view = solarized(view)
            views.append(finished(view))
        return tuple(views)

    @pipeline_def(**options)
    def simclr() -> Any:
        pixels = fn.decoders.image(read())
        views = []
        for _ in range(2):
            view = greyed(jittered(cropped(pixels, 224, AREA, cubic), (0.8, 0.8, 0.8, 0.2)))
            views.append(finished(blurred(view, 23, 0.5), (0, 0, 0), (1, 1, 1)))
        return tuple(views)

    @pipeline_def(**options)
    def detection() -> Any:
        encoded, _ = fn.readers.file(files=files, random_shuffle=True, seed=1, name="reader")
        found = [path.removesuffix(".jpg") for path in files]
        boxes = fn.readers.numpy(files=[f"{path}.boxes.npy" for path in found], random_shuffle=True, seed=1)
        labels = fn.readers.numpy(files=[f"{path}.labels.npy" for path in found], random_shuffle=True, seed=1)
        pixels = fn.decoders.image(encoded)
        shape = fn.cast(pixels.shape(), dtype=types.FLOAT)
        scale = fn.stack(shape[1], shape[0], shape[1], shape[0])
        anchor, extent, boxes, labels = fn.random_bbox_crop(
            boxes / scale,
            fn.cast(labels, dtype=types.INT32),
            bbox_layout="xyXY",
            aspect_ratio=[0.5, 2.0],
            thresholds=[0.0, 0.1, 0.3, 0.5, 0.7, 0.9],
            scaling=[0.3, 1.0],
            num_attempts=40,
        )
        shorter = uniform(values=[640.0, 672.0, 704.0, 736.0, 768.0, 800.0])
        pixels = fn.resize(
            pixels, resize_shorter=shorter, max_size=[1333.0, 1333.0], interp_type=linear, antialias=True
        )
        pixels = fn.slice(pixels, anchor, extent, axis_names="WH", out_of_bounds_policy="trim_to_shape")
        flips = fn.random.coin_flip()
        boxes = fn.bb_flip(boxes, horizontal=flips, ltrb=True)
        pixels = jittered(fn.flip(pixels, horizontal=flips), (0.125, 0.5, 0.5, 0.05), 0.5)
        return finished(pixels, (0, 0, 0), (1, 1, 1)), boxes, labels

    made: dict[str, tuple[Callable[[], Any], int]] = {
        "plain": (plain, 1), "torchvision": (torchvision, 1), "timm": (timm, 1), "dino": (dino, 10),
        "simclr": (simclr, 2), "detection": (detection, 3),
    }  # fmt: skip
    pipeline, outputs = made[recipe]
    return pipeline(), outputs


# -- TurboLoader


def turboloader(recipe: str, folder: Path, threads: int) -> tuple[Any, int]:
    import turboloader as turbo

    tar = str(folder.parent / "recipe_photos.tar")
    images = len(list(folder.glob("*/*.jpg"))) // 64 * 64
    options = {"batch_size": 64, "num_workers": threads, "shuffle": True, "drop_last": True}
    if recipe == "plain":
        fused = {"image_size": 224, "output_format": "pytorch", "train_aug": True}
        return turbo.DataLoader(tar, transform=turbo.ImageNetNormalize(), **fused, **options), images
    steps = [turbo.Resize(224, 224), turbo.RandomHorizontalFlip(0.5), turbo.RandAugment(2, 9)]
    steps += [turbo.RandomErasing(0.25), turbo.ImageNetNormalize()]
    return turbo.DataLoader(tar, transform=turbo.Compose(steps), **options), images


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("recipe")
    parser.add_argument("peer", choices=list(OTHERWISE))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    made = {"dali": dali, "turboloader": turboloader}[options.peer]
    recipe_clock.print_timed(*made(options.recipe, options.folder, options.workers))


if __name__ == "__main__":
    main()
