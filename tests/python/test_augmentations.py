# SPDX-License-Identifier: Apache-2.0
"""Augmentations do to pixels what Pillow's functions do with the drawn parameters, whatever the threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import photographs
import pytest
from drawn_changes import augmented
from PIL import Image, ImageEnhance, ImageOps

import feedline
from feedline.testing import draw_for_size

PHOTOS = 24
Chain = Callable[[feedline.Dataset], feedline.Dataset]

POLICIES: dict[str, Chain] = {
    "trivial": lambda d: d.trivial_augment_wide(),
    "trivial bilinear": lambda d: d.trivial_augment_wide(interpolation="bilinear", fill=(10, 120, 250)),
    "rand": lambda d: d.rand_augment(),
    "rand bicubic": lambda d: d.rand_augment(4, 20, 31, "bicubic", 128),
    "auto imagenet": lambda d: d.auto_augment(),
    "auto cifar10": lambda d: d.auto_augment("cifar10", "bilinear"),
    "auto svhn": lambda d: d.auto_augment("svhn", fill=7),
}
CHANGES: dict[str, tuple[Chain, Callable[[Image.Image], Image.Image]]] = {
    "invert": (lambda d: d.random_invert(1), ImageOps.invert),
    "posterize": (lambda d: d.random_posterize(3, 1.0), lambda image: ImageOps.posterize(image, 3)),
    "solarize": (lambda d: d.random_solarize(100.5, 1), lambda image: ImageOps.solarize(image, 100.5)),
    "sharpness": (
        lambda d: d.random_adjust_sharpness(2.5, 1),
        lambda image: ImageEnhance.Sharpness(image).enhance(2.5),
    ),
    "autocontrast": (lambda d: d.random_autocontrast(1), ImageOps.autocontrast),
    "equalize": (lambda d: d.random_equalize(1), ImageOps.equalize),
    "grayscale": (lambda d: d.random_grayscale(1), lambda image: image.convert("L").convert(image.mode)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PNGs of photos of any size; every fourth is grey, some are narrow."""
    root = tmp_path_factory.mktemp("photos")
    (root / "class").mkdir()
    parts = photographs.crops(PHOTOS, largest=180)
    parts[3], parts[5], parts[9] = parts[3][:1], parts[5][:, :1], parts[9][:3, :5]
    for i, part in enumerate(parts):
        image = Image.fromarray(part)
        (image.convert("L") if i % 4 == 1 else image).save(root / "class" / f"{i:03}.png")
    return root


def _images(root: Path, mode: str = "RGB") -> list[Image.Image]:
    return [Image.open(path).convert(mode) for path in sorted((root / "class").iterdir())]


def _opened(root: Path) -> feedline.Dataset:
    """With images of any size."""
    return feedline.open(root).collate("list", fields="image")


def _delivered(dataset: feedline.Dataset, seed: int, **loader: int) -> list[np.ndarray]:
    """Height x width x channels of every sample of epoch 0."""
    with dataset.loader(5, seed=seed, layout="NHWC", output="numpy", **loader) as batches:
        return [image for batch in batches for image in batch.image]


HOW = {
    "trivial bilinear": (Image.Resampling.BILINEAR, (10, 120, 250)),
    "rand bicubic": (Image.Resampling.BICUBIC, (128, 128, 128)),
    "auto cifar10": (Image.Resampling.BILINEAR, (0, 0, 0)),
    "auto svhn": (Image.Resampling.NEAREST, (7, 7, 7)),
}


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("policy", POLICIES)
def test_policies_do_what_they_drew(folder: Path, policy: str, mode: str) -> None:
    dataset = POLICIES[policy](_opened(folder).decode(mode))
    resample, fill = HOW.get(policy, (Image.Resampling.NEAREST, (0, 0, 0)))
    seen: Counter[str] = Counter()
    for seed in range(8):
        for i, (image, ours) in enumerate(zip(_images(folder, mode), _delivered(dataset, seed), strict=True)):
            drawn = dataset.draw(i, seed=seed)
            for _operation, name, (amount,) in drawn:
                image = augmented(image, name, amount, resample, fill if mode == "RGB" else fill[0])
                seen[name] += 1
            wanted = np.asarray(image).reshape(ours.shape)
            np.testing.assert_array_equal(ours, wanted, err_msg=f"{policy} {mode} seed {seed} sample {i}: {drawn}")
    assert len(seen) >= (4 if "auto" in policy else 12), seen


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_pillows(folder: Path, change: str, mode: str) -> None:
    chain, wanted = CHANGES[change]
    dataset = chain(_opened(folder).decode(mode))
    for image, ours in zip(_images(folder, mode), _delivered(dataset, 0), strict=True):
        np.testing.assert_array_equal(
            ours, np.asarray(wanted(image)).reshape(ours.shape), err_msg=f"{change} {image.size}"
        )


BY_CHANCE: dict[str, Callable[[feedline.Dataset, float], feedline.Dataset]] = {
    "invert": lambda d, p: d.random_invert(p),
    "posterize": lambda d, p: d.random_posterize(3, p),
    "solarize": lambda d, p: d.random_solarize(128, p),
    "sharpness": lambda d, p: d.random_adjust_sharpness(2.5, p),
    "autocontrast": lambda d, p: d.random_autocontrast(p),
    "equalize": lambda d, p: d.random_equalize(p),
    "grayscale": lambda d, p: d.random_grayscale(p),
}


@pytest.mark.parametrize("change", BY_CHANCE)
def test_a_probability_is_how_often(folder: Path, change: str) -> None:
    draws = 20_000
    for p in (0.2, 0.75):
        dataset = BY_CHANCE[change](_opened(folder), p)
        done = sum(bool(draw_for_size(dataset, 40, 50, i)) for i in range(draws))
        assert done == pytest.approx(p * draws, abs=4 * (p * (1 - p) * draws) ** 0.5)
    assert not BY_CHANCE[change](_opened(folder), 0).draw(0)
    assert BY_CHANCE[change](_opened(folder), 1).draw(0)


def test_flips_and_crops_keep_their_order(folder: Path) -> None:
    """A flip is moved to the output where that changes nothing: not past what moves pixels."""
    dataset = (
        _opened(folder)
        .resize((60, 80), "bicubic")
        .random_horizontal_flip(1)
        .trivial_augment_wide(interpolation="bilinear")
        .random_vertical_flip(1)
        .center_crop((40, 50))
        .random_autocontrast(1)
    )
    moved = 0
    for seed in range(6):
        for i, (image, ours) in enumerate(zip(_images(folder), _delivered(dataset, seed), strict=True)):
            image = image.resize((80, 60), Image.Resampling.BICUBIC).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            for operation, name, values in dataset.draw(i, seed=seed):
                if operation == "trivial_augment_wide":
                    image = augmented(image, name, values[0], Image.Resampling.BILINEAR, (0, 0, 0))
                    moved += name in ("shear_x", "rotate", "translate_x")
            image = image.transpose(Image.Transpose.FLIP_TOP_BOTTOM).crop((15, 10, 65, 50))
            np.testing.assert_array_equal(ours, np.asarray(ImageOps.autocontrast(image)), err_msg=f"{seed} {i}")
    assert moved > 10


def test_the_same_bytes_with_any_number_of_threads(folder: Path) -> None:
    dataset = _opened(folder).rand_augment(3).random_grayscale(0.5).trivial_augment_wide()
    first = _delivered(dataset, 3, num_workers=1)
    assert any((a != b).any() for a, b in zip(first, _delivered(dataset, 4, num_workers=1), strict=True))
    for threads in (2, 3, 8):
        for one, other in zip(first, _delivered(dataset, 3, num_workers=threads), strict=True):
            np.testing.assert_array_equal(one, other)


WRONG: dict[str, tuple[Chain, str]] = {
    "probability": (lambda d: d.random_invert(1.5), "random_invert: p must be between 0 and 1, got 1.5"),
    "bits": (lambda d: d.random_posterize(9), "random_posterize: bits must be from 0 to 8"),
    "threshold": (lambda d: d.random_solarize(300), "random_solarize: threshold must be from 0 to 256"),
    "factor": (
        lambda d: d.random_adjust_sharpness(-1),
        "random_adjust_sharpness: sharpness_factor must not be negative",
    ),
    "policy": (lambda d: d.auto_augment("mnist"), "auto_augment: policy must be one of"),
    "interpolation": (lambda d: d.rand_augment(interpolation="box"), "rand_augment: interpolation must be nearest"),
    "magnitude": (lambda d: d.rand_augment(magnitude=31), "rand_augment: magnitude must be from 0 to"),
    "count": (lambda d: d.rand_augment(65), "rand_augment: num_ops must be from 0 to 64"),
    "bins": (lambda d: d.trivial_augment_wide(1), "trivial_augment_wide: num_magnitude_bins must be from 2"),
    "floats": (lambda d: d.to_dtype("float32").random_equalize(), "random_equalize: works on uint8 pixels"),
    "fill": (lambda d: d.trivial_augment_wide(fill=300), "trivial_augment_wide: fill must be from 0 to 255"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_named_at_the_call(folder: Path, case: str) -> None:
    chain, words = WRONG[case]
    with pytest.raises(feedline.ConfigError) as raised:
        chain(feedline.open(folder))
    assert str(raised.value).startswith(words)


def test_caches_refuse_what_is_drawn(folder: Path) -> None:
    with pytest.raises(feedline.ConfigError, match="rand_augment before cache would draw only once"):
        feedline.open(folder).rand_augment().cache()


def test_masks_do_not_go_along_in_silence(tmp_path: Path) -> None:
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
        Image.new("L", (9, 7), 3).save(tmp_path / name / "a.png")
    pairs = feedline.open(tmp_path, fields=("images/{key}.png", "mask=masks/{key}.png:mask")).resize((8, 8))
    with pytest.raises(feedline.ConfigError, match="rand_augment: it moves the pixels of images"):
        pairs.rand_augment().loader(1)
    with pairs.rand_augment(fields="images").random_equalize(1).loader(1, output="numpy") as loader:
        assert next(iter(loader)).mask.shape == (1, 8, 8)
