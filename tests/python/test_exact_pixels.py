# SPDX-License-Identifier: Apache-2.0
"""Pixels are Pillow's, bit for bit: decoded region, resized region, and what a loader delivers."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import numpy as np
import photographs
import PIL
import pytest
from PIL import Image

import feedline
import feedline.testing

PHOTOS = 520
INTERPOLATIONS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}


def _jpeg(**options: object) -> Callable[[Image.Image], bytes]:
    def encode(image: Image.Image) -> bytes:
        stream = io.BytesIO()
        image.save(stream, "JPEG", **options)
        return stream.getvalue()

    return encode


def _converted(mode: str, encode: Callable[[Image.Image], bytes]) -> Callable[[Image.Image], bytes]:
    return lambda image: encode(image.convert(mode))


def _png(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def _webp(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "WEBP", quality=80, method=0)
    return stream.getvalue()


ENCODINGS = {
    "4:2:0": _jpeg(quality=85, subsampling="4:2:0"),
    "4:2:0 own tables": _jpeg(quality=95, subsampling="4:2:0", optimize=True),
    "4:2:2": _jpeg(quality=92, subsampling="4:2:2"),
    "4:4:4": _jpeg(quality=75, subsampling="4:4:4"),
    "4:4:4 own tables": _jpeg(quality=30, subsampling="4:4:4", optimize=True),
    "progressive": _jpeg(quality=85, progressive=True),
    "progressive 4:4:4": _jpeg(quality=60, subsampling="4:4:4", progressive=True),
    "restart markers": _jpeg(quality=80, restart_marker_blocks=7),
    "restart markers 4:2:2": _jpeg(quality=98, subsampling="4:2:2", restart_marker_rows=1),
    "grey": _converted("L", _jpeg(quality=85)),
    "CMYK": _converted("CMYK", _jpeg(quality=85)),
    "PNG": _png,
    "PNG palette": _converted("P", _png),
    "PNG alpha": _converted("RGBA", _png),
    "PNG grey": _converted("L", _png),
    "WebP": _webp,
}


@pytest.fixture(scope="module")
def photos() -> list[tuple[str, bytes, Image.Image]]:
    """(encoding, encoded, Pillow's decoded RGB) of PHOTOS different photos."""
    names = list(ENCODINGS)
    encoded = [
        (names[i % len(names)], ENCODINGS[names[i % len(names)]](Image.fromarray(part)))
        for i, part in enumerate(photographs.crops(PHOTOS, largest=420))
    ]
    return [(name, data, Image.open(io.BytesIO(data)).convert("RGB")) for name, data in encoded]


def _box(rng: np.random.Generator, width: int, height: int) -> tuple[int, int, int, int]:
    left, top = int(rng.integers(0, width)), int(rng.integers(0, height))
    return left, top, int(rng.integers(left + 1, width + 1)), int(rng.integers(top + 1, height + 1))


def test_there_are_enough_photos_of_every_kind(photos: list[tuple[str, bytes, Image.Image]]) -> None:
    assert len(photos) >= 500
    assert len({data for _, data, _ in photos}) == len(photos)
    assert {name for name, _, _ in photos} == set(ENCODINGS)
    assert any(image.width % 2 and image.height % 2 for _, _, image in photos)


def test_whole_images(photos: list[tuple[str, bytes, Image.Image]]) -> None:
    for name, data, image in photos[:: len(photos) // 150]:
        np.testing.assert_array_equal(feedline.decode_image(data), np.asarray(image), err_msg=name)


def test_grey_images(photos: list[tuple[str, bytes, Image.Image]]) -> None:
    for name, data, _ in photos[: 10 * len(ENCODINGS)]:
        wanted = np.asarray(Image.open(io.BytesIO(data)).convert("L"))
        np.testing.assert_array_equal(feedline.decode_image(data, mode="L")[:, :, 0], wanted, err_msg=name)


def test_regions(photos: list[tuple[str, bytes, Image.Image]]) -> None:
    rng = np.random.default_rng(7)
    for name, data, image in photos:
        box = _box(rng, *image.size)
        wanted = np.asarray(image.crop(box))
        np.testing.assert_array_equal(feedline.decode_image(data, box), wanted, err_msg=f"{name} {box} of {image.size}")


@pytest.mark.parametrize("variant", feedline.simd_variants())
def test_resized_regions(photos: list[tuple[str, bytes, Image.Image]], variant: str, best_variant: None) -> None:
    """crop().resize(), every photo with a box and a size of its own; every interpolation gets a quarter of them."""
    feedline.testing.force_simd_variant(variant)
    assert feedline.active_simd_variant() == variant
    rng = np.random.default_rng(8)
    for i, (name, data, image) in enumerate(photos):
        interpolation = list(INTERPOLATIONS)[i % 4] if i % 3 else "bilinear"
        box = _box(rng, *image.size)
        height, width = (int(side) for side in rng.integers(1, 300, 2))
        wanted = image.crop(box).resize((width, height), INTERPOLATIONS[interpolation])
        ours = feedline.resize_image(feedline.decode_image(data, box), (height, width), interpolation)
        what = f"{name} {box} of {image.size} to {(width, height)} {interpolation}"
        np.testing.assert_array_equal(ours, np.asarray(wanted), err_msg=what)


@pytest.fixture
def pillow_12() -> Iterator[None]:
    feedline.follow_pillow(12)
    yield
    feedline.follow_pillow(min(13, int(PIL.__version__.split(".")[0])))


@pytest.mark.usefixtures("pillow_12")
@pytest.mark.parametrize("interpolation", ["box", "bilinear", "bicubic"])
def test_earlier_versions_of_pillow_on_request(
    photos: list[tuple[str, bytes, Image.Image]], interpolation: str
) -> None:
    """Until Pillow 12 rows came first, always. One pass at a time leaves Pillow 13 no choice."""
    rng = np.random.default_rng(10)
    resample = INTERPOLATIONS[interpolation]
    differ = 0
    for _, _, image in photos[::5]:
        width, height = (int(side) for side in rng.integers(1, 300, 2))
        wanted = np.asarray(image.resize((width, image.height), resample).resize((width, height), resample))
        ours = feedline.resize_image(np.asarray(image), (height, width), interpolation)
        np.testing.assert_array_equal(ours, wanted)
        differ += not np.array_equal(wanted, np.asarray(image.resize((width, height), resample)))
    if PIL.__version__ >= "13":
        assert differ > 0, "no size was tried whose passes Pillow 13 swaps"


def test_versions_of_pillow_that_are_not_known() -> None:
    for major in (9, 14):
        with pytest.raises(feedline.ConfigError, match="10 to 13"):
            feedline.follow_pillow(major)


@pytest.mark.parametrize("interpolation", list(INTERPOLATIONS))
@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 97, 3), (97, 1, 3), (33, 65, 1), (64, 64, 3), (2, 3, 1)])
def test_small_and_thin_images(interpolation: str, shape: tuple[int, int, int]) -> None:
    pixels = np.random.default_rng(9).integers(0, 256, shape, dtype=np.uint8)
    image = Image.fromarray(pixels if shape[2] == 3 else pixels[:, :, 0])
    for size in ((1, 1), (5, 130), (130, 5), (64, 64), shape[:2], (shape[0] * 2, shape[1] * 3)):
        wanted = np.asarray(image.resize((size[1], size[0]), INTERPOLATIONS[interpolation])).reshape(*size, shape[2])
        np.testing.assert_array_equal(feedline.resize_image(pixels, size, interpolation), wanted)


def _by_hand(image: Image.Image, drawn: list[feedline.Drawn], size: int) -> np.ndarray:
    """torchvision's PIL path with the box and the flip that the engine drew."""
    values = {entry.name: entry.values for entry in drawn}
    left, top, width, height = (int(value) for value in values["crop"])
    part = image.crop((left, top, left + width, top + height))
    part = part.resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(part.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if values["flip"][0] else part)


@pytest.fixture(scope="module")
def stored(
    photos: list[tuple[str, bytes, Image.Image]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[feedline.Dataset, list[Image.Image]]:
    folder = tmp_path_factory.mktemp("exact") / "all"
    folder.mkdir()
    for i, (_, data, _) in enumerate(photos):
        (folder / f"{i:04d}.jpg").write_bytes(data)  # a PNG named .jpg is read by its content
    return feedline.open(folder.parent), [image for _, _, image in photos]


@pytest.mark.parametrize("variant", feedline.simd_variants())
def test_a_loaders_uint8_batches(
    stored: tuple[feedline.Dataset, list[Image.Image]], variant: str, best_variant: None
) -> None:
    """random_resized_crop and flip, through the fused path of the loader, for every photo."""
    feedline.testing.force_simd_variant(variant)
    dataset, images = stored
    dataset = dataset.random_resized_crop(96).random_horizontal_flip()
    with dataset.loader(40, seed=3, output="numpy", layout="NHWC") as loader:
        ours = np.concatenate([batch[0] for batch in loader])
    assert len(ours) == len(images)
    for i, image in enumerate(images):
        wanted = _by_hand(image, dataset.draw(i, seed=3), 96)
        np.testing.assert_array_equal(ours[i], wanted, err_msg=f"sample {i} of size {image.size}")


def test_float_batches_are_to_tensor_and_normalize(stored: tuple[feedline.Dataset, list[Image.Image]]) -> None:
    """Within one unit in the last place of float32: x / 255, minus mean, divided by std, each rounded to float32."""
    dataset, images = stored
    mean = np.array(feedline.IMAGENET_MEAN, np.float32)[:, None, None]
    std = np.array(feedline.IMAGENET_STD, np.float32)[:, None, None]
    dataset = dataset.random_resized_crop(64).random_horizontal_flip()
    floats = dataset.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    with floats.loader(50, output="numpy") as loader:
        ours = np.concatenate([batch[0] for batch in loader])
    for i in range(0, len(images), 3):
        pixels = _by_hand(images[i], dataset.draw(i), 64).transpose(2, 0, 1)
        wanted = (pixels.astype(np.float32) / np.float32(255) - mean) / std
        np.testing.assert_array_max_ulp(ours[i], wanted, maxulp=1)


def test_resize_and_center_crop(stored: tuple[feedline.Dataset, list[Image.Image]]) -> None:
    """torchvision's validation transforms: Resize(int) keeps the aspect ratio, CenterCrop rounds as torchvision."""
    dataset, images = stored
    dataset = dataset.resize(72).center_crop(64)
    for i in range(0, len(images), 9):
        width, height = images[i].size
        short, long = sorted((width, height))
        other = int(72 * long / short)
        size = (72, other) if width <= height else (other, 72)
        resized = images[i].resize(size, Image.Resampling.BILINEAR)
        top, left = round((size[1] - 64) / 2.0), round((size[0] - 64) / 2.0)
        wanted = np.asarray(resized.crop((left, top, left + 64, top + 64))).transpose(2, 0, 1)
        np.testing.assert_array_equal(dataset[i][0], wanted, err_msg=f"sample {i} of size {images[i].size}")


def test_padding_and_grey(stored: tuple[feedline.Dataset, list[Image.Image]]) -> None:
    """pad's four modes are NumPy's; grayscale is Pillow's convert("L")."""
    dataset, images = stored
    numpy_mode = {"constant": "constant", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}
    for i, (mode, numpys) in enumerate(numpy_mode.items()):
        ours = dataset.resize((30, 40)).pad((3, 5, 7, 9), padding_mode=mode)[i][0]
        small = np.asarray(images[i].resize((40, 30), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
        wanted = np.pad(small, ((0, 0), (5, 9), (3, 7)), mode=numpys)
        np.testing.assert_array_equal(ours, wanted, err_msg=mode)
    filled = dataset.resize((30, 40)).pad(2, fill=(10, 20, 30))[0][0]
    assert filled[:, 0, 0].tolist() == [10, 20, 30]
    grey = dataset.resize((30, 40)).grayscale()[1][0]
    wanted = np.asarray(images[1].resize((40, 30), Image.Resampling.BILINEAR).convert("L"))
    np.testing.assert_array_equal(grey[0], wanted)
    three = dataset.resize((30, 40)).grayscale(3)[1][0]
    assert three.shape == (3, 30, 40)
    np.testing.assert_array_equal(three, np.stack([wanted] * 3))


def test_color_jitter_is_pillows_enhancers(stored: tuple[feedline.Dataset, list[Image.Image]]) -> None:
    """One factor at a time, taken from what the engine says that it drew."""
    from PIL import ImageEnhance

    enhancers = {
        "brightness": ImageEnhance.Brightness,
        "contrast": ImageEnhance.Contrast,
        "saturation": ImageEnhance.Color,
    }
    dataset, images = stored
    small = dataset.resize((40, 50))
    for name, enhancer in enhancers.items():
        jittered = small.color_jitter(**{name: 0.6})
        for i in range(0, 60, 7):
            factor = next(entry.values[0] for entry in jittered.draw(i) if entry.name == name)
            image = images[i].resize((50, 40), Image.Resampling.BILINEAR)
            wanted = np.asarray(enhancer(image).enhance(factor)).transpose(2, 0, 1)
            np.testing.assert_array_equal(jittered[i][0], wanted, err_msg=f"{name} {factor} of sample {i}")
